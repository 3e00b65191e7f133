//! Health: how a monitoring plugin rates the records of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use strum::{EnumString, IntoStaticStr};

use super::FindingCode;
use crate::domain::as_str::as_str;
use crate::domain::covered::Covered;
use crate::domain::record::Record;
use crate::domain::select::Tally;
use crate::domain::select::contradiction::Contradictions;

/// The findings besides `no-expiry` that `check` can look for: each keeps clients waiting.
pub(crate) const INCLUDABLE: [FindingCode; 4] = [
    FindingCode::ExcessTtl,
    FindingCode::Overdue,
    FindingCode::LeftoverLock,
    FindingCode::Unreadable,
];

#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The locks with a requested finding, by finding and schema.
    pub(crate) found: Tally<(FindingCode, String)>,
    /// Locks without TTL to which the next retry gives one, by schema. They do not count as
    /// orphaned, because retries get in again by themselves.
    pub(crate) given_ttl: Tally<String>,
    /// Records of the schemas; an estimate if they were sampled.
    pub(crate) records: u64,
    /// Records at Redis keys of the schemas that have other value formats; an estimate if they were
    /// sampled.
    pub(crate) foreign: u64,
    /// Those of them that differ from their schema only by one field, by schema and field; an
    /// estimate if they were sampled.
    pub(crate) near_misses: BTreeMap<(String, String), u64>,
    /// How many records of that kind are locks without expiry.
    pub(crate) endless_near_misses: u64,
    /// The schemas with more unrecognised records than their own under their prefix, and how many
    /// of each.
    pub(crate) outnumbered: Vec<(String, u64, u64)>,
    /// Records in the sample whose values are too long to tell their format.
    pub(crate) undecided: u64,
    /// Values of keys without expiry that may be locks, and are too large to be read to the part
    /// that decides.
    pub(crate) too_large: u64,
    /// How many records were read to distinguish the schemas' records from unrecognised ones, if
    /// not all of them were.
    pub(crate) sample: Option<u64>,
    pub(crate) keys: u64,
    /// Redis keys of records that never expire, as the scan saw them.
    pub(crate) endless_keys: u64,
    /// Redis keys that no schema reads and that never expire; `None` if that is unknown, or if not
    /// every schema was read.
    pub(crate) unrecognised_no_expiry: Option<u64>,
    pub(crate) covered: Covered,
    /// The schemas that were read, if not every schema was.
    pub(crate) named: Option<CheckedSchemas>,
    /// As [`Coverage::without_keys`](crate::domain::select::Coverage::without_keys).
    pub(crate) without_keys: Vec<(String, Vec<u8>)>,
    /// Redis keys of other schemas that the scan found, by schema. They were not checked.
    pub(crate) unread: BTreeMap<String, u64>,
    /// True if options left out records.
    pub(crate) is_narrowed: bool,
    /// Locks with more time left than their schema's default lock TTL, if the deployment states
    /// none.
    pub(crate) outlasting: Contradictions,
    /// True if there may be more of them, because not all values were read.
    pub(crate) outlasting_is_partial: bool,
    /// The schemas that these locks may belong to.
    pub(crate) outlasting_unread: BTreeSet<String>,
}

/// The schemas of a check that does not read every schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckedSchemas {
    pub(crate) schemas: Vec<String>,
    /// The context that names them; `None` if the command line does.
    pub(crate) context: Option<String>,
}

/// The number of locks from which each status applies.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Stuck locks for WARNING.
    pub(crate) warning: Option<u64>,
    /// Stuck locks for CRITICAL.
    pub(crate) critical: u64,
    /// The status that one lock with another finding gives.
    pub(crate) alarms: BTreeMap<FindingCode, Status>,
    /// The status that one Redis key without expiry gives that no schema reads.
    pub(crate) unrecognised: Option<Status>,
}

/// The value of `--include`: the status that one lock with this finding gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alarm {
    /// `None` for Redis keys without expiry that no schema reads.
    pub(crate) code: Option<FindingCode>,
    pub(crate) status: Status,
}

/// The code of `--include` for Redis keys without expiry that no schema reads.
const UNRECOGNISED: &str = "unrecognised-no-expiry";

