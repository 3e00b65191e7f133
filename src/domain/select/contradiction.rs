//! Default TTLs that the records of a deployment contradict.

use std::sync::Arc;

use crate::domain::record::{Evidence, KeyState, Record, TimeLeft, age};
use crate::domain::schema::{Schema, State, TtlOf};

/// Records that contradict a schema's default TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// Milliseconds that a schema gives.
    pub(crate) default_ms: u64,
    /// The most milliseconds that a record has left.
    pub(crate) most_ms: u64,
    pub(crate) records: u64,
}

/// Contradicted defaults, in the order of the schemas' names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contradictions {
    found: Vec<(String, TtlOf, Contradiction)>,
}

impl Contradictions {
    /// Counts a record, if it contradicts a default TTL.
    pub(crate) fn note(&mut self, record: &Record) {
        self.note_lock(record);
        if record.state.is_result() {
            self.note_key(record, TtlOf::Result, record.result());
        }
    }

    /// Notes the record's lock alone.
    pub(crate) fn note_lock(&mut self, record: &Record) {
        if shows_lock_ttl(record) {
            self.note_key(record, TtlOf::Lock, record.lock());
        }
    }

    fn note_key(&mut self, record: &Record, of: TtlOf, key: Option<&KeyState>) {
        if !key_contradicts(record, of, key) {
            return;
        }
        let Some(key) = key else { return };
        let TimeLeft::Millis(left) = key.time_left else { return };
        let Some(default) = record.schema.ttl(of) else { return };
        for (schema, ttl, found) in &mut self.found {
            if *schema == record.schema.name && *ttl == of {
                found.most_ms = found.most_ms.max(left);
                found.records += 1;
                return;
            }
        }
        // This runs for each of a million records: a name is copied the first time only.
        let found = Contradiction { default_ms: age::millis(default), most_ms: left, records: 1 };
        let place = self.found.partition_point(|(schema, ..)| *schema < record.schema.name);
        self.found.insert(place, (record.schema.name.clone(), of, found));
    }

    /// The contradictions, by schema and TTL.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, TtlOf, Contradiction)> {
        self.found.iter().map(|(schema, of, found)| (schema.as_str(), *of, *found))
    }
}

/// True if the record contradicts a default TTL of its schema.
pub(crate) fn contradicts_default(record: &Record) -> bool {
    if shows_lock_ttl(record) && key_contradicts(record, TtlOf::Lock, record.lock()) {
        return true;
    }
    record.state.is_result() && key_contradicts(record, TtlOf::Result, record.result())
}

/// False for a lock that shows nothing about the service's TTL: another program may have written
/// the value, an operator may have set the expiry, or the value holds the expiry that counts.
fn shows_lock_ttl(record: &Record) -> bool {
    record.state != State::Unreadable && !record.is_extended && !record.lock_contains_expiry()
}

fn key_contradicts(record: &Record, of: TtlOf, key: Option<&KeyState>) -> bool {
    let Some(key) = key else { return false };
    let TimeLeft::Millis(left) = key.time_left else { return false };
    contradicts(&record.schema, of, left)
}

/// True if so many milliseconds left are more than a default of the schema allows. A TTL that the
/// deployment states is not a default.
fn contradicts(schema: &Schema, of: TtlOf, left: u64) -> bool {
    let Some(default) = schema.ttl(of) else { return false };
    let most = age::millis(default).saturating_add(age::TTL_TOLERANCE_MS);
    left > most && schema.ttl_evidence(of) == Evidence::Estimated
}

/// True if a record whose Redis keys expire like this (`None`: not there) may be a lock that
/// outlasts the default lock TTL of one of these schemas, so that its value has to be read.
pub(crate) fn may_outlast(schemas: &[Arc<Schema>], expiries: &[Option<TimeLeft>]) -> bool {
    for schema in schemas {
        let Some(Some(TimeLeft::Millis(left))) = expiries.get(schema.lock_key_index()) else {
            continue;
        };
        if schema.has_locks() && contradicts(schema, TtlOf::Lock, *left) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    #[test]
    fn a_ttl_above_a_default_contradicts_the_default() {
        let mut found = Contradictions::default();
        for left in [60_000, 61_000, 62_000, 600_000] {
            found.note(&chi(CHI_LOCK, TimeLeft::Millis(left)));
        }
        found.note(&chi(CHI_RESULT, TimeLeft::Millis(86_400_000)));
        found.note(&chi("?", TimeLeft::Millis(90_000_000)));
        let told: Vec<_> = found.iter().collect();
        let contradiction = Contradiction { default_ms: 60_000, most_ms: 600_000, records: 2 };
        assert_eq!(told, [("go-chi", TtlOf::Lock, contradiction)]);
    }
}
