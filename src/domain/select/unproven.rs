//! Records that a selection by age or TTL leaves out because evidence is missing.

use std::collections::BTreeMap;

use crate::domain::record::{Evidence, Record, RecordName, TimeLeft, ValueField};
use crate::domain::schema::{State, TtlOf};

/// The evidence that is missing for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// A TTL of this deployment. Only the schema's default is known.
    Ttl(TtlOf),
    /// The age of the record. It is unknown because the record never expires, has more time left
    /// than the TTL, or got its expiry from an operator.
    Age,
    /// A field of the value, in a part of the value that idemctl does not read because the value is
    /// too large.
    Field(ValueField),
    /// The format of the value, for the same reason.
    Format,
    /// A format that the whole value matches. Its beginning matches one, but the rest deviates from
    /// it, so another program may have written the value.
    WholeFormat,
    /// The time at which the record ends: its value contains an expiry that is not a time, or the
    /// server's time is unknown.
    Expiry,
}

impl Missing {
    /// Every kind of missing evidence, in the order of the JSON.
    pub(crate) const ALL: [Self; 10] = [
        Self::Ttl(TtlOf::Lock),
        Self::Ttl(TtlOf::Result),
        Self::Age,
        Self::Field(ValueField::Owner),
        Self::Field(ValueField::Fingerprint),
        Self::Field(ValueField::Status),
        Self::Field(ValueField::Time),
        Self::Format,
        Self::WholeFormat,
        Self::Expiry,
    ];
}

impl Missing {
    /// The word in JSON output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ttl(TtlOf::Lock) => "lock_ttl",
            Self::Ttl(TtlOf::Result) => "result_ttl",
            Self::Age => "age",
            Self::Field(field) => field.as_str(),
            Self::Format => "format",
            Self::WholeFormat => "whole_format",
            Self::Expiry => "expiry",
        }
    }
}

/// The evidence that is missing for the age of a record: of its lock, or of its result.
pub(crate) fn missing_age(record: &Record) -> Missing {
    if record.unread_fields().contains(ValueField::Time) {
        return Missing::Field(ValueField::Time);
    }
    // What is left of a released record's time may be that of its lock.
    if record.state == State::Released {
        return Missing::Age;
    }
    let is_stored = record.state.is_result();
    let of = if is_stored { TtlOf::Result } else { TtlOf::Lock };
    // A TTL of the deployment helps only if the record expires, and only if it is not known yet.
    // If an operator gave a lock its expiry, no TTL shows its age.
    let expires = matches!(record.kept_for(), Some(TimeLeft::Millis(_)));
    let is_by_operator = record.is_extended && !is_stored;
    if expires && !is_by_operator && record.schema.ttl_evidence(of) == Evidence::Estimated {
        Missing::Ttl(of)
    } else {
        Missing::Age
    }
}

/// Records that were left out, counted by schema and missing evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unproven {
    of_schemas: BTreeMap<(String, Missing), LeftOut>,
}

/// Records of one schema that were left out because of the same missing evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) count: u64,
    /// How many of them have a value without expiry at the lock's Redis key, so that they may be
    /// locks that never expire.
    pub(crate) without_expiry: u64,
    /// The most time that one of them has left, in milliseconds; `None` if none of them expires.
    pub(crate) longest_ms: Option<u64>,
    /// The first of them, as an example.
    pub(crate) first: Option<RecordName>,
}

impl Unproven {
    /// Counts a record for which this evidence is missing.
    pub(crate) fn add(&mut self, record: &Record, missing: Missing) {
        let left_out = self.of_schemas.entry((record.schema.name.clone(), missing)).or_default();
        left_out.count += 1;
        if left_out.first.is_none() {
            left_out.first = Some(RecordName::of(record));
        }
        let lock = &record.seen.keys[record.schema.lock_key_index()];
        let exists = record.schema.has_locks() && !lock.content.is_absent();
        if exists && lock.time_left == TimeLeft::NoExpiry {
            left_out.without_expiry += 1;
        }
        // `None` is less than any time, so a record without expiry leaves the maximum as it is.
        let left_ms = record.kept_for().and_then(|time_left| time_left.millis());
        left_out.longest_ms = left_out.longest_ms.max(left_ms);
    }

    /// Adds other records that were left out.
    pub(crate) fn extend(&mut self, others: Self) {
        for (evidence, others) in others.of_schemas {
            let left_out = self.of_schemas.entry(evidence).or_default();
            left_out.count += others.count;
            left_out.without_expiry += others.without_expiry;
            left_out.longest_ms = left_out.longest_ms.max(others.longest_ms);
            left_out.first = left_out.first.take().or(others.first);
        }
    }

    /// How many records were left out because this evidence is missing.
    pub(crate) fn count(&self, missing: Missing) -> u64 {
        let mut count = 0;
        for ((_, evidence), left_out) in &self.of_schemas {
            if *evidence == missing {
                count += left_out.count;
            }
        }
        count
    }

    /// How many of these may be locks that never expire.
    pub(crate) fn count_without_expiry(&self, missing: Missing) -> u64 {
        let mut count = 0;
        for ((_, evidence), left_out) in &self.of_schemas {
            if *evidence == missing {
                count += left_out.without_expiry;
            }
        }
        count
    }

    /// The records of each schema that were left out, by the schema's name.
    pub(crate) fn of_schemas(&self) -> impl Iterator<Item = (&str, Missing, &LeftOut)> {
        self.of_schemas
            .iter()
            .map(|((schema, missing), left_out)| (schema.as_str(), *missing, left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    #[test]
    fn a_ttl_would_tell_the_age_of_what_expires() {
        assert_eq!(missing_age(&chi(CHI_LOCK, TimeLeft::Millis(9))), Missing::Ttl(TtlOf::Lock));
        assert_eq!(missing_age(&chi(CHI_RESULT, TimeLeft::Millis(9))), Missing::Ttl(TtlOf::Result));
        assert_eq!(missing_age(&chi(CHI_LOCK, TimeLeft::NoExpiry)), Missing::Age);
    }
}