/// The statuses of a monitoring plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString)]
pub(crate) enum Status {
    #[strum(serialize = "OK")]
    Ok = 0,
    #[strum(serialize = "WARNING")]
    Warning = 1,
    #[strum(serialize = "CRITICAL")]
    Critical = 2,
    #[strum(serialize = "UNKNOWN")]
    Unknown = 3,
}

as_str!(Status);

impl Status {
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl Alarm {
    /// Every alarm as it is written.
    pub(crate) fn all() -> Vec<String> {
        let mut all = Vec::new();
        for code in INCLUDABLE.map(Some).into_iter().chain([None]) {
            for status in [Status::Warning, Status::Critical] {
                all.push(Self { code, status }.text());
            }
        }
        all
    }

    /// The alarm as it is written.
    pub(crate) fn text(self) -> String {
        let code = self.code.map_or(UNRECOGNISED, |code| code.as_str());
        format!("{code}={}", self.status.as_str())
    }
}

impl FromStr for Alarm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("write one of {}", Self::all().join(", "));
        let (code, status) = text.split_once('=').ok_or_else(wrong)?;
        let mut found = None;
        if code != UNRECOGNISED {
            let Ok(code) = code.parse() else { return Err(wrong()) };
            // The other findings do not keep clients waiting, so they are no reason for an alarm.
            if !INCLUDABLE.contains(&code) {
                return Err(wrong());
            }
            found = Some(code);
        }
        match status.parse() {
            Ok(status @ (Status::Warning | Status::Critical)) => Ok(Self { code: found, status }),
            _ => Err(wrong()),
        }
    }
}

impl Limits {
    /// Adds an alarm of `--include`.
    pub(crate) fn include(&mut self, alarm: Alarm) {
        match alarm.code {
            Some(code) => _ = self.alarms.insert(code, alarm.status),
            None => self.unrecognised = Some(alarm.status),
        }
    }

    /// The requested findings.
    pub(crate) fn sought(&self) -> Vec<FindingCode> {
        let mut sought = vec![FindingCode::NoExpiry];
        sought.extend(self.alarms.keys());
        sought
    }

    /// True for the findings of stuck locks. A lock with more than a year left is found without an
    /// alarm for `excess-ttl` only if it is one.
    fn is_stuck(&self, code: FindingCode) -> bool {
        let is_unrequested = !self.alarms.contains_key(&code);
        code == FindingCode::NoExpiry || code == FindingCode::ExcessTtl && is_unrequested
    }

    /// The status that this many locks with a finding give.
    pub(crate) fn status(&self, code: FindingCode, count: u64) -> Status {
        if self.is_stuck(code) {
            if count >= self.critical {
                return Status::Critical;
            }
            return match self.warning {
                Some(warning) if count >= warning => Status::Warning,
                _ => Status::Ok,
            };
        }
        match self.alarms.get(&code) {
            Some(status) if count > 0 => *status,
            _ => Status::Ok,
        }
    }

    /// The numbers of locks with a finding from which WARNING and CRITICAL apply; `None` for never.
    pub(crate) fn bounds(&self, code: FindingCode) -> (Option<u64>, Option<u64>) {
        match self.alarms.get(&code) {
            _ if self.is_stuck(code) => (self.warning, Some(self.critical)),
            Some(Status::Critical) => (None, Some(1)),
            Some(_) => (Some(1), None),
            None => (None, None),
        }
    }
}

impl Health {
    pub(crate) fn add(&mut self, code: FindingCode, record: &Record) {
        if code == FindingCode::NoExpiry && record.next_request.gives_ttl {
            self.given_ttl.add(record.schema.name.clone(), record, None);
            return;
        }
        self.found.add((code, record.schema.name.clone()), record, None);
    }

    /// The requested findings, and `excess-ttl` if it was found all the same.
    pub(crate) fn codes(&self, limits: &Limits) -> Vec<FindingCode> {
        let mut codes = limits.sought();
        if !codes.contains(&FindingCode::ExcessTtl) && self.count(FindingCode::ExcessTtl) > 0 {
            codes.push(FindingCode::ExcessTtl);
        }
        codes
    }

