//! Counts records by schema and group, in memory that does not grow with their number.

use std::collections::BTreeMap;

use super::by::StatsDimension;
use super::row::StatsRow;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{Evidence, Record};
use crate::domain::schema::State;

/// The most distinct groups; the records of further groups count together. There may be as many
/// owners or prefixes as records, and memory must stay bounded.
const MAX_GROUPS: usize = 10_000;

/// The most records of a group whose memory the server is asked for. More would slow the server
/// down, and hardly change the average.
const MAX_WEIGHED: u64 = 500;

/// The most records per group and page whose memory is read, so that the sample spreads over the
/// keyspace.
const WEIGHED_OF_A_PAGE: usize = 4;

/// The group that a row counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatsGroup {
    /// The records with this owner, status and so on.
    Of(Vec<u8>),
    /// The records that have none.
    None,
    /// The records of all groups beyond the limit.
    Others,
}

/// Statistics on records, by schema and group.
#[derive(Debug)]
pub(crate) struct Stats {
    by: StatsDimension,
    rows: BTreeMap<(String, StatsGroup), StatsRow>,
    /// Findings that are certain from the record or the deployment's own TTLs, with their counts.
    findings: BTreeMap<FindingCode, u64>,
    /// The number of locks by owner.
    owners: BTreeMap<Vec<u8>, u64>,
    /// The number of locks of all owners beyond the limit.
    of_other_owners: u64,
}

impl Stats {
    /// Empty statistics by this dimension.
    pub(crate) fn new(by: StatsDimension) -> Self {
        Self {
            by,
            rows: BTreeMap::new(),
            findings: BTreeMap::new(),
            owners: BTreeMap::new(),
            of_other_owners: 0,
        }
    }

    /// The dimension by which records are counted.
    pub(crate) fn by(&self) -> StatsDimension {
        self.by
    }

    /// The number of records that certainly have this finding. Findings that rest on a schema's
    /// default TTL do not count.
    pub(crate) fn proven(&self, code: FindingCode) -> u64 {
        self.findings.get(&code).copied().unwrap_or(0)
    }

    /// Counts the records of a page. Returns the indexes of the records whose memory is to be read,
    /// some of each group.
    pub(crate) fn add(&mut self, page: &[Record]) -> Vec<usize> {
        let mut sampled: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut wanted = Vec::new();
        for (index, record) in page.iter().enumerate() {
            self.count_owner(record);
            self.count_findings(record);
            let mut is_light = false;
            for place in self.places(record) {
                let row = self.rows.entry(place).or_default();
                row.add(record);
                // A record of several groups is sampled if one of them still needs samples.
                is_light |= row.weighed() < MAX_WEIGHED;
            }
            let of_page = sampled.entry((&record.schema.name, record.state.as_str())).or_default();
            if is_light && *of_page < WEIGHED_OF_A_PAGE {
                *of_page += 1;
                wanted.push(index);
            }
        }
        wanted
    }

    /// Adds the memory of a counted record, in bytes, as the server reported it.
    pub(crate) fn weigh(&mut self, record: &Record, memory_bytes: u64) {
        for place in self.places(record) {
            if let Some(row) = self.rows.get_mut(&place) {
                row.weigh(record, memory_bytes);
            }
        }
    }

    fn places(&self, record: &Record) -> Vec<(String, StatsGroup)> {
        let groups = self.by.groups(record);
        let mut places = Vec::with_capacity(groups.len());
        for group in groups {
            let group = match group {
                Some(name) => StatsGroup::Of(name),
                None => StatsGroup::None,
            };
            let mut place = (record.schema.name.clone(), group);
            // There may be as many owners or prefixes as records, and memory must stay bounded.
            if self.rows.len() >= MAX_GROUPS && !self.rows.contains_key(&place) {
                place.1 = StatsGroup::Others;
            }
            places.push(place);
        }
        places
    }

