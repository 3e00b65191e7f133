//! Selects records by the filters that `list` and related commands share.

use bstr::ByteSlice as _;

use super::glob;
use super::status_class::StatusClass;
use super::unproven::{Missing, missing_age};
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{Evidence, FieldSet, Record, TimeLeft, ValueField};
use crate::domain::schema::State;

/// Filters, all of which a record must pass. The default accepts every record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) states: Vec<State>,
    /// At least this old, in milliseconds.
    pub(crate) older_than: Option<u64>,
    /// At most this old, in milliseconds.
    pub(crate) newer_than: Option<u64>,
    /// The weakest evidence that a finding may have. An age must be proven in any case.
    pub(crate) finding_evidence: Evidence,
    /// Less than this many milliseconds left.
    pub(crate) ttl_below: Option<u64>,
    /// More than this many milliseconds left, or no expiry.
    pub(crate) ttl_above: Option<u64>,
    pub(crate) no_expiry: bool,
    pub(crate) owner_glob: Option<Vec<u8>>,
    pub(crate) fingerprint_glob: Option<Vec<u8>>,
    pub(crate) statuses: Vec<StatusClass>,
    /// Bytes that the body of the stored response must contain; the body has to be read whole.
    pub(crate) body_contains: Option<Vec<u8>>,
    pub(crate) key_glob: Option<Vec<u8>>,
    pub(crate) findings: Vec<FindingCode>,
    /// Fields that must be known, whatever their values.
    pub(crate) known: FieldSet,
}

/// Whether a command processes a record; if so, with the command's plan for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected<T = ()> {
    Yes(T),
    No,
    /// No filter rejects the record, but the evidence for one of the filters is missing.
    Unproven(Missing),
}

impl Selected {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes(()), other) => other,
            (unproven, _) => unproven,
        }
    }
}

impl Selection {
    /// True if the idempotency key passes. This can be checked before any value is read.
    pub(crate) fn passes_key(&self, key: &[u8]) -> bool {
        self.key_glob.as_ref().is_none_or(|pattern| glob::matches(pattern, key))
    }

    /// True if values have to be read whole.
    pub(crate) fn reads_bodies(&self) -> bool {
        self.body_contains.is_some()
    }

    /// True if values are selected that cannot be decoded.
    fn seeks_unreadable(&self) -> bool {
        self.states.contains(&State::Unreadable) || self.findings.contains(&FindingCode::Unreadable)
    }

    /// True if a filter or the grouping needs a field of the value, or the body.
    pub(crate) fn reads_values(&self) -> bool {
        self.reads_bodies() || !self.needed_fields().is_empty()
    }

    /// The fields of values that the filters need. A scan reads values until these are known.
    pub(crate) fn needed_fields(&self) -> FieldSet {
        let mut needed = self.known;
        if self.owner_glob.is_some() {
            needed.insert(ValueField::Owner);
        }
        if self.fingerprint_glob.is_some() {
            needed.insert(ValueField::Fingerprint);
        }
        if !self.statuses.is_empty() {
            needed.insert(ValueField::Status);
        }
        // Findings compare times as well.
        if self.older_than.is_some() || self.newer_than.is_some() || !self.findings.is_empty() {
            needed.insert(ValueField::Time);
        }
        needed
    }

    /// The fields until which a scan reads values. Only its end shows that a value can be decoded.
    pub(crate) fn scanned_fields(&self) -> FieldSet {
        let mut scanned = self.needed_fields();
        if self.seeks_unreadable() {
            scanned.insert(ValueField::End);
        }
        scanned
    }

    /// True if unreadable values are selected, and the unread end of this record decides whether
    /// it is one.
    fn may_be_unreadable(&self, record: &Record) -> bool {
        self.seeks_unreadable()
            && record.state != State::Unreadable
            && !self.states.contains(&record.state)
            && !record.is_whole()
    }

    /// The options of the filters that need a field of the value, each with the field's name in
    /// `fields` of a schema.
    pub(crate) fn field_options(&self) -> Vec<(&'static str, &'static str)> {
        let mut options = Vec::new();
        if self.owner_glob.is_some() {
            options.push(("--owner", "owner"));
        }
        if self.fingerprint_glob.is_some() {
            options.push(("--fingerprint", "fingerprint"));
        }
        if !self.statuses.is_empty() {
            options.push(("--status", "status"));
        }
        if self.body_contains.is_some() {
            options.push(("--body-contains", "body"));
        }
        options
    }

