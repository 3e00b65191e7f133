//! Health: what a monitoring plugin makes of the records of a server.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::Record;
use crate::domain::select::Tally;

#[derive(Debug, Clone, Default)]
pub struct Health {
    pub(crate) orphaned: Tally<String>,
    pub(crate) records: u64,
    /// By schema, with more foreign records than its own under its prefix: how many of each.
    pub(crate) outnumbered: Vec<(String, u64, u64)>,
    pub(crate) foreign: u64,
    pub(crate) keys: u64,
    pub(crate) gap: Option<String>,
}

/// From how many orphaned locks on a status is given.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub(crate) warning: Option<u64>,
    pub(crate) critical: u64,
}

/// The statuses of a monitoring plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub(crate) enum Status {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

as_str!(Status);

impl Status {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl Health {
    pub(crate) fn add_orphan(&mut self, record: &Record) {
        self.orphaned.add(record.schema.name.clone(), record, None);
    }

    /// The status. What is known to be critical is critical, whatever was not looked at; else a gap weighs more than a warning,
    /// for behind the gap may be worse.
    pub(crate) fn status(&self, limits: Limits) -> Status {
        let orphaned = self.orphaned.total();
        if orphaned >= limits.critical {
            Status::Critical
        } else if self.gap.is_some() {
            Status::Unknown
        } else if limits.warning.is_some_and(|warning| orphaned >= warning) || !self.outnumbered.is_empty() {
            Status::Warning
        } else {
            Status::Ok
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    fn status(orphans: usize, warning: Option<u64>, critical: u64, change: impl FnOnce(&mut Health)) -> Status {
        let mut health = Health::default();
        (0..orphans).for_each(|_| health.add_orphan(&chi(CHI_LOCK, Expiry::Never)));
        change(&mut health);
        health.status(Limits { warning, critical })
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
        let gap = |health: &mut Health| health.gap = Some("a master does not answer".to_owned());
        assert_eq!(status(0, None, 1, gap), Status::Unknown);
        assert_eq!(status(3, Some(1), 5, gap), Status::Unknown);
        assert_eq!(status(5, Some(1), 5, gap), Status::Critical);
    }

    /// Rule: more foreign records than a schema's own under its prefix are never OK.
    #[test]
    fn more_foreign_than_claimed_records_are_a_warning() {
        assert_eq!(status(0, None, 1, |health| health.outnumbered.push(("express".to_owned(), 1, 9))), Status::Warning);
    }
}
