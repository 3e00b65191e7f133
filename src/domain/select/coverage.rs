//! Coverage: what a scan left out, and which assumptions about a deployment are wrong.

use std::collections::BTreeMap;

use super::contradiction::Contradictions;
use super::named_keys::NamedKeys;
use super::selection::Selected;
use super::unproven::{Missing, Unproven};
use crate::domain::covered::Covered;
use crate::domain::record::{Author, Record, TimeLeft};
use crate::domain::schema::Catalog;

/// What a scan did not cover: counts of the records that it left out, not of those that it covered.
/// The memory use depends only on the number of schemas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Records at Redis keys of a schema whose values the schema does not recognise, by schema.
    pub(crate) unrecognised: BTreeMap<String, u64>,
    /// Those of them that differ from their schema only by one field, by schema and field.
    pub(crate) near_misses: BTreeMap<(String, String), u64>,
    /// How many of these are locks without expiry.
    pub(crate) endless_near_misses: u64,
    /// Records that would count as a schema's locks, but are another schema's results, by that
    /// other schema.
    pub(crate) spared: BTreeMap<String, u64>,
    /// Records that were left out because the evidence for a filter is missing.
    pub(crate) unproven: Unproven,
    pub(crate) contradictions: Contradictions,
    pub(crate) named: NamedKeys,
    /// Schemas that were named and of which there is no Redis key, each with the prefix of its keys.
    pub(crate) without_keys: Vec<(String, Vec<u8>)>,
    /// True if no Redis key belongs to a schema.
    pub(crate) has_no_key: bool,
    /// True if this database has no key of any schema, and another one has keys.
    pub(crate) is_elsewhere: bool,
    /// True to keep records whose values the schema does not recognise. They are counted either
    /// way.
    pub(crate) keeps_unrecognised: bool,
    /// True to keep results of the schema's formats that also have something which the schema does
    /// not write. A change leaves them, and has to say so if it was asked for such results.
    pub(crate) keeps_deviating: bool,
    /// True to keep records that deviate behind the bytes that a scan usually reads. The preview of
    /// a change counted them as left.
    pub(crate) keeps_deviating_behind_head: bool,
    /// True to keep such results until the filters accept them, and then to count them as left out.
    /// A filter by a field reads the whole value, which shows that it deviates. Without the filter,
    /// the same record counts as a result.
    pub(crate) reports_deviating: bool,
}

impl Coverage {
    /// True if the record is kept. A record that does not belong to its schema is counted, and kept
    /// only with `keeps_unrecognised`.
    pub(crate) fn keeps(&mut self, record: &Record) -> bool {
        // The unread rest decides what such a record is, and whether it can be decoded at all.
        if record.is_undecided() {
            self.unproven.add(record, Missing::Format);
            return self.keeps_unrecognised;
        }
        // Its lock is the service's, and may block requests forever.
        let is_foreign = record.author.is_foreign() && !record.author.is_of_lock();
        if is_foreign {
            *self.unrecognised.entry(record.schema.name.clone()).or_default() += 1;
        }
        if let Some(field) = record.near_miss() {
            let near = (record.schema.name.clone(), field.to_owned());
            *self.near_misses.entry(near).or_default() += 1;
            let is_endless = record.lock().is_some_and(|lock| lock.time_left == TimeLeft::NoExpiry);
            self.endless_near_misses += u64::from(is_endless);
        }
        if let Author::ResultOf(other) = &record.author {
            *self.spared.entry(other.clone()).or_default() += 1;
        }
        if !is_foreign || self.keeps_unrecognised {
            return true;
        }
        if self.keeps_deviating_behind_head && deviates_behind_head(record) {
            return true;
        }
        (self.keeps_deviating || self.reports_deviating) && deviates(record)
    }

    /// What an answer about all records of these schemas covers. Schemas that nobody named, and that
    /// a scan omits because any Redis key may be theirs, are no part of such an answer; with `None`,
    /// keys were named one by one, and no schema is.
    pub(crate) fn covered(&self, catalog: Option<&Catalog>, forbidden: Option<&str>) -> Covered {
        let mut covered = Covered::default();
        if let Some(catalog) = catalog {
            covered = catalog.covered();
            for schema in catalog.skipped() {
                covered.leave_out(format!("schema {}", schema.name), "it has no fixed prefix");
            }
            if self.is_elsewhere {
                covered.leave_out("other databases", "this one has no key of these schemas");
            }
        }
        for (schema, missing, left_out) in self.unproven.of_schemas() {
            let what = format!("{} records of {schema}", left_out.count);
            covered.leave_out(what, format!("unknown {}", missing.as_str()));
        }
        if let Some(why) = forbidden {
            covered.leave_out("records", why);
        }
        covered
    }

    /// The command's plan for a record, if `selected` is yes. A record with missing evidence is
    /// counted as left out.
    pub(crate) fn plan_or_count<T>(&mut self, record: &Record, selected: Selected<T>) -> Option<T> {
        match selected {
            Selected::Yes(_)
                if self.reports_deviating
                    && record.author.is_foreign()
                    && !record.author.is_of_lock() =>
            {
                self.unproven.add(record, Missing::WholeFormat);
                None
            }
            Selected::Yes(planned) => Some(planned),
            Selected::No => None,
            Selected::Unproven(missing) => {
                self.unproven.add(record, missing);
                None
            }
        }
    }
}

/// True if the record is a result in a format of its schema but for a deviation.
fn deviates(record: &Record) -> bool {
    matches!(record.author, Author::Unrecognised(_))
        && record.state.is_result()
        && record.deviation().is_some()
}

/// True if the record has a format of its schema as far as a scan usually reads, but for a
/// deviation behind that.
fn deviates_behind_head(record: &Record) -> bool {
    let head = record.schema.head_bytes() as u64;
    let mut sizes = record.seen.keys.iter().filter_map(|key| key.content.size());
    matches!(record.author, Author::Unrecognised(_))
        && record.deviation().is_some()
        && sizes.any(|size| size > head)
}