    /// Whether all filters accept the record.
    pub(crate) fn selects(&self, record: &Record) -> Selected {
        // Missing evidence matters only for records that all other filters accept.
        if !self.is_about(record) {
            return Selected::No;
        }
        let known = self.selects_age(record).and(self.selects_findings(record));
        self.selects_unread(record).and(known)
    }

    /// Unproven if a filter needs a part of the record's values that was not read.
    fn selects_unread(&self, record: &Record) -> Selected {
        if self.compares_ttls() && self.needs_unknown_end(record) {
            return Selected::Unproven(Missing::Expiry);
        }
        if self.findings.is_empty() && self.may_be_unreadable(record) {
            return Selected::Unproven(Missing::Format);
        }
        let unread = record.unread_fields();
        if unread.is_empty() {
            return Selected::Yes(());
        }
        let depends_on_format = !self.states.is_empty()
            || self.reads_bodies()
            || !self.needed_fields().is_empty()
            || (self.compares_ttls() && record.schema.contains_expiry());
        if record.is_undecided() && depends_on_format {
            return Selected::Unproven(Missing::Format);
        }
        // The filters by age and by finding report missing times themselves, because a TTL may
        // replace them.
        let of_filters = [ValueField::Owner, ValueField::Fingerprint, ValueField::Status];
        let needed = self.needed_fields().intersection(FieldSet::of(&of_filters));
        match unread.intersection(needed).first() {
            Some(field) => Selected::Unproven(Missing::Field(field)),
            None => Selected::Yes(()),
        }
    }

    /// Whether the filters that need no TTL of the deployment accept the record, as far as its
    /// values were read. A record that they reject needs no evidence about its TTLs.
    pub(crate) fn is_about(&self, record: &Record) -> bool {
        if !self.passes_key(&record.key) || !self.passes_ttl(record) {
            return false;
        }
        // The unread rest decides what such a record is.
        if record.is_undecided() || self.may_be_unreadable(record) {
            return true;
        }
        if !self.states.is_empty() && !self.states.contains(&record.state) {
            return false;
        }
        let unread = record.unread_fields();
        if let Some(pattern) = &self.owner_glob
            && !unread.contains(ValueField::Owner)
            && !has_match(pattern, record.owner())
        {
            return false;
        }
        if let Some(pattern) = &self.fingerprint_glob
            && !unread.contains(ValueField::Fingerprint)
            && !has_match(pattern, record.fingerprint().map(str::as_bytes))
        {
            return false;
        }
        if !self.statuses.is_empty()
            && !unread.contains(ValueField::Status)
            && !self.has_status(record)
        {
            return false;
        }
        let Some(text) = &self.body_contains else { return true };
        let Some(response) = record.stored() else { return false };
        response.body().contains_str(text)
    }

    fn selects_age(&self, record: &Record) -> Selected {
        if self.older_than.is_none() && self.newer_than.is_none() {
            return Selected::Yes(());
        }
        let range = self.older_than.unwrap_or(0)..=self.newer_than.unwrap_or(u64::MAX);
        // A record of estimated age may be older or younger than it seems. Reads follow the same
        // rule as changes, so that `list` shows what `purge` removes, and its names can be piped
        // into commands that change records.
        let Some(age) = record.age else { return Selected::Unproven(missing_age(record)) };
        if age.evidence == Evidence::Estimated {
            return Selected::Unproven(missing_age(record));
        }
        if range.contains(&age.millis) { Selected::Yes(()) } else { Selected::No }
    }

    fn selects_findings(&self, record: &Record) -> Selected {
        if self.findings.is_empty() {
            return Selected::Yes(());
        }
        let mut first_unproven = None;
        for finding in &record.findings {
            if !self.findings.contains(&finding.code) {
                continue;
            }
            // One finding with enough evidence selects the record, whatever the others lack.
            if finding.evidence >= self.finding_evidence {
                return Selected::Yes(());
            }
            if first_unproven.is_none() {
                first_unproven = Some(finding);
            }
        }
        match first_unproven {
            Some(finding) => Selected::Unproven(Missing::Ttl(finding.code.depends_on())),
            None if self.may_be_unreadable(record) => Selected::Unproven(Missing::Format),
            None if self.may_be_overdue(record) => Selected::Unproven(missing_age(record)),
            None => Selected::No,
        }
    }

    /// True if overdue locks are selected, and the age of this one is not proven.
    fn may_be_overdue(&self, record: &Record) -> bool {
        self.findings.contains(&FindingCode::Overdue)
            && record.state == State::InProgress
            && record.age.is_none_or(|age| age.evidence == Evidence::Estimated)
    }

