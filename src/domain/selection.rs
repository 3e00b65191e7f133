//! Choosing records: the filters that `list` and its kin share.

use crate::domain::glob;
use crate::domain::observation::Expiry;
use crate::domain::record::Record;
use crate::domain::schema::State;

/// Filters, all of which a record must pass. The default lets everything through.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Any of these states.
    pub states: Vec<State>,
    /// At least this old, in milliseconds; a record of unknown age does not pass.
    pub older_than: Option<u64>,
    /// Less than this many milliseconds left.
    pub ttl_below: Option<u64>,
    /// More than this many milliseconds left, or no expiry.
    pub ttl_above: Option<u64>,
    /// No expiry.
    pub no_expiry: bool,
    /// Held by this owner.
    pub owner: Option<Vec<u8>>,
    /// The idempotency key matches this glob.
    pub key_glob: Option<Vec<u8>>,
    /// Any of these findings, by code.
    pub findings: Vec<&'static str>,
}

impl Selection {
    /// True when the idempotency key passes, which can be told before anything is read.
    pub fn passes_key(&self, key: &[u8]) -> bool {
        self.key_glob.as_ref().is_none_or(|pattern| glob::matches(pattern, key))
    }

    /// True when the record passes every filter.
    pub fn passes(&self, record: &Record) -> bool {
        self.passes_key(&record.key)
            && (self.states.is_empty() || self.states.contains(&record.state))
            && self.older_than.is_none_or(|least| record.age.is_some_and(|age| age.millis >= least))
            && self.passes_ttl(record.expiry())
            && self.owner.as_ref().is_none_or(|owner| record.owner() == Some(owner))
            && (self.findings.is_empty() || record.findings.iter().any(|finding| self.findings.contains(&finding.code)))
    }

    fn passes_ttl(&self, expiry: Option<Expiry>) -> bool {
        let below = |limit| matches!(expiry, Some(Expiry::In(left)) if left < limit);
        let above = |limit| match expiry {
            Some(Expiry::In(left)) => left > limit,
            Some(Expiry::Never) => true,
            None => false,
        };
        self.ttl_below.is_none_or(below)
            && self.ttl_above.is_none_or(above)
            && (!self.no_expiry || expiry == Some(Expiry::Never))
    }
}
