//! What a program says about an operation: one JSON object.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::domain::manual_step;

/// The answer about one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderAnswer {
    /// The operation took effect, and clients get this response.
    Done(Box<DoneResponse>),
    /// It did not take effect.
    NotDone,
    /// Nobody knows, for this reason.
    Unknown(String),
}

/// The response that the client should have received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DoneResponse {
    pub(crate) status: Option<i64>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// The file that the body was read from.
    pub(crate) body_file: Option<String>,
}

impl ProviderAnswer {
    /// The word of the answer in JSON.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::NotDone => "not-done",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// The object as it is written. Unknown fields are refused, because a misspelt one would be lost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    outcome: WrittenOutcome,
    #[serde(default)]
    status: Option<i64>,
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    /// `null` is a body, too.
    #[serde(default, deserialize_with = "given")]
    body: Option<Value>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenOutcome {
    Done,
    NotDone,
    Unknown,
}

fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Reads the answer: exactly one JSON object.
///
/// # Errors
/// Why it is none.
pub(crate) fn parse_answer(bytes: &[u8]) -> Result<ProviderAnswer, String> {
    if bytes.trim_ascii().is_empty() {
        return Err("it printed nothing".to_owned());
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err("it did not print one JSON object".to_owned());
    }
    let written: WrittenAnswer = serde_json::from_slice(bytes)
        .map_err(|error| format!("it did not print one JSON object as needed: {error}"))?;
    let has_response =
        written.status.is_some() || written.headers.is_some() || written.body.is_some();
    match written.outcome {
        WrittenOutcome::Done => {
            let status = written.status.map(|status| manual_step::status(&status.to_string()));
            let response = DoneResponse {
                status: status.transpose()?,
                headers: headers(written.headers.unwrap_or_default())?,
                body: written.body.map(body_bytes),
                body_file: None,
            };
            Ok(ProviderAnswer::Done(Box::new(response)))
        }
        WrittenOutcome::NotDone | WrittenOutcome::Unknown if has_response => {
            Err("only `done` has a response".to_owned())
        }
        WrittenOutcome::NotDone => Ok(ProviderAnswer::NotDone),
        WrittenOutcome::Unknown => Ok(ProviderAnswer::Unknown(
            written.reason.unwrap_or_else(|| "the program does not know".to_owned()),
        )),
    }
}

/// A text is the body itself; anything else is its JSON.
fn body_bytes(body: Value) -> Vec<u8> {
    match body {
        Value::String(text) => text.into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// Each header has one text, or a list of them.
fn headers(written: Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (name, value) in written {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let Value::String(text) = value else {
                return Err(format!("the header {name:?} is not a text"));
            };
            // The same check as for --header.
            let header = manual_step::header(&format!("{name}: {text}"))
                .map_err(|why| format!("the header {name:?}: {why}"))?;
            headers.push(header);
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_exactly_one_object() {
        assert_eq!(parse_answer(br#"{"outcome":"not-done"}"#), Ok(ProviderAnswer::NotDone));
        let done = parse_answer(
            br#" {"outcome":"done","status":201,"headers":{"A":["1","2"]},"body":{"n":1.50}} "#,
        );
        let headers = vec![("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())];
        let body = Some(br#"{"n":1.50}"#.to_vec());
        let response = DoneResponse { status: Some(201), headers, body, body_file: None };
        assert_eq!(done, Ok(ProviderAnswer::Done(Box::new(response))));
        for wrong in [
            "",
            "not-done",
            "[]",
            r#"["done"]"#,
            r#"{"outcome":"maybe"}"#,
            r#"{"outcome":"not-done"} {"outcome":"not-done"}"#,
            r#"{"outcome":"not-done","outcome":"done"}"#,
            r#"{"outcome":"not-done","status":201}"#,
            r#"{"outcome":"done","staus":201}"#,
            r#"{"outcome":"not-done"}garbage"#,
            r#"{"outcome":"done","headers":{"a":1}}"#,
            r#"{"outcome":"done","status":99}"#,
            r#"{"outcome":"done","status":-5}"#,
            r#"{"outcome":"done","status":600}"#,
        ] {
            assert!(parse_answer(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_is_the_body_itself_and_null_is_one() {
        let body = |json: &str| match parse_answer(json.as_bytes()) {
            Ok(ProviderAnswer::Done(response)) => response.body,
            other => panic!("{other:?}"),
        };
        assert_eq!(body(r#"{"outcome":"done","body":"a"}"#), Some(b"a".to_vec()));
        assert_eq!(body(r#"{"outcome":"done","body":null}"#), Some(b"null".to_vec()));
        assert_eq!(body(r#"{"outcome":"done"}"#), None);
    }
}