    /// True if the record's response has one of the statuses.
    fn has_status(&self, record: &Record) -> bool {
        let Some(response) = record.stored() else { return false };
        let Some(status) = response.status else { return false };
        self.statuses.iter().any(|class| class.contains(status))
    }

    fn compares_ttls(&self) -> bool {
        self.ttl_below.is_some() || self.ttl_above.is_some() || self.no_expiry
    }

    fn passes_ttl(&self, record: &Record) -> bool {
        if !self.compares_ttls() {
            return true;
        }
        // The unread rest may contain an expiry.
        if (record.is_undecided() && record.schema.contains_expiry())
            || self.needs_unknown_end(record)
        {
            return true;
        }
        let time_left = record.time_left();
        if let Some(limit) = self.ttl_below {
            let Some(TimeLeft::Millis(left)) = time_left else { return false };
            if left >= limit {
                return false;
            }
        }
        if let Some(limit) = self.ttl_above {
            match time_left {
                Some(TimeLeft::Millis(left)) if left <= limit => return false,
                // A record without expiry has more time left than any limit.
                Some(TimeLeft::Millis(_) | TimeLeft::NoExpiry) => {}
                None => return false,
            }
        }
        !self.no_expiry || time_left == Some(TimeLeft::NoExpiry)
    }

    /// True if a filter needs the end of the record, and the record ends by itself at an unknown
    /// time.
    fn needs_unknown_end(&self, record: &Record) -> bool {
        if !record.contains_expiry() || record.time_left().is_some() {
            return false;
        }
        // A value with a time in it expires, even if the server's time is unknown.
        let needs_time = self.ttl_below.is_some() || self.ttl_above.is_some();
        needs_time || record.deadline().is_none()
    }
}

