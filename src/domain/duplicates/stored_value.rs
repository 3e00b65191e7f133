//! Pointers into the whole stored value, for services that store the request beside the response.

use super::canonical::{self, AtPointer};
use super::comparable::{Comparable, NotCompared, UnknownBecause};
use crate::domain::record::decode::{decode_value, document};
use crate::domain::record::{Json, Record, json_prefix};

/// The beginning of a pointer into the whole value. Other pointers go into the response body.
const OF_VALUE: &str = "value:";

/// The JSON pointer into the whole value; `None` if the pointer goes into the response body.
pub(super) fn in_value(pointer: &str) -> Option<&str> {
    pointer.strip_prefix(OF_VALUE)
}

/// The documents of a record.
pub(super) struct StoredValues {
    documents: Vec<Json<'static>>,
    /// Why a value may be missing at a pointer at which no document has one.
    unknown: Option<UnknownBecause>,
}

impl StoredValues {
    /// The values of the Redis keys of a record, as their formats decode them: first the result,
    /// then the lock, then the parts.
    pub(super) fn of(record: &Record) -> Self {
        let schema = &record.schema;
        let (result, lock) = (schema.result_key_index(), schema.lock_key_index());
        let mut indexes = vec![result];
        if lock != result {
            indexes.push(lock);
        }
        indexes.extend(result + 1..record.seen.keys.len());
        let mut documents = Vec::new();
        let mut unknown = None;
        for key_index in indexes {
            let content = &record.seen.keys[key_index].content;
            if !content.is_whole() {
                unknown = Some(UnknownBecause::TooLarge);
            } else if let Some(document) = document(schema, key_index, content) {
                documents.push(document);
            } else if !content.is_absent()
                && decode_value(schema, key_index, content).decoded().is_none()
            {
                // A damaged value may have been written with the wanted one in it.
                unknown = unknown.or(Some(UnknownBecause::Unreadable));
            }
        }
        Self { documents, unknown }
    }

    /// The canonical text at a pointer into the first document that has a value there.
    pub(super) fn at(&self, pointer: &str) -> Comparable<String> {
        for document in &self.documents {
            let found = at(document, pointer);
            if found != Comparable::No(NotCompared::Value) {
                return found;
            }
        }
        match self.unknown {
            Some(why) => Comparable::Unknown(why),
            None => Comparable::No(NotCompared::Value),
        }
    }
}

/// The canonical text at a pointer into a document. A text on the way that is JSON is read as JSON,
/// because some services encode a request or a response before they store it.
pub(super) fn at(document: &Json<'_>, pointer: &str) -> Comparable<String> {
    match canonical::at_pointer(document, pointer) {
        AtPointer::Value(text) => Comparable::Yes(canonical::bounded(text)),
        AtPointer::Nothing => in_text(document, pointer),
        AtPointer::TooDeep => Comparable::Unknown(UnknownBecause::NotJson),
    }
}

/// The canonical text at a pointer that goes through a text that is JSON.
fn in_text(document: &Json<'_>, pointer: &str) -> Comparable<String> {
    for (end, _) in pointer.match_indices('/').skip(1) {
        let Some(Json::String(text)) = document.pointer(&pointer[..end]) else { continue };
        if let Ok(inner @ (Json::Object(_) | Json::Array(_) | Json::Raw(_))) =
            json_prefix::parse(text.as_bytes(), true)
        {
            return at(&inner, &pointer[end..]);
        }
    }
    Comparable::No(NotCompared::Value)
}
