//! What records are compared by, and why some records cannot be compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use strum::IntoStaticStr;

use super::canonical;
use super::comparable::{Comparable, NotCompared, UnknownBecause};
use super::record_time::RecordTime;
use super::stored_value::{StoredValues, at, in_value};
use crate::domain::as_str::as_str;
use crate::domain::record::{Record, Stored};
use crate::domain::schema::{Schema, State};
use crate::domain::step::Answer;

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
    fn of(record: &Record) -> Self {
        let status = record.stored().and_then(|response| response.status);
        let has_error = record.error().is_some_and(|error| !error.is_empty());
        match record.state {
            State::Failed => Self::Failed,
            State::InProgress => Self::InProgress,
            State::Released | State::Absent | State::Unreadable => Self::Unknown,
            State::Completed if has_error => Self::Failed,
            State::Completed => match status {
                Some(400..) => Self::Failed,
                // The service itself does not take the stored value for the result of the
                // operation. Some services store failures so.
                _ if record.next_request.answer == Answer::Execute => Self::Unknown,
                Some(200..=399) | None => Self::Completed,
                Some(_) => Self::Unknown,
            },
        }
    }
}

/// The name of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ComparedName {
    pub(crate) schema: String,
    pub(crate) key: Vec<u8>,
}

impl ComparedName {
    pub(crate) fn of(record: &Record) -> Self {
        Self { schema: record.schema.name.clone(), key: record.key.clone() }
    }
}

/// What is kept of a record that was compared.
#[derive(Debug, Clone)]
pub(crate) struct ComparedRecord {
    pub(crate) schema: Arc<Schema>,
    pub(crate) key: Vec<u8>,
    pub(crate) state: State,
    pub(crate) status: Option<i64>,
    pub(crate) outcome: ResultOutcome,
    pub(crate) owner: Option<Vec<u8>>,
    pub(crate) time: Option<RecordTime>,
}

impl ComparedRecord {
    pub(crate) fn of(record: &Record, time: Option<RecordTime>) -> Self {
        Self {
            schema: Arc::clone(&record.schema),
            key: record.key.clone(),
            state: record.state,
            status: record.stored().and_then(|response| response.status),
            outcome: ResultOutcome::of(record),
            owner: record.owner().map(<[u8]>::to_vec),
            time,
        }
    }

    pub(crate) fn name(&self) -> ComparedName {
        ComparedName { schema: self.schema.name.clone(), key: self.key.clone() }
    }
}

/// The canonical texts at these pointers, in their order. All of them must have a value.
pub(crate) fn values_at(pointers: &[String], record: &Record) -> Comparable<Vec<String>> {
    let mut body = None;
    // Decoding base64 takes time, and only pointers into the response need the body.
    if pointers.iter().any(|pointer| in_value(pointer).is_none()) {
        if record.is_undecided() {
            return Comparable::Unknown(UnknownBecause::TooLarge);
        }
        if record.state == State::Unreadable {
            return Comparable::Unknown(UnknownBecause::Unreadable);
        }
        if record.blob().is_some() || record.shown_only().is_some() {
            return Comparable::Unknown(UnknownBecause::NotDecoded);
        }
        // A lock may be held beside a failure that was stored before.
        let Some(response) = record.stored() else { return Comparable::No(NotCompared::Response) };
        if !response.whole {
            return Comparable::Unknown(UnknownBecause::TooLarge);
        }
        body = Some(Stored::body(response));
    }
    let document = match &body {
        None => None,
        // Responses such as 204 have no body.
        Some(body) if body.trim_ascii().is_empty() => return Comparable::No(NotCompared::Value),
        Some(body) => match canonical::body(body) {
            Some(document) => Some(document),
            None => return Comparable::Unknown(UnknownBecause::NotJson),
        },
    };
    let stored = reads_values(pointers).then(|| StoredValues::of(record));
    let mut values = Vec::with_capacity(pointers.len());
    for pointer in pointers {
        let found = match (in_value(pointer), &document, &stored) {
            (Some(pointer), _, Some(stored)) => stored.at(pointer),
            (None, Some(document), _) => at(document, pointer),
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

/// True if a response or a field was read only in part, or the value, if pointers go into it.
pub(crate) fn is_cut(pointers: &[String], record: &Record) -> bool {
    if reads_values(pointers) && !record.is_whole() {
        return true;
    }
    !record.unread_fields().is_empty() || record.stored().is_some_and(|response| !response.whole)
}

/// True if a pointer goes into the whole stored value.
fn reads_values(pointers: &[String]) -> bool {
    pointers.iter().any(|pointer| in_value(pointer).is_some())
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
    /// Records that have values at all pointers.
    pub(crate) compared: u64,
    /// Records that certainly do not have them.
    pub(crate) not_compared: BTreeMap<NotCompared, u64>,
    pub(crate) unknown: BTreeMap<UnknownBecause, UnknownRecords>,
}

impl CompareCounts {
    pub(crate) fn add_unknown(&mut self, why: UnknownBecause, name: ComparedName) {
        let unknown = self.unknown.entry(why).or_default();
        unknown.count += 1;
        // The first by name, because the order of a scan must not matter.
        let place = unknown.names.partition_point(|known| *known < name);
        if place < MAX_NAMES {
            unknown.names.insert(place, name);
            unknown.names.truncate(MAX_NAMES);
        }
    }
}
