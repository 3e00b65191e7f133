//! Whether a value has a form that the schema writes.

use crate::domain::record::Json;
use crate::domain::schema::{ClosedFields, Encoding, Schema, Timestamp, ValueFormat};

/// The bytes of a field's name that a reason shows at most.
const MOST_NAME: usize = 64;

/// Whether a value of a case has the form that the schema writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Own,
    /// The beginning that was read has the form; the rest may hold another field.
    SoFar,
    /// The value has another form, so that another program wrote the value; why.
    Foreign(String),
}

impl Form {
    /// The form of a value of this case; `document` is the value as JSON, for a case that is JSON.
    pub(super) fn of(
        schema: &Schema,
        case: &ValueFormat,
        document: Option<&Json<'_>>,
        whole: bool,
    ) -> Self {
        if case.is_opaque() && !schema.keys[case.role].template.has_prefix() {
            return Self::Foreign(
                "any text is of its form, and its Redis key has no literal prefix".to_owned(),
            );
        }
        let (Some(closed), Some(document)) = (&case.closed, document) else { return Self::Own };
        match strange(closed, 0, document, whole) {
            Some(why) => Self::Foreign(why),
            None if whole => Self::Own,
            None => Self::SoFar,
        }
    }

    /// Why the schema does not write such a value, where that is known.
    pub(crate) fn strangeness(&self) -> Option<&str> {
        match self {
            Self::Foreign(why) => Some(why),
            Self::Own | Self::SoFar => None,
        }
    }

    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign(_))
    }
}

/// True if a field of a strict case has another type than the service writes: its scripts take such a value for something
/// else.
pub(super) fn is_mistyped(case: &ValueFormat, document: &Json<'_>) -> bool {
    if case.encoding() != Encoding::Json {
        return false;
    }
    let fields = &case.fields;
    let times_are_text = case.timestamp == Timestamp::Rfc3339;
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

/// What parts an object from the form, on this level or below. With `whole` false nothing counts as missing: the rest of
/// the value, which was not read, may hold the field.
pub(super) fn strange(
    closed: &ClosedFields,
    level: usize,
    object: &Json<'_>,
    whole: bool,
) -> Option<String> {
    let level = &closed.levels()[level];
    let Json::Object(found) = object else {
        return Some(if level.at.is_empty() {
            "it is no object, which `required` and `optional` are of".to_owned()
        } else {
            format!("`{}` is no object", level.at)
        });
    };
    let mut required = 0;
    for (name, value) in found {
        let Some(member) = level.members.iter().find(|member| member.name == *name) else {
            let name: String = name.chars().take(MOST_NAME).collect();
            return Some(format!("`{}/{name}` is a field that it does not have", level.at));
        };
        required += usize::from(member.is_required);
        if *value == Json::Null {
            if !member.may_be_null {
                return Some(format!("`{}/{name}` is null, which it never is", level.at));
            }
        } else if let Some(below) = member.level {
            let why = strange(closed, below, &value.opened(), whole);
            if why.is_some() {
                return why;
            }
        }
    }
    let all = level.members.iter().filter(|member| member.is_required);
    if !whole || required == all.clone().count() {
        return None;
    }
    let is_missing = |name: &str| !found.iter().any(|(found, _)| found == name);
    all.into_iter()
        .find(|member| is_missing(&member.name))
        .map(|member| format!("`{}/{}` is missing", level.at, member.name))
}