    fn count_findings(&mut self, record: &Record) {
        for finding in &record.findings {
            if finding.evidence > Evidence::Estimated {
                *self.findings.entry(finding.code).or_default() += 1;
            }
        }
    }

    fn count_owner(&mut self, record: &Record) {
        // A result may still contain its owner's token, but only a lock beside it is held. A lock
        // past its own expiry is not held either.
        let is_held = record.state == State::InProgress
            || record.state.is_result() && record.has_readable_lock();
        if !is_held {
            return;
        }
        let Some(owner) = record.owner() else { return };
        // The owner is copied only once, because this runs for every record of a scan.
        if let Some(locks) = self.owners.get_mut(owner) {
            *locks += 1;
        } else if self.owners.len() < MAX_GROUPS {
            self.owners.insert(owner.to_vec(), 1);
        } else {
            self.of_other_owners += 1;
        }
    }

    /// The rows, by schema and group.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &StatsGroup, &StatsRow)> {
        self.rows.iter().map(|((schema, group), row)| (schema.as_str(), group, row))
    }

    /// The statistics of all rows together.
    pub(crate) fn total(&self) -> StatsRow {
        let mut total = StatsRow::default();
        for row in self.rows.values() {
            total.merge(row);
        }
        total
    }

    /// The owners with the most locks, and how many each holds, the most first. Owners beyond the
    /// limit are left out.
    pub(crate) fn top_owners(&self, most: usize) -> Vec<(&[u8], u64)> {
        let mut owners: Vec<_> =
            self.owners.iter().map(|(owner, locks)| (owner.as_slice(), *locks)).collect();
        // The name settles ties, so that the order is the same every time.
        owners.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        owners.truncate(most);
        owners
    }

    /// True if there are more owners than the limit, so that one of them may hold more locks than
    /// the listed ones.
    pub(crate) fn has_other_owners(&self) -> bool {
        self.of_other_owners > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::{Content, TimeLeft};
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    fn held_by(owner: &str) -> Record {
        record(
            "event-driven",
            &[(text(owner), TimeLeft::Millis(20_000)), (Content::Absent, TimeLeft::Millis(0))],
        )
    }

    #[test]
    fn records_are_counted_by_schema_and_state_and_some_are_weighed() {
        let mut stats = Stats::new(StatsDimension::State);
        let page: Vec<_> = (0..9)
            .map(|_| chi(CHI_LOCK, TimeLeft::Millis(9)))
            .chain([chi(CHI_RESULT, TimeLeft::Millis(9))])
            .collect();
        assert_eq!(stats.add(&page), [0, 1, 2, 3, 9]);
        stats.weigh(&page[0], 64);
        let rows: Vec<_> =
            stats.rows().map(|(schema, group, row)| (schema, group.clone(), row.records)).collect();
        let of = |state: &str| StatsGroup::Of(state.as_bytes().to_vec());
        assert_eq!(rows, [("go-chi", of("completed"), 1), ("go-chi", of("in-progress"), 9)]);
        assert_eq!(stats.total().records, 10);
    }

    #[test]
    fn the_owners_with_most_locks_come_first() {
        let mut stats = Stats::new(StatsDimension::Owner);
        stats.add(&[held_by("b"), held_by("a"), held_by("c"), held_by("c")]);
        assert_eq!(stats.top_owners(2), [(&b"c"[..], 2), (&b"a"[..], 1)]);
        assert!(!stats.has_other_owners());
    }

    /// Rule: memory does not grow with the number of owners.
    #[test]
    fn owners_beyond_the_limit_count_together() {
        let mut stats = Stats::new(StatsDimension::Owner);
        let page: Vec<_> =
            (0..MAX_GROUPS + 5).map(|number| held_by(&format!("w{number:06}"))).collect();
        stats.add(&page);
        let others = stats
            .rows()
            .find(|(_, group, _)| **group == StatsGroup::Others)
            .map(|(.., row)| row.records);
        assert_eq!(others, Some(5));
        assert!(stats.has_other_owners() && stats.owners.len() == MAX_GROUPS);
    }
}
