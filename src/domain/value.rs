//! Telling a slot's value: which of the schema's cases it is, and what it holds.

mod fit;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use self::fit::{Fit, fits};
use crate::domain::json::Json;
use crate::domain::json_head;
use crate::domain::observation::Content;
use crate::domain::response::Response;
use crate::domain::schema::{BodyEncoding, Encoding, Schema, SlotIs, Timestamp, ValueCase};

/// What a slot turned out to hold under a schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Nothing is there.
    Absent,
    /// One of the schema's value cases.
    Value(Box<Decoded>),
    /// A string that no case fits, and why.
    Unreadable(String),
    /// Not a string: Redis's name of the type.
    WrongType(String),
}

impl Reading {
    /// True when a `when` condition's word holds for the slot.
    pub fn is(&self, asked: &SlotIs) -> bool {
        match asked {
            SlotIs::Absent => *self == Self::Absent,
            SlotIs::Present => *self != Self::Absent,
            SlotIs::Unreadable => matches!(self, Self::Unreadable(_)),
            SlotIs::WrongType => matches!(self, Self::WrongType(_)),
            SlotIs::Value(case) => matches!(self, Self::Value(decoded) if decoded.case == *case),
        }
    }

    /// True when only the beginning was read, and what comes behind decides what it is.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Unreadable(why) if why == UNDECIDED)
    }

    /// The decoded value, where there is one.
    pub fn decoded(&self) -> Option<&Decoded> {
        match self {
            Self::Value(decoded) => Some(decoded),
            _ => None,
        }
    }
}

/// Why a value cannot be told of which only the beginning was read, and what comes behind decides.
const UNDECIDED: &str = "what it is stands beyond the part that was read";

/// A value of a known case.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The index of the case in [`Schema::values`].
    pub case: usize,
    /// Who holds the lock.
    pub owner: Option<Vec<u8>>,
    /// The hash of the request's payload.
    pub fingerprint: Option<String>,
    /// When the lock was taken, in milliseconds since the epoch.
    pub created_ms: Option<u64>,
    /// When the result was stored, in milliseconds since the epoch.
    pub completed_ms: Option<u64>,
    /// The stored response.
    pub response: Option<Response>,
    /// The error text of a failed operation.
    pub error: Option<String>,
    /// A pointer to a result in a blob store.
    pub blob: Option<Value>,
}

/// Reads what a slot holds.
pub fn read(schema: &Schema, slot: usize, content: &Content) -> Reading {
    let head = match content {
        Content::Absent => return Reading::Absent,
        Content::Other(kind) => return Reading::WrongType(kind.clone()),
        Content::Text { head, .. } => head,
    };
    let whole = content.is_whole();
    let cases = || schema.values.iter().enumerate().filter(|(_, case)| case.slot == slot);
    let wants_json = cases().any(|(_, case)| case.encoding == Encoding::Json);
    let json = wants_json.then(|| json_head::parse(head, whole));
    // Cases that what was not read may yet decide for.
    let mut open = Vec::new();
    for (index, case) in cases() {
        let document = match (case.encoding, &json) {
            (Encoding::Text, _) => None,
            (Encoding::Json, Some(Ok(document))) => Some(document),
            (Encoding::Json, _) => continue,
        };
        match fits(case, head, whole, document) {
            Fit::Yes if open.iter().all(|state| *state == case.state) => {
                return Reading::Value(Box::new(decode(case, index, head, whole, document)));
            }
            Fit::Yes | Fit::Open => open.push(case.state),
            Fit::No => {}
        }
    }
    Reading::Unreadable(match json {
        _ if !open.is_empty() => UNDECIDED.to_owned(),
        Some(Err(why)) => format!("not JSON: {why}"),
        Some(Ok(_)) => "JSON of another shape".to_owned(),
        None => "not one of the words the schema knows".to_owned(),
    })
}

fn decode(case: &ValueCase, index: usize, head: &[u8], whole: bool, document: Option<&Json<'_>>) -> Decoded {
    let source = Source { head, document };
    let fields = &case.fields;
    let text =
        |path: &Option<String>| source.text(path.as_deref()?).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let time = |path: &Option<String>| source.text(path.as_deref()?).and_then(|bytes| millis(&bytes, case.timestamp));
    Decoded {
        case: index,
        owner: fields.owner.as_deref().and_then(|path| source.text(path)),
        fingerprint: text(&fields.fingerprint),
        created_ms: time(&fields.created_at),
        completed_ms: time(&fields.completed_at),
        response: source.response(case, whole),
        error: text(&fields.error),
        blob: fields.blob.as_deref().and_then(|path| document?.pointer(path)).map(Json::to_value),
    }
}

/// The bytes of a value, and the document they hold where they are JSON.
struct Source<'a> {
    head: &'a [u8],
    document: Option<&'a Json<'a>>,
}

