//! Whether a value, or the beginning of one, is of a schema's case.

use serde_json::Value;

use super::fields::FieldSource;
use super::form::{is_mistyped, strange};
use super::shown::begins_as;
use crate::domain::record::Json;
use crate::domain::schema::ValueFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    Yes,
    /// The rest of the value, which was not read, decides.
    Open,
    No,
}

pub(super) fn fits(
    case: &ValueFormat,
    FieldSource { head, whole, document }: FieldSource<'_>,
) -> Fit {
    let yes = |fits: bool| if fits { Fit::Yes } else { Fit::No };
    if let Some(equals) = &case.tests.equals {
        return yes(whole && head == &equals[..]);
    }
    let Some(document) = document else { return yes(begins_as(case.encoding(), head)) };
    if let Some(closed) = case.closed.as_ref().filter(|closed| closed.is_strict)
        && (strange(closed, 0, document, whole).is_some() || is_mistyped(case, document))
    {
        return Fit::No;
    }
    let missing = if whole { Fit::No } else { Fit::Open };
    let has =
        case.tests.has.iter().map(|path| document.pointer(path).map_or(missing, |_| Fit::Yes));
    let fields = case.tests.fields.iter().map(|(path, value)| match document.pointer(path) {
        None => missing,
        Some(found) if !whole && is_beginning(&found, value) => Fit::Open,
        Some(found) => yes(is_equal(&found, value)),
    });
    has.chain(fields).max().unwrap_or(Fit::Yes)
}

/// True when a string that may have been cut can still become the one that is wanted.
fn is_beginning(found: &Json<'_>, wanted: &Value) -> bool {
    matches!((found, wanted), (Json::String(found), Value::String(wanted))
        if found.len() < wanted.len() && wanted.starts_with(found.as_ref()))
}

/// As a script compares: `1.0` and `1e0` are the number 1.
fn is_equal(found: &Json<'_>, wanted: &Value) -> bool {
    match (found, wanted) {
        (Json::Number(found), Value::Number(wanted)) => {
            found.parse::<f64>().ok() == wanted.as_f64()
        }
        (Json::String(found), Value::String(wanted)) => found == wanted,
        (Json::Bool(found), Value::Bool(wanted)) => found == wanted,
        _ => false,
    }
}
