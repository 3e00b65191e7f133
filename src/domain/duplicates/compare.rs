//! What a record is compared by, and why some records cannot be compared.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use strum::IntoStaticStr;

use super::canonical;
use super::comparable::{Comparable, NotCompared, UnknownBecause};
use super::key_stem::key_stem;
use super::record_time::RecordTime;
use super::stored_value::{StoredValues, at, in_value};
use crate::domain::as_str::as_str;
use crate::domain::record::{Json, Record, Stored, ValueField};
use crate::domain::schema::State;
use crate::domain::step::Answer;

/// What records are compared by.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompareRule {
    /// JSON pointers into the response body, or after `value:` into the whole stored value. All of
    /// them must have equal values.
    pub(crate) pointers: Vec<String>,
    /// True if the owners must be equal as well.
    pub(crate) with_owner: bool,
    /// True if the stems of the keys must be equal as well.
    pub(crate) with_stem: bool,
    /// The part of the key, split at `:`, that must be equal as well; the first is 1.
    pub(crate) tenant_part: Option<usize>,
}

/// Checks the syntax of a JSON pointer (RFC 6901). The empty pointer is refused, because a whole
/// body is no proof of one operation.
///
/// # Errors
/// Why this is not a pointer to a value in a body.
pub(crate) fn check_pointer(pointer: &str) -> Result<(), String> {
    let pointer = in_value(pointer).unwrap_or(pointer);
    if !pointer.starts_with('/') {
        return Err("a JSON pointer begins with /, for example /order/id".to_owned());
    }
    let mut rest = pointer;
    while let Some((_, after)) = rest.split_once('~') {
        if !after.starts_with(['0', '1']) {
            return Err("in a JSON pointer, ~ is written ~0, and / in a name ~1".to_owned());
        }
        rest = after;
    }
    Ok(())
}

/// What happened to the operation, as far as the record shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ResultOutcome {
    /// A result is stored that is not a failure.
    Completed,
    /// A failure is stored: the state `failed`, an error, or a status of 400 and above.
    Failed,
    /// No result is stored yet.
    InProgress,
    /// Everything else.
    Unknown,
}

as_str!(ResultOutcome);

impl ResultOutcome {
    /// The outcome by the state, the HTTP status, and whether an error is stored.
    pub(crate) fn of(state: Option<State>, status: Option<i64>, has_error: bool) -> Self {
        match (state, status) {
            (Some(State::Failed), _) => Self::Failed,
            (Some(State::InProgress), _) => Self::InProgress,
            (Some(State::Released | State::Absent | State::Unreadable), _) | (None, None) => {
                Self::Unknown
            }
            (Some(State::Completed) | None, _) if has_error => Self::Failed,
            (Some(State::Completed) | None, Some(400..)) => Self::Failed,
            (Some(State::Completed), None) | (_, Some(200..=399)) => Self::Completed,
            (_, Some(_)) => Self::Unknown,
        }
    }
}

/// The name of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ComparedName {
    /// Empty for a record of a file that names no schema.
    pub(crate) schema: String,
    pub(crate) key: Vec<u8>,
}

/// A record in the form in which it is compared.
#[derive(Debug, Clone)]
pub(crate) struct ComparedRecord {
    pub(crate) name: ComparedName,
    pub(crate) state: Option<State>,
    pub(crate) status: Option<i64>,
    pub(crate) outcome: ResultOutcome,
    pub(crate) owner: Option<Vec<u8>>,
    pub(crate) time: Option<RecordTime>,
    /// The canonical texts at the pointers, in their order.
    pub(crate) values: Comparable<Vec<String>>,
    pub(crate) fingerprint: Comparable<String>,
    /// What must be equal as well, in the order of [`CompareRule::further_names`].
    pub(crate) further: Vec<Vec<u8>>,
}

/// What a record offers for the comparison, whatever store it is from.
pub(super) struct RecordParts<'a> {
    pub(super) body: Comparable<&'a [u8]>,
    /// The stored values; `None` if no pointer goes into them.
    pub(super) stored: Option<&'a StoredValues<'a>>,
    pub(super) fingerprint: Comparable<&'a str>,
    pub(super) owner: Comparable<&'a [u8]>,
}

