//! The locks of a deployment that keep clients waiting, counted by the expiries of all keys.

use std::sync::Arc;

use super::refusal::{FactResult, RefusedFact};
use crate::domain::change::orphan;
use crate::domain::covered::Covered;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{Record, TimeLeft};
use crate::domain::schema::Schema;
use crate::domain::select::{Missing, Selected};

/// The findings of these locks.
const COUNTED: [FindingCode; 2] = [FindingCode::NoExpiry, FindingCode::ExcessTtl];

/// The locks that were counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockCount {
    pub(crate) schemas: Vec<LocksOfSchema>,
    /// Locks whose values do not show whether they expire.
    undecided: u64,
    /// Values with a long TTL that were not read, because the time did not suffice.
    pub(crate) unread_long: u64,
    pub(crate) covered: Covered,
}

/// The locks of one schema that were counted.
#[derive(Debug, Clone)]
pub(crate) struct LocksOfSchema {
    pub(crate) schema: Arc<Schema>,
    /// Those that never expire.
    pub(crate) endless: u64,
    /// Those with more time left than the stated lock TTL, or else the schema's default.
    pub(crate) longer: u64,
    /// The most milliseconds that one of these has left.
    pub(crate) longest_ms: u64,
}

impl LockCount {
    /// Counts the record, if it is such a lock.
    pub(crate) fn add(&mut self, record: &Record) {
        let code = match orphan::of(record, &COUNTED) {
            Selected::Yes(orphan) => orphan.code,
            Selected::Unproven(Missing::Ttl(_)) => FindingCode::ExcessTtl,
            Selected::Unproven(_) => {
                self.undecided += 1;
                return;
            }
            Selected::No => return,
        };
        let name = &record.schema.name;
        let position = self.schemas.iter().position(|of| of.schema.name == *name);
        let index = position.unwrap_or_else(|| {
            let schema = Arc::clone(&record.schema);
            self.schemas.push(LocksOfSchema { schema, endless: 0, longer: 0, longest_ms: 0 });
            self.schemas.len() - 1
        });
        let of = &mut self.schemas[index];
        if code == FindingCode::NoExpiry {
            of.endless += 1;
        } else {
            of.longer += 1;
            let left = record.lock().map_or(TimeLeft::NoExpiry, |lock| lock.time_left);
            of.longest_ms = of.longest_ms.max(left.millis().unwrap_or_default());
        }
    }

    /// Ends the count. `unread` values are too long to show whether they are locks.
    pub(crate) fn close(&mut self, unread: u64) {
        self.schemas.sort_by(|one, other| one.schema.name.cmp(&other.schema.name));
        let undecided = self.undecided + unread;
        if undecided > 0 {
            self.covered.leave_out(format!("{undecided} values"), "they may be locks");
        }
    }

    /// Passes if all locks without expiry are counted, or `with_long` also those with a long TTL.
    ///
    /// # Errors
    /// Why there may be more.
    pub(super) fn check_all(&self, with_long: bool) -> FactResult<()> {
        let why = match self.covered.unread() {
            Some(unread) => format!("not read: {unread}"),
            None if with_long && self.unread_long > 0 => {
                format!("{} values may be locks, and were not read", self.unread_long)
            }
            None if self.covered.read == 0 => "there is no key of a known schema".to_owned(),
            None => return Ok(()),
        };
        let instead = "Count them with `idemctl check`.";
        Err(RefusedFact::unknown("the expiries of all keys", why, instead))
    }
}