impl Source<'_> {
    /// A field as text: a JSON string's own text, any other JSON value as JSON.
    fn text(&self, path: &str) -> Option<Vec<u8>> {
        match self.document {
            None => path.is_empty().then(|| self.head.to_vec()),
            Some(document) => match document.pointer(path)? {
                Json::Null => None,
                Json::String(text) => Some(text.as_bytes().to_vec()),
                other => Some(other.to_value().to_string().into_bytes()),
            },
        }
    }

    fn response(&self, case: &ValueCase, whole: bool) -> Option<Response> {
        let fields = &case.fields;
        if fields.status.is_none() && fields.headers.is_none() && fields.body.is_none() {
            return None;
        }
        let at = |path: &Option<String>| self.document?.pointer(path.as_deref()?);
        Some(Response {
            status: at(&fields.status).and_then(Json::as_i64),
            headers: at(&fields.headers).map(headers).unwrap_or_default(),
            body: fields.body.as_deref().and_then(|path| self.body(path, case.body_encoding)).unwrap_or_default(),
            whole,
        })
    }

    fn body(&self, path: &str, encoding: BodyEncoding) -> Option<Vec<u8>> {
        let text = self.text(path)?;
        Some(match encoding {
            BodyEncoding::Text | BodyEncoding::Json => text,
            BodyEncoding::Base64 => base64_bytes(&text),
        })
    }
}

/// Undoes base64; text that is not base64 stays as it is, and a cut one gives the bytes that are complete.
fn base64_bytes(text: &[u8]) -> Vec<u8> {
    STANDARD
        .decode(text)
        .or_else(|_| STANDARD.decode(&text[..text.len() - text.len() % 4]))
        .unwrap_or_else(|_| text.to_vec())
}

fn headers(value: &Json<'_>) -> Vec<(String, String)> {
    let Json::Object(members) = value else { return Vec::new() };
    let mut headers = Vec::with_capacity(members.len());
    for (name, value) in members {
        let values = if let Json::Array(values) = value { values } else { std::slice::from_ref(value) };
        for value in values {
            let text = if let Json::String(text) = value { text.to_string() } else { value.to_value().to_string() };
            headers.push((name.to_string(), text));
        }
    }
    headers
}