    /// How many locks have the finding.
    pub(crate) fn count(&self, code: FindingCode) -> u64 {
        let mut count = 0;
        for ((of, _), group) in self.found.groups() {
            if *of == code {
                count += group.count;
            }
        }
        count
    }

    /// The status. A proven critical state stays critical, even if other records were not checked.
    /// Otherwise a gap outranks a warning, because the unchecked records may be worse.
    pub(crate) fn status(&self, limits: &Limits) -> Status {
        let mut statuses = Vec::new();
        for code in self.codes(limits) {
            statuses.push(limits.status(code, self.count(code)));
        }
        if self.unrecognised_no_expiry.is_some_and(|count| count > 0) {
            statuses.extend(limits.unrecognised);
        }
        if statuses.contains(&Status::Critical) {
            Status::Critical
        } else if !self.covered.is_whole() {
            Status::Unknown
        } else if statuses.contains(&Status::Warning)
            || !self.outnumbered.is_empty()
            || self.too_large > 0
            || self.given_ttl.total() > 0
            || self.endless_near_misses > 0
        {
            Status::Warning
        } else {
            Status::Ok
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    fn status(
        orphans: usize,
        warning: Option<u64>,
        critical: u64,
        change: impl FnOnce(&mut Health),
    ) -> Status {
        let mut health = Health::default();
        (0..orphans)
            .for_each(|_| health.add(FindingCode::NoExpiry, &chi(CHI_LOCK, TimeLeft::NoExpiry)));
        change(&mut health);
        health.status(&Limits { warning, critical, ..Limits::default() })
    }

    #[test]
    fn one_orphan_is_critical_unless_limits_say_otherwise() {
        assert_eq!(status(0, None, 1, |_| {}), Status::Ok);
        assert_eq!(status(1, None, 1, |_| {}), Status::Critical);
        assert_eq!(status(4, Some(2), 5, |_| {}), Status::Warning);
        assert_eq!(status(1, Some(2), 5, |_| {}), Status::Ok);
        assert_eq!(status(5, Some(2), 5, |_| {}), Status::Critical);
    }

    /// Rule: what was not looked at is never OK.
    #[test]
    fn a_gap_is_unknown_unless_what_is_known_is_critical() {
        let gap = |health: &mut Health| health.covered.leave_out("a master", "no answer");
        assert_eq!(status(0, None, 1, gap), Status::Unknown);
        assert_eq!(status(3, Some(1), 5, gap), Status::Unknown);
        assert_eq!(status(5, Some(1), 5, gap), Status::Critical);
    }

    /// Rule: more foreign records than a schema's own under its prefix are never OK.
    #[test]
    fn more_foreign_than_claimed_records_are_a_warning() {
        assert_eq!(
            status(0, None, 1, |health| health.outnumbered.push(("express".to_owned(), 1, 9))),
            Status::Warning
        );
    }

    #[test]
    fn one_lock_with_an_included_finding_gives_its_status() {
        let mut health = Health::default();
        health.add(FindingCode::ExcessTtl, &chi(CHI_LOCK, TimeLeft::Millis(600_000)));
        for (status, expected) in
            [(Status::Warning, Status::Warning), (Status::Critical, Status::Critical)]
        {
            let alarms = BTreeMap::from([
                (FindingCode::ExcessTtl, status),
                (FindingCode::Overdue, Status::Critical),
            ]);
            let limits = Limits { critical: 1, alarms, ..Limits::default() };
            assert_eq!(health.status(&limits), expected);
        }
        assert_eq!(
            health.status(&Limits { critical: 1, ..Limits::default() }),
            Status::Critical,
            "found without being requested, so that it is a stuck lock"
        );
    }

    #[test]
    fn an_alarm_reads_what_it_writes_and_nothing_else() {
        for text in Alarm::all() {
            let alarm: Alarm = text.parse().unwrap();
            assert_eq!(alarm.text(), text);
        }
        for text in
            ["excess-ttl", "excess-ttl=OK", "no-expiry=WARNING", "oversized=WARNING", "=", ""]
        {
            assert!(text.parse::<Alarm>().is_err(), "{text}");
        }
    }
}