/// True if the text exists and matches the pattern.
fn has_match(pattern: &[u8], text: Option<&[u8]>) -> bool {
    let Some(text) = text else { return false };
    glob::matches(pattern, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::diagnosis;
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};
    use crate::domain::schema::TtlOf;

    /// A lock that is ten seconds old by the default lock TTL, held by `w`, as event-driven keeps
    /// it.
    fn lock() -> Record {
        record(
            "event-driven",
            &[(text("w"), TimeLeft::Millis(20_000)), (Content::Absent, TimeLeft::Millis(0))],
        )
    }

    /// A lock that is ten seconds old by the time in its value.
    fn lock_with_time() -> Record {
        record("timed", &[(text(r#"{"done":false,"at":990000}"#), TimeLeft::Millis(20_000))])
    }

    fn passes(record: &Record, change: impl FnOnce(&mut Selection)) -> bool {
        let mut selection = Selection::default();
        change(&mut selection);
        selection.selects(record) == Selected::Yes(())
    }

    #[test]
    fn the_default_lets_everything_through() {
        for record in
            [lock(), chi(CHI_RESULT, TimeLeft::NoExpiry), chi("not json", TimeLeft::Millis(1))]
        {
            assert!(passes(&record, |_| {}));
        }
    }

    #[test]
    fn states_are_alternatives() {
        let states = vec![State::InProgress, State::Unreadable];
        assert!(passes(&lock(), |s| s.states.clone_from(&states)));
        assert!(passes(&chi("not json", TimeLeft::NoExpiry), |s| s.states.clone_from(&states)));
        assert!(!passes(&chi(CHI_RESULT, TimeLeft::NoExpiry), |s| s.states = states));
    }

    #[test]
    fn age_is_at_least_and_an_unknown_one_does_not_pass() {
        let old = lock_with_time();
        assert!(passes(&old, |s| s.older_than = Some(10_000)));
        assert!(!passes(&old, |s| s.older_than = Some(10_001)));
        assert!(passes(&old, |s| s.newer_than = Some(10_000)));
        assert!(!passes(&old, |s| s.newer_than = Some(9_999)));
        assert!(!passes(&old, |s| (s.older_than, s.newer_than) = (Some(5_000), Some(9_000))));
        let stays = Selection { older_than: Some(0), ..Selection::default() };
        assert_eq!(
            stays.selects(&chi(CHI_LOCK, TimeLeft::NoExpiry)),
            Selected::Unproven(Missing::Age)
        );
    }

    /// Rule: a record of estimated age may be older or younger than it looks.
    #[test]
    fn an_estimated_age_is_left_out_whatever_it_is() {
        let by_ttl = Selected::Unproven(Missing::Ttl(TtlOf::Lock));
        for (older_than, newer_than) in
            [(Some(10_000), None), (Some(10_001), None), (None, Some(10_000)), (None, Some(9_999))]
        {
            let selection = Selection { older_than, newer_than, ..Selection::default() };
            assert_eq!(selection.selects(&lock()), by_ttl, "{older_than:?} {newer_than:?}");
        }
        let of_others = Selection {
            older_than: Some(10_000),
            states: vec![State::Completed],
            ..Selection::default()
        };
        assert_eq!(of_others.selects(&lock()), Selected::No, "another filter decides");
    }

    #[test]
    fn an_estimated_finding_proves_nothing() {
        let mut long = chi(CHI_LOCK, TimeLeft::Millis(600_000));
        long.findings = diagnosis::findings(&long, &diagnosis::Thresholds::default(), None);
        let judge = |finding_evidence, states: &[State]| {
            let (findings, states) = (vec![FindingCode::ExcessTtl], states.to_vec());
            Selection { findings, finding_evidence, states, ..Selection::default() }.selects(&long)
        };
        assert_eq!(judge(Evidence::Estimated, &[]), Selected::Yes(()));
        assert_eq!(judge(Evidence::Stated, &[]), Selected::Unproven(Missing::Ttl(TtlOf::Lock)));
        assert_eq!(judge(Evidence::Stated, &[State::Completed]), Selected::No);
    }

    #[test]
    fn the_time_left_is_strictly_below_or_above_and_for_ever_is_above_all() {
        assert!(passes(&lock(), |s| s.ttl_below = Some(20_001)));
        assert!(!passes(&lock(), |s| s.ttl_below = Some(20_000)));
        assert!(passes(&lock(), |s| s.ttl_above = Some(19_999)));
        assert!(!passes(&lock(), |s| s.ttl_above = Some(20_000)));
        let stays = chi(CHI_LOCK, TimeLeft::NoExpiry);
        assert!(passes(&stays, |s| s.ttl_above = Some(u64::MAX)));
        assert!(!passes(&stays, |s| s.ttl_below = Some(u64::MAX)));
        assert!(passes(&stays, |s| s.no_expiry = true));
        assert!(!passes(&lock(), |s| s.no_expiry = true));
    }

    #[test]
    fn owner_key_and_findings() {
        assert!(passes(&lock(), |s| s.owner_glob = Some(b"w".to_vec())));
        assert!(passes(&lock(), |s| s.owner_glob = Some(b"w*".to_vec())));
        assert!(!passes(&lock(), |s| s.owner_glob = Some(b"v".to_vec())));
        assert!(
            !passes(&chi(CHI_LOCK, TimeLeft::NoExpiry), |s| s.owner_glob = Some(b"*".to_vec())),
            "no owner is no match"
        );
        assert!(passes(&lock(), |s| s.key_glob = Some(b"[j-l]".to_vec())));
        assert!(!passes(&lock(), |s| s.key_glob = Some(b"k?".to_vec())));
        let mut stuck = chi(CHI_LOCK, TimeLeft::NoExpiry);
        stuck.findings = diagnosis::findings(&stuck, &diagnosis::Thresholds::default(), None);
        assert!(
            passes(&stuck, |s| s.findings = vec![FindingCode::ExcessTtl, FindingCode::NoExpiry])
        );
        assert!(!passes(&stuck, |s| s.findings = vec![FindingCode::ExcessTtl]));
    }

    #[test]
    fn the_response_has_a_status_and_a_body() {
        let of = |status: &str| vec![status.parse().unwrap()];
        let stored = text(r#"{"statusCode":201,"body":"paid 10"}"#);
        let result = record(
            "event-driven",
            &[(Content::Absent, TimeLeft::Millis(0)), (stored, TimeLeft::Millis(9))],
        );
        assert!(
            passes(&result, |s| s.statuses = of("2xx"))
                && !passes(&result, |s| s.statuses = of("5xx"))
        );
        assert!(!passes(&lock(), |s| s.statuses = of("201")), "a lock has no response");
        assert!(passes(&result, |s| s.body_contains = Some(b"id 1".to_vec())));
        assert!(!passes(&result, |s| s.body_contains = Some(b"paid 11".to_vec())));
    }

    #[test]
    fn all_filters_must_pass() {
        assert!(!passes(&lock(), |s| {
            s.owner_glob = Some(b"w".to_vec());
            s.states = vec![State::Completed];
        }));
    }
}