fn millis(text: &[u8], unit: Timestamp) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match unit {
        Timestamp::Milliseconds => text.parse().ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative or huge time saturates"
        )]
        Timestamp::Seconds => text.parse::<f64>().ok().map(|seconds| (seconds * 1000.0) as u64),
        Timestamp::Rfc3339 => {
            let time = humantime::parse_rfc3339_weak(text).ok()?;
            let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::samples::{schema, schemas, text};
    use crate::domain::write::Request;

    fn response() -> impl Strategy<Value = Response> {
        let header = ("[A-Z][a-z]{0,3}", "[ -~\u{e9}]{0,6}");
        (100..600_i64, prop::collection::vec(header, 0..4), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(status, headers, body)| Response { status: Some(status), headers, body, whole: true })
    }

    fn result_value(schema: &Schema, response: &Response) -> Vec<u8> {
        Request { schema, key: b"k", owner: "w", response }.result_value()
    }

    fn decoded(schema: &Schema, content: &Content) -> Decoded {
        match read(schema, schema.result_slot(), content) {
            Reading::Value(decoded) => *decoded,
            other => panic!("{other:?}"),
        }
    }

    fn sorted(response: &Response) -> Vec<(String, String)> {
        let mut headers = response.headers.clone();
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        headers
    }

    #[test]
    fn the_first_form_that_fits_counts() {
        let consumer = schema("event-consumer");
        let name = |value: &str| consumer.values[decoded(&consumer, &text(value)).case].name.clone();
        assert_eq!((name("1"), name("11")), ("marker".to_owned(), "stored".to_owned()));
    }

    #[test]
    fn a_number_is_compared_by_its_value() {
        let chi = schema("go-chi");
        for one in ["1", "1.0", "1e0", "10e-1"] {
            let value = format!(r#"{{"status":{one}}}"#);
            assert_eq!(chi.values[decoded(&chi, &text(value)).case].name, "completed", "{one}");
        }
        for other in ["1.5", "\"1\"", "true", "[1]", "1e400"] {
            let value = format!(r#"{{"status":{other}}}"#);
            assert!(matches!(read(&chi, 0, &text(value)), Reading::Unreadable(_)), "{other}");
        }
    }

    #[test]
    fn damaged_base64_stays_as_it_is_and_a_cut_one_gives_what_is_complete() {
        assert_eq!(base64_bytes(b"aGVsbG8="), b"hello");
        assert_eq!(base64_bytes(b"aGVsbG"), b"hel");
        assert_eq!(base64_bytes(b"not base64!"), b"not base64!");
        assert_eq!(base64_bytes(b""), b"");
    }

    #[test]
    fn times_are_read_in_their_unit() {
        assert_eq!(millis(b"1500", Timestamp::Milliseconds), Some(1_500));
        assert_eq!(millis(b"1.5", Timestamp::Seconds), Some(1_500));
        assert_eq!(millis(b"-1", Timestamp::Seconds), Some(0));
        assert_eq!(millis(b"1970-01-01T00:00:01.5Z", Timestamp::Rfc3339), Some(1_500));
        for unit in [Timestamp::Milliseconds, Timestamp::Seconds, Timestamp::Rfc3339] {
            assert_eq!(millis(b"soon", unit), None);
            assert_eq!(millis(b"\xff", unit), None);
        }
    }

    #[test]
    fn why_a_value_is_unreadable() {
        let why = |schema_name: &str, value: &str| match read(&schema(schema_name), 0, &text(value)) {
            Reading::Unreadable(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("go-chi", "{").starts_with("not JSON: "));
        assert_eq!(why("go-chi", "{}"), "JSON of another shape");
        assert_eq!(why("go-middleware-v1", "{}"), "not one of the words the schema knows");
    }

    proptest! {
        #[test]
        fn go_chi_reads_an_object_with_status_0_or_1_alone(bytes in prop::collection::vec(any::<u8>(), 0..40), status in -2..4_i64) {
            let chi = schema("go-chi");
            let claims = |bytes: &[u8]| matches!(read(&chi, 0, &text(bytes)), Reading::Value(_));
            prop_assert!(!claims(&bytes), "random bytes are no such object");
            let document = serde_json::json!({ "other": bytes.clone(), "status": status });
            prop_assert_eq!(claims(document.to_string().as_bytes()), status == 0 || status == 1);
        }

        #[test]
        fn nothing_makes_it_panic_whole_or_in_part(head in prop::collection::vec(any::<u8>(), 0..60), more in 0..3_u64) {
            let content = Content::Text { length: Some(head.len() as u64 + more), head };
            for schema in schemas() {
                for slot in 0..schema.slots.len() {
                    let _ = read(&schema, slot, &content);
                }
            }
        }

        #[test]
        fn a_written_response_is_read_again(response in response()) {
            for name in ["go-middleware", "go-chi"] {
                let schema = schema(name);
                let read = decoded(&schema, &text(result_value(&schema, &response))).response.unwrap();
                prop_assert_eq!((read.status, &read.body, read.whole), (response.status, &response.body, true));
                prop_assert_eq!(read.headers, sorted(&response));
            }
        }

        #[test]
        fn a_written_text_is_read_again(mut response in response(), body in "[a-z<>&\"\\\\\u{1}-\u{1f}\u{e9}]{1,20}") {
            response.body = format!("({body}").into_bytes();
            for name in ["express", "event-driven", "event-consumer"] {
                let schema = schema(name);
                let read = decoded(&schema, &text(result_value(&schema, &response))).response.unwrap();
                prop_assert_eq!(&read.body, &response.body, "{}", name);
            }
        }

        #[test]
        fn the_beginning_of_a_value_tells_what_the_whole_tells_or_nothing(
            members in Just(vec![r#""by":"w""#, r#""at":1"#, r#""pad":"done false""#]).prop_shuffle(),
            done in prop::sample::select(vec![r#""done":true"#, r#""done":false"#, r#""done":"true""#, r#""other":1"#]),
            place in 0..4_usize,
            cut in any::<prop::sample::Index>(),
        ) {
            let timed = schema("timed");
            let mut members = members;
            members.insert(place, done);
            let value = format!("{{{}}}", members.join(","));
            let state = |reading: &Reading| reading.decoded().map(|value| timed.values[value.case].state);
            let whole = read(&timed, 0, &text(&value));
            let head = value.as_bytes()[..cut.index(value.len())].to_vec();
            let part = read(&timed, 0, &Content::Text { head, length: None });
            prop_assert!(state(&part).is_none() || state(&part) == state(&whole), "{part:?} of {value}");
            let told = state(&part).is_some() || part.is_undecided() || matches!(whole, Reading::Unreadable(_));
            prop_assert!(told || matches!(&part, Reading::Unreadable(why) if why.starts_with("not JSON")), "{part:?} of {value}");
        }

        #[test]
        fn the_beginning_of_a_result_tells_its_form(response in response(), cut in any::<prop::sample::Index>()) {
            for schema in schemas().iter().filter(|schema| schema.name != "go-middleware-v1") {
                let value = result_value(schema, &response);
                let whole = decoded(schema, &text(&value));
                // What tells the form stands within the first 24 bytes.
                let length = 24.min(value.len()) + cut.index(value.len().saturating_sub(24) + 1);
                let part = Content::Text { head: value[..length].to_vec(), length: Some(value.len() as u64) };
                let part = decoded(schema, &part);
                prop_assert_eq!(part.case, whole.case);
                if let (Some(part), Some(whole)) = (part.response, whole.response) {
                    prop_assert!(part.status.is_none() || part.status == whole.status, "a cut number is no number");
                    prop_assert!(part.body.len() <= whole.body.len());
                }
            }
        }
    }
}
