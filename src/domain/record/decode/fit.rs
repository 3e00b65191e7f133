//! Whether a value, or the beginning of one, passes the tests of a value format.

use serde_json::Value;

use super::conformance::{Conformance, is_mistyped};
use super::fields::FieldSource;
use crate::domain::record::Json;
use crate::domain::schema::{Encoding, ValueFormat};

/// Whether a value passes the tests of a format. If there are several tests, the greatest result
/// decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    Yes,
    /// The unread rest of the value decides.
    Open,
    No,
}

/// Tests a value against a format. The fields of a strict format are tested by
/// [`is_rejected`] as well.
pub(super) fn fits(format: &ValueFormat, source: FieldSource<'_>) -> Fit {
    let FieldSource { head, whole, document, hash: _ } = source;
    if let Some(equals) = &format.tests.equals {
        return Fit::from_test(whole && head == &equals[..]);
    }
    let Some(document) = document else {
        return Fit::from_test(begins_as(format.encoding(), head));
    };
    let missing = if whole { Fit::No } else { Fit::Open };
    let mut fit = Fit::Yes;
    // These come first, because they tell the formats of a schema apart.
    for (path, wanted) in &format.tests.fields {
        let field_fit = match document.pointer(path) {
            None => missing,
            Some(found) if !whole && is_beginning(&found, wanted) => Fit::Open,
            Some(found) => Fit::from_test(is_equal(&found, wanted)),
        };
        if field_fit == Fit::No {
            return Fit::No;
        }
        fit = fit.max(field_fit);
    }
    for path in &format.tests.has {
        if document.pointer(path).is_none() {
            fit = fit.max(missing);
        }
    }
    fit
}

/// True if the service rejects a value that passes the tests of a strict format, because its fields
/// or their types are not those that it writes.
pub(super) fn is_rejected(
    format: &ValueFormat,
    document: Option<&Json<'_>>,
    conformance: &Conformance,
) -> bool {
    let is_strict = format.closed.as_ref().is_some_and(|closed| closed.is_strict);
    let Some(document) = document else { return false };
    is_strict && (conformance.deviates() || is_mistyped(format, document))
}

impl Fit {
    fn from_test(passes: bool) -> Self {
        if passes { Self::Yes } else { Self::No }
    }
}

/// Whether bytes begin like the output of an encoding whose values idemctl never decodes. Decoding
/// a pickle would run the code in it, and Marshal needs the language that wrote it.
fn begins_as(encoding: Encoding, head: &[u8]) -> bool {
    match encoding {
        // From protocol 2 on, which Python 2.3 introduced. An older pickle looks like any other
        // text.
        Encoding::Pickle => matches!(head, [0x80, 2..=5, ..]),
        Encoding::Marshal => head.starts_with(&[4, 8]),
        _ => true,
    }
}

/// True if a string that may be truncated can still become the wanted one.
fn is_beginning(found: &Json<'_>, wanted: &Value) -> bool {
    matches!((found, wanted), (Json::String(found), Value::String(wanted))
        if found.len() < wanted.len() && wanted.starts_with(found.as_ref()))
}

/// Compares as a script does: `1.0` and `1e0` are the number 1.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        for (encoding, head) in
            [(Encoding::Pickle, &b"\x80\x04\x95"[..]), (Encoding::Marshal, b"\x04\x08[")]
        {
            assert!(begins_as(encoding, head), "{}", head.escape_ascii());
        }
        for other in [&b""[..], b"{\"a\":1}", b"Zk3uJ9aQw1XyBv7T", b"a:b", b"s:", b"1", b"\x80\x09"]
        {
            for encoding in [Encoding::Pickle, Encoding::Marshal] {
                assert!(!begins_as(encoding, other), "{}", other.escape_ascii());
            }
        }
    }
}
