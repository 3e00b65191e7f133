//! Whether a value has exactly the fields that the schema writes.

use crate::domain::record::Json;
use crate::domain::schema::closed_fields::escaped;
use crate::domain::schema::{ClosedFields, Encoding, Schema, Timestamp, ValueFormat};

/// The most bytes of a field's name that a reason shows.
const MAX_NAME: usize = 64;

/// How far a value of a format has the fields that the schema writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conformance {
    /// It has exactly these fields, or the schema does not list fields.
    Full,
    /// The part that was read conforms; the rest may contain another field.
    Provisional,
    /// It has other fields, so another program wrote it.
    Deviates(Deviation),
}

/// How a value differs from those that the schema writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deviation {
    /// The difference in words.
    pub(crate) why: String,
    /// True if the value lacks a field, or has null where the service never writes it, so that the
    /// service may read it in another way.
    pub(crate) lacks_field: bool,
    /// The JSON pointer of a field that the format does not have, if nothing else differs.
    pub(crate) only_extra: Option<String>,
}

impl Conformance {
    /// The conformance of a value to a format; `document` is the document in the value, if the
    /// format has one.
    pub(super) fn of(
        schema: &Schema,
        format: &ValueFormat,
        document: Option<&Json<'_>>,
        whole: bool,
    ) -> Self {
        if format.is_opaque() && !schema.keys[format.key_index].template.has_fixed_prefix() {
            let why = "any text is of its form, and its Redis key has no fixed prefix".to_owned();
            return Self::Deviates(Deviation { why, lacks_field: false, only_extra: None });
        }
        // A format that lists no fields, or stores none, leaves nothing to compare.
        let Some(closed) = &format.closed else { return Self::Full };
        let Some(document) = document else { return Self::Full };
        match deviation(closed, 0, document, whole) {
            Some(deviation) => Self::Deviates(deviation),
            None if whole => Self::Full,
            None => Self::Provisional,
        }
    }

    /// Why the schema does not write such a value; `None` unless it deviates.
    pub(crate) fn deviation(&self) -> Option<&str> {
        match self {
            Self::Deviates(deviation) => Some(&deviation.why),
            Self::Full | Self::Provisional => None,
        }
    }

    /// The reason, if the value lacks a field that every value of its format has.
    pub(crate) fn lacks_field(&self) -> Option<&str> {
        match self {
            Self::Deviates(deviation) if deviation.lacks_field => Some(&deviation.why),
            _ => None,
        }
    }

    /// The field with which alone the value differs from its format.
    pub(crate) fn only_extra(&self) -> Option<&str> {
        match self {
            Self::Deviates(deviation) => deviation.only_extra.as_deref(),
            Self::Full | Self::Provisional => None,
        }
    }

    pub(crate) fn deviates(&self) -> bool {
        matches!(self, Self::Deviates(_))
    }
}

/// True if a field of a strict format has another type than the service writes. The service's
/// scripts misread such a value.
pub(super) fn is_mistyped(format: &ValueFormat, document: &Json<'_>) -> bool {
    if format.encoding() != Encoding::Json {
        return false;
    }
    let fields = &format.fields;
    let times_are_text = format.timestamp == Timestamp::Rfc3339;
    for (pointer, is_text) in [
        (&fields.owner, true),
        (&fields.fingerprint, true),
        (&fields.created_at, times_are_text),
        (&fields.completed_at, times_are_text),
    ] {
        let Some(pointer) = pointer else { continue };
        match (document.pointer(pointer), is_text) {
            (None | Some(Json::Null), _)
            | (Some(Json::String(_)), true)
            | (Some(Json::Number(_)), false) => {}
            (Some(_), _) => return true,
        }
    }
    false
}

/// How an object deviates from the fields that the schema lists, on this level or below. With
/// `whole` false no field counts as missing, because the unread rest of the value may contain it.
fn deviation(
    closed: &ClosedFields,
    level: usize,
    object: &Json<'_>,
    whole: bool,
) -> Option<Deviation> {
    let level = &closed.levels()[level];
    // A long field of a hash, of which nothing was read.
    if !whole && matches!(object, Json::String(text) if text.is_empty()) {
        return None;
    }
    let Json::Object(found) = object else {
        let why = if level.at.is_empty() {
            "it is no object, which `required` and `optional` are of".to_owned()
        } else {
            format!("`{}` is no object", level.at)
        };
        // Nor has it the fields that every such object has.
        let has_required = level.members.iter().any(|member| member.is_required);
        return Some(Deviation {
            why,
            lacks_field: whole && (level.at.is_empty() || has_required),
            only_extra: None,
        });
    };
    let mut required = 0;
    let mut differences = 0;
    // The first difference. A missing field matters more, because the service may then read the
    // value in another way.
    let mut first = None;
    for (name, value) in found {
        let Some(member) = level.members.iter().find(|member| member.name == *name) else {
            // Another program chose the name, so it may be long.
            differences += 1;
            let only_extra = whole.then(|| format!("{}/{}", level.at, escaped(name)));
            let name: String = name.chars().take(MAX_NAME).collect();
            first.get_or_insert_with(|| {
                let why = format!("`{}/{name}` is a field that it does not have", level.at);
                Deviation { why, lacks_field: false, only_extra }
            });
            continue;
        };
        required += usize::from(member.is_required);
        if *value == Json::Null {
            if !member.may_be_null {
                first.get_or_insert_with(|| {
                    let why =
                        format!("`{}/{name}` is null, which the schema does not allow", level.at);
                    Deviation { why, lacks_field: true, only_extra: None }
                });
            }
        } else if let Some(below) = member.level {
            let why = deviation(closed, below, &value.opened(), whole);
            if why.as_ref().is_some_and(|why| why.lacks_field) {
                return why;
            }
            differences += usize::from(why.is_some());
            first = first.or(why);
        }
    }
    if differences > 1
        && let Some(first) = &mut first
    {
        first.only_extra = None;
    }
    if !whole || required == level.members.iter().filter(|member| member.is_required).count() {
        return first;
    }
    for member in &level.members {
        if member.is_required && !found.iter().any(|(name, _)| *name == member.name) {
            let why = format!("`{}/{}` is missing", level.at, member.name);
            return Some(Deviation { why, lacks_field: true, only_extra: None });
        }
    }
    first
}