impl CompareRule {
    /// The names of the further parts that must be equal.
    pub(crate) fn further_names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.with_owner {
            names.push("owner");
        }
        if self.with_stem {
            names.push("key stem");
        }
        if self.tenant_part.is_some() {
            names.push("tenant");
        }
        names
    }

    /// A record as it is compared.
    pub(crate) fn compare(&self, record: &Record) -> ComparedRecord {
        let status = record.stored().and_then(|response| response.status);
        let has_error = record.error().is_some_and(|error| !error.is_empty());
        let mut outcome = ResultOutcome::of(Some(record.state), status, has_error);
        // The service itself does not take the stored value for the result of the operation. Some
        // services store failures so.
        let is_executed_again = record.next_request.answer == Answer::Execute;
        if outcome == ResultOutcome::Completed && is_executed_again {
            outcome = ResultOutcome::Unknown;
        }
        let name = ComparedName { schema: record.schema.name.clone(), key: record.key.clone() };
        // Decoding base64 takes time, and only the pointers need the body.
        let body = if self.reads_bodies() { record.stored().map(Stored::body) } else { None };
        let stored = self.reads_values().then(|| StoredValues::of(record));
        let parts = RecordParts {
            body: response_of(record, body.as_deref()),
            stored: stored.as_ref(),
            fingerprint: field(record, ValueField::Fingerprint, record.fingerprint()),
            owner: field(record, ValueField::Owner, record.owner()),
        };
        let (values, fingerprint, further) = self.parts(&name.key, &parts);
        ComparedRecord {
            state: Some(record.state),
            status,
            outcome,
            owner: record.owner().map(<[u8]>::to_vec),
            time: RecordTime::of(record),
            values,
            fingerprint,
            further,
            name,
        }
    }

    /// The values at the pointers, the fingerprint, and the further parts.
    pub(super) fn parts(
        &self,
        key: &[u8],
        parts: &RecordParts<'_>,
    ) -> (Comparable<Vec<String>>, Comparable<String>, Vec<Vec<u8>>) {
        let further = match self.further(key, &parts.owner) {
            Comparable::Yes(further) => further,
            Comparable::No(why) => return (Comparable::No(why), Comparable::No(why), Vec::new()),
            Comparable::Unknown(why) => {
                return (Comparable::Unknown(why), Comparable::Unknown(why), Vec::new());
            }
        };
        let fingerprint = match &parts.fingerprint {
            Comparable::Yes("") => Comparable::No(NotCompared::Fingerprint),
            Comparable::Yes(text) => Comparable::Yes(canonical::bounded((*text).to_owned())),
            Comparable::No(why) => Comparable::No(*why),
            Comparable::Unknown(why) => Comparable::Unknown(*why),
        };
        let values = match &parts.body {
            _ if self.pointers.is_empty() => Comparable::No(NotCompared::Value),
            _ if !self.reads_bodies() => self.values_in(None, parts.stored),
            Comparable::Yes(body) => self.values(body, parts.stored),
            Comparable::No(why) => Comparable::No(*why),
            Comparable::Unknown(why) => Comparable::Unknown(*why),
        };
        (values, fingerprint, further)
    }

    /// True if a pointer goes into the response body.
    pub(super) fn reads_bodies(&self) -> bool {
        self.pointers.iter().any(|pointer| in_value(pointer).is_none())
    }

    /// True if a pointer goes into the whole stored value.
    pub(crate) fn reads_values(&self) -> bool {
        self.pointers.iter().any(|pointer| in_value(pointer).is_some())
    }

    fn values(&self, body: &[u8], stored: Option<&StoredValues<'_>>) -> Comparable<Vec<String>> {
        // Responses such as 204 have no body.
        if body.trim_ascii().is_empty() {
            return Comparable::No(NotCompared::Value);
        }
        match canonical::body(body) {
            Some(document) => self.values_in(Some(&document), stored),
            None => Comparable::Unknown(UnknownBecause::NotJson),
        }
    }

    /// The values at the pointers into a response body, and into the stored values.
    pub(super) fn values_in(
        &self,
        body: Option<&Json<'_>>,
        stored: Option<&StoredValues<'_>>,
    ) -> Comparable<Vec<String>> {
        let mut values = Vec::with_capacity(self.pointers.len());
        for pointer in &self.pointers {
            let found = match (in_value(pointer), body, stored) {
                (Some(pointer), _, Some(stored)) => stored.at(pointer),
                (None, Some(body), _) => at(body, pointer),
                _ => Comparable::No(NotCompared::Value),
            };
            match found {
                Comparable::Yes(text) => values.push(text),
                Comparable::No(why) => return Comparable::No(why),
                Comparable::Unknown(why) => return Comparable::Unknown(why),
            }
        }
        Comparable::Yes(values)
    }

    fn further(&self, key: &[u8], owner: &Comparable<&[u8]>) -> Comparable<Vec<Vec<u8>>> {
        let mut further = Vec::new();
        if self.with_owner {
            match owner {
                Comparable::Yes(owner) if !owner.is_empty() => further.push(owner.to_vec()),
                Comparable::Yes(_) | Comparable::No(_) => {
                    return Comparable::No(NotCompared::Owner);
                }
                Comparable::Unknown(why) => return Comparable::Unknown(*why),
            }
        }
        if self.with_stem {
            match key_stem(key) {
                Some(stem) => further.push(stem.to_vec()),
                None => return Comparable::No(NotCompared::Stem),
            }
        }
        if let Some(part) = self.tenant_part {
            let tenant = key.split(|byte| *byte == b':').nth(part.saturating_sub(1));
            match tenant {
                Some(tenant) if !tenant.is_empty() => further.push(tenant.to_vec()),
                _ => return Comparable::Unknown(UnknownBecause::TenantPart),
            }
        }
        Comparable::Yes(further)
    }
}

