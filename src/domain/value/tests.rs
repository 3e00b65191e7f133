//! What values read as, whole and in part.

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
    Request::new(schema, b"k", "w", response).result_value()
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
            // What tells the form stands within the first 24 bytes, or behind the times where it has them.
            let telling = if schema.head_bytes() > 64 { 96 } else { 24 };
            let length = telling.min(value.len()) + cut.index(value.len().saturating_sub(telling) + 1);
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