impl ComparedRecord {
    /// The approximate memory of the record in bytes.
    pub(crate) fn memory(&self) -> usize {
        let mut bytes = size_of::<Self>() + self.name.schema.len() + self.name.key.len();
        bytes += self.owner.as_ref().map_or(0, Vec::len);
        bytes += self.fingerprint.value().map_or(0, String::len);
        for value in self.values.value().into_iter().flatten() {
            bytes += size_of::<String>() + value.len();
        }
        for part in &self.further {
            bytes += size_of::<Vec<u8>>() + part.len();
        }
        bytes
    }

    /// Makes the record agree with none by its fingerprint.
    pub(crate) fn forget_fingerprint(&mut self) {
        self.fingerprint = Comparable::No(NotCompared::Fingerprint);
    }

    /// The hash of the values and the further parts; `None` if there are no values to compare.
    pub(crate) fn values_hash(&self, hasher: &impl BuildHasher) -> Option<u64> {
        let values = self.values.value()?;
        Some(hasher.hash_one((0_u8, values, &self.further)))
    }

    /// The same of the schema and the fingerprint.
    pub(crate) fn fingerprint_hash(&self, hasher: &impl BuildHasher) -> Option<u64> {
        let fingerprint = self.fingerprint.value()?;
        Some(hasher.hash_one((1_u8, &self.name.schema, fingerprint, &self.further)))
    }
}

/// A field of a record's values.
fn field<T>(record: &Record, field: ValueField, found: Option<T>) -> Comparable<T> {
    if let Some(why) = unknown(record) {
        return Comparable::Unknown(why);
    }
    match found {
        Some(found) => Comparable::Yes(found),
        None if record.unread_fields().contains(field) => {
            Comparable::Unknown(UnknownBecause::TooLarge)
        }
        None if field == ValueField::Owner => Comparable::No(NotCompared::Owner),
        None => Comparable::No(NotCompared::Fingerprint),
    }
}

/// The response body of a record.
fn response_of<'a>(record: &Record, body: Option<&'a [u8]>) -> Comparable<&'a [u8]> {
    if let Some(why) = unknown(record) {
        return Comparable::Unknown(why);
    }
    if record.blob().is_some() || record.shown_only().is_some() {
        return Comparable::Unknown(UnknownBecause::NotDecoded);
    }
    if record.stored().is_some_and(|response| !response.whole) {
        return Comparable::Unknown(UnknownBecause::TooLarge);
    }
    // A lock may be held beside a failure that was stored before.
    match body {
        Some(body) => Comparable::Yes(body),
        None => Comparable::No(NotCompared::Response),
    }
}

fn unknown(record: &Record) -> Option<UnknownBecause> {
    if record.is_undecided() {
        return Some(UnknownBecause::TooLarge);
    }
    if record.state == State::Unreadable { Some(UnknownBecause::Unreadable) } else { None }
}

/// Records of which it is unknown whether they belong to a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnknownRecords {
    pub(crate) count: u64,
    /// The first of them by name.
    pub(crate) names: Vec<ComparedName>,
}

/// How many records are kept by name for each reason.
const MAX_NAMES: usize = 3;

/// Counts of what was compared and what was not.
#[derive(Debug, Default)]
pub(crate) struct CompareCounts {
    /// Records that the filters select.
    pub(crate) records: u64,
    /// Records that have what is compared: values at all pointers, or without pointers a
    /// fingerprint.
    pub(crate) compared: u64,
    /// Records that certainly do not have it.
    pub(crate) not_compared: BTreeMap<NotCompared, u64>,
    pub(crate) unknown: BTreeMap<UnknownBecause, UnknownRecords>,
}

impl CompareCounts {
    /// Counts a record of the scan.
    pub(crate) fn add(&mut self, rule: &CompareRule, record: &ComparedRecord) {
        self.records += 1;
        let of = if rule.pointers.is_empty() {
            record.fingerprint.as_unit()
        } else {
            record.values.as_unit()
        };
        match of {
            Comparable::Yes(()) => self.compared += 1,
            Comparable::No(why) => *self.not_compared.entry(why).or_default() += 1,
            Comparable::Unknown(why) => self.add_unknown(why, &record.name),
        }
    }

    pub(crate) fn add_unknown(&mut self, why: UnknownBecause, name: &ComparedName) {
        let unknown = self.unknown.entry(why).or_default();
        unknown.count += 1;
        // The first by name, because the order of a scan must not matter.
        let place = unknown.names.partition_point(|known| known < name);
        if place < MAX_NAMES {
            unknown.names.insert(place, name.clone());
            unknown.names.truncate(MAX_NAMES);
        }
    }

    /// True if nothing was compared because no record has a fingerprint, so that a value of the
    /// responses has to be compared.
    pub(crate) fn lacks_fingerprints(&self, rule: &CompareRule) -> bool {
        rule.pointers.is_empty()
            && self.compared == 0
            && self.not_compared.keys().eq([&NotCompared::Fingerprint])
    }

    /// True if no record has what is compared, or there is no record. Nothing is known about
    /// duplicates then: the pointer, the filters, the server or the file may be wrong.
    pub(crate) fn compared_nothing(&self) -> bool {
        self.compared == 0
    }
}
