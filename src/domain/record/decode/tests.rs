//! What values read as, whole and in part.

use proptest::prelude::*;

use super::fields::millis;
use super::stored::base64_bytes;
use super::*;
use crate::domain::record::Response;
use crate::domain::samples::{CHI_RESULT, from_toml, schema, schemas, text};
use crate::domain::schema::Timestamp;
use crate::domain::step::StepInputs;

fn response() -> impl Strategy<Value = Response> {
    let header = ("[A-Z][a-z]{0,3}", "[ -~\u{e9}]{0,6}");
    (100..600_i64, prop::collection::vec(header, 0..4), prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(status, headers, body)| Response {
            status: Some(status),
            headers,
            body,
            whole: true,
        })
}

fn result_value(schema: &Schema, response: &Response) -> Vec<u8> {
    StepInputs::new(schema, b"k", "w", response).result_value()
}

fn decoded(schema: &Schema, content: &Content) -> Decoded {
    match decode_value(schema, schema.result_key_index(), content) {
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
    let name = |value: &str| consumer.values[decoded(&consumer, &text(value)).format].name.clone();
    assert_eq!((name("1"), name("11")), ("marker".to_owned(), "stored".to_owned()));
}

/// Formats that only their required fields distinguish, in each order.
#[test]
fn the_beginning_of_a_value_has_no_format_while_another_one_can_still_fit() {
    let done = r#"
[[value]]
name = "done"
required = ["/request/url", "/response/code"]
state = "completed"
fields = { status = "/response/code" }
"#;
    let running = r#"
[[value]]
name = "running"
required = ["/request/url"]
state = "in-progress"
"#;
    let keys = "format = 2\nname = \"orders\"\nkeys = { record = \"o:{key}\" }\n\
        ttl = { lock = \"24h\", result = \"24h\" }\n";
    let long = "u".repeat(100);
    let lock = format!(r#"{{"request":{{"url":"/{long}"}}}}"#);
    let result = format!(r#"{{"request":{{"url":"/{long}"}},"response":{{"code":201}}}}"#);
    for formats in [[done, running], [running, done]] {
        let schema = from_toml(&format!("{keys}{}{}", formats[0], formats[1]));
        for (value, name) in [(&lock, "running"), (&result, "done")] {
            assert_eq!(schema.values[decoded(&schema, &text(value)).format].name, name);
            for length in 0..value.len() {
                let part = Content::Text { head: value.as_bytes()[..length].into(), length: None };
                match decode_value(&schema, 0, &part) {
                    Reading::Undecided => {}
                    Reading::Value(decoded) => {
                        assert_eq!(schema.values[decoded.format].name, name, "{length} bytes");
                    }
                    other => panic!("{length} bytes of {name}: {other:?}"),
                }
            }
        }
    }
}

/// The service may take such a value for another one, or fail, so that nothing is predicted from it.
#[test]
fn a_value_that_lacks_what_the_service_writes_is_told_from_one_with_more() {
    let schema = from_toml(
        "format = 2\nname = \"orders\"\nkeys = { record = \"o:{key}\" }\nttl = { lock = \"24h\" }\n\
        [[value]]\nname = \"running\"\nrequired = [\"/url\", \"/by/id\"]\nstate = \"in-progress\"\n",
    );
    for (value, lacks) in [
        (r#"{"url":"u","by":{"id":1}}"#, false),
        (r#"{"url":"u","by":{"id":1},"more":1}"#, false),
        (r#"{"more":1}"#, true),
        (r#"{"url":"u","more":1}"#, true),
        (r#"{"url":"u"}"#, true),
        (r#"{"url":null,"by":{"id":1}}"#, true),
        (r#"{"url":"u","by":{"id":null}}"#, true),
        (r#"{"more":{}}"#, true),
        ("[1]", true),
    ] {
        let reading = decode_value(&schema, 0, &text(value));
        assert_eq!(reading.lacks_field().is_some(), lacks, "{value} {reading:?}");
    }
}

#[test]
fn a_number_is_compared_by_its_value() {
    let chi = schema("go-chi");
    for one in ["1", "1.0", "1e0", "10e-1"] {
        let value = CHI_RESULT.replacen("1", one, 1);
        assert_eq!(chi.values[decoded(&chi, &text(value)).format].name, "completed", "{one}");
    }
    for other in ["1.5", "\"1\"", "true", "[1]", "1e400"] {
        let value = CHI_RESULT.replacen("1", other, 1);
        assert!(
            matches!(
                decode_value(&chi, 0, &text(value)),
                Reading::Unrecognised { is_cut: false, .. }
            ),
            "{other}"
        );
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
    let why = |schema_name: &str, value: &str| match decode_value(
        &schema(schema_name),
        0,
        &text(value),
    ) {
        Reading::Unreadable(why) => format!("unreadable: {why}"),
        Reading::Unrecognised { why, .. } => format!("foreign: {why}"),
        other => panic!("{other:?}"),
    };
    assert!(why("go-chi", "{").starts_with("unreadable: not JSON: "));
    assert_eq!(why("go-chi", "{}"), "foreign: JSON of another shape");
    assert_eq!(why("go-middleware-v1", "{}"), "foreign: not one of the words the schema knows");
}

/// Whether the schema writes such a value: nothing, or why not; and the case that its scripts take
/// it for.
fn form(schema_name: &str, key_index: usize, value: &str) -> (Option<String>, Option<String>) {
    let schema = schema(schema_name);
    let reading = decode_value(&schema, key_index, &text(value));
    let case = reading.decoded().map(|value| schema.values[value.format].name.clone());
    (reading.unrecognised_because().map(str::to_owned), case)
}

/// Rule: a value is claimed whatever the order of its fields, its whitespace, and what stands in
/// its open fields.
#[test]
fn what_a_service_may_write_is_its_own() {
    for (schema, key_index, value) in [
        ("go-middleware", 0, r#"{"status":"PENDING"}"#),
        ("go-middleware", 0, r#" { "status" : "PENDING" } "#),
        ("go-middleware", 0, r#"{"status":"COMPLETED","code":201,"headers":null,"body":null}"#),
        (
            "go-middleware",
            0,
            r#"{"body":"","headers":{"A":null,"B":["c"]},"code":2.01e2,"status":"COMPLETED"}"#,
        ),
        ("go-chi", 0, r#"{"status":0}"#),
        ("go-chi", 0, r#"{"response":{"Body":null,"Header":null,"StatusCode":404},"status":1}"#),
        ("express", 0, r#"{"status":"COMPLETED","statusCode":204}"#),
        ("express", 0, r#"{"status":"COMPLETED","statusCode":204,"headers":{},"body":null}"#),
        (
            "express",
            0,
            r#"{"status":"COMPLETED","statusCode":204,"headers":{"x":1},"body":{"status":null,"x":[]}}"#,
        ),
        ("event-driven", 1, r#"{"statusCode":500,"body":"","error":"declined"}"#),
        ("event-driven", 1, r#"{"statusCode":200,"body":null,"error":null}"#),
        ("event-driven", 1, r#"{"key":"k","bucket":"b","storage":"s3"}"#),
        ("event-driven", 0, "any owner"),
        ("event-consumer", 0, "1"),
        ("event-consumer", 1, "any result"),
        (
            "reference",
            0,
            r#"{"state":"completed","owner":"a","fingerprint":"","created_at":1,"completed_at":2,"response":null}"#,
        ),
    ] {
        assert_eq!(form(schema, key_index, value).0, None, "{schema}: {value}");
    }
}

/// Rule: a field of no form, one that is missing, and null where there is none make a value
/// somebody else's; what the scripts take it for is another question.
#[test]
fn what_no_service_writes_is_somebody_elses() {
    const EXTRA: &str = "is a field that it does not have";
    const MISSING: &str = "is missing";
    const NULL: &str = "is null, which the schema does not allow";
    const NO_HEADER: &str = r#"{"status":1,"response":{"StatusCode":1,"Body":""}}"#;
    const NULL_CODE: &str = r#"{"status":"COMPLETED","code":null,"headers":{},"body":""}"#;
    const DEEP: &str = r#"{"status":1,"response":{"StatusCode":1,"Header":{},"Body":"","x":1}}"#;
    for (schema, key_index, value, field, fault, case) in [
        ("go-chi", 0, r#"{"status":0,"name":"Ann"}"#, "/name", EXTRA, "in-progress"),
        // A missing field comes first, because the service may then read the value in another way.
        ("go-chi", 0, r#"{"status":1,"result":"x"}"#, "/response", MISSING, "completed"),
        ("go-chi", 0, r#"{"status":1}"#, "/response", MISSING, "completed"),
        ("go-chi", 0, r#"{"status":1,"response":7}"#, "/response", "is no object", "completed"),
        ("go-chi", 0, r#"{"status":1,"response":null}"#, "/response", NULL, "completed"),
        ("go-chi", 0, DEEP, "/response/x", EXTRA, "completed"),
        ("go-chi", 0, NO_HEADER, "/response/Header", MISSING, "completed"),
        ("go-middleware", 0, r#"{"status":"COMPLETED"}"#, "/code", MISSING, "completed"),
        ("go-middleware", 0, NULL_CODE, "/code", NULL, "completed"),
        (
            "express",
            0,
            r#"{"status":"IN_PROGRESS","fingerPrint":"f"}"#,
            "/fingerPrint",
            EXTRA,
            "in-progress",
        ),
        (
            "express",
            0,
            r#"{"status":"COMPLETED","statusCode":200,"headers":null}"#,
            "/headers",
            NULL,
            "completed",
        ),
        ("event-driven", 1, r#"{"statusCode":200,"extra":1}"#, "/extra", EXTRA, "stored"),
    ] {
        let wanted = (Some(format!("`{field}` {fault}")), Some(case.to_owned()));
        assert_eq!(form(schema, key_index, value), wanted, "{schema}: {value}");
    }
    assert_eq!(
        form("event-consumer", 0, "2").0.as_deref(),
        Some("not one of the words the schema knows")
    );
    let strict = r#"{"state":"in-progress","owner":"a","fingerprint":"","created_at":1,"x":1}"#;
    assert_eq!(
        form("reference", 0, strict),
        (Some("JSON of another shape".to_owned()), None),
        "its script refuses it"
    );
}

/// Rule: the beginning of a value is judged by what it holds, and what it does not tell yet is
/// open.
#[test]
fn the_beginning_of_a_value_is_judged_by_what_it_holds() {
    let beginning = |text: &str| {
        let head = text.as_bytes().to_vec();
        decode_value(&schema("go-middleware"), 0, &Content::Text { head, length: None })
    };
    let so_far = beginning(r#"{"status":"COMPLETED","code":2"#);
    assert_eq!(so_far.decoded().map(|value| &value.conformance), Some(&Conformance::Provisional));
    assert!(
        beginning(r#"{"status":"COMPLETED","expiration":17,"#).unrecognised_because().is_some()
    );
    let kit = beginning(r#"{"operation":"payment.create","idempotency_key":"k"#);
    assert!(
        matches!(kit, Reading::Unrecognised { is_cut: true, .. }),
        "{kit:?}: its status may come yet"
    );
    assert!(kit.is_undecided());
    assert_eq!(beginning(r#"{"code":200,"headers":{}"#), Reading::Undecided);
}

/// Rule: a field that the deployment states may stand, or be null, in every form that closes its
/// level.
#[test]
fn a_deployment_may_state_fields() {
    let mut chi = schema("go-chi");
    chi.allow_field("/traceId");
    chi.allow_field("/response/took");
    let foreign =
        |value: &str| decode_value(&chi, 0, &text(value)).unrecognised_because().map(str::to_owned);
    assert_eq!(foreign(r#"{"status":0,"traceId":null}"#), None);
    assert_eq!(
        foreign(
            r#"{"status":1,"traceId":"t","response":{"StatusCode":1,"Header":{},"Body":"","took":3}}"#
        ),
        None
    );
    assert!(foreign(r#"{"status":0,"traceID":1}"#).is_some());
}

proptest! {
    #[test]
    fn go_chi_reads_an_object_with_status_0_or_1_alone(bytes in prop::collection::vec(any::<u8>(), 0..40), status in -2..4_i64) {
        let chi = schema("go-chi");
        let claims = |bytes: &[u8]| matches!(decode_value(&chi, 0, &text(bytes)), Reading::Value(_));
        prop_assert!(!claims(&bytes), "random bytes are no such object");
        let document = serde_json::json!({ "other": bytes.clone(), "status": status });
        prop_assert_eq!(claims(document.to_string().as_bytes()), status == 0 || status == 1);
        prop_assert!(!decode_value(&chi, 0, &text(document.to_string())).conforms_or_absent(), "no such object has another field");
    }

    #[test]
    fn nothing_makes_it_panic_whole_or_in_part(head in prop::collection::vec(any::<u8>(), 0..60), more in 0..3_u64) {
        let content = Content::Text { length: Some(head.len() as u64 + more), head };
        for schema in schemas() {
            for key_index in 0..schema.keys.len() {
                let _ = decode_value(&schema, key_index, &content);
            }
        }
    }

    #[test]
    fn a_written_response_is_read_again(response in response()) {
        for name in ["go-middleware", "go-chi"] {
            let schema = schema(name);
            let read = decoded(&schema, &text(result_value(&schema, &response))).response.unwrap().response();
            prop_assert_eq!((read.status, &read.body, read.whole), (response.status, &response.body, true));
            prop_assert_eq!(read.headers, sorted(&response));
        }
    }

    #[test]
    fn a_written_text_is_read_again(mut response in response(), body in "[a-z<>&\"\\\\\u{1}-\u{1f}\u{e9}]{1,20}") {
        response.body = format!("({body}").into_bytes();
        for name in ["express", "event-driven", "event-consumer"] {
            let schema = schema(name);
            let read = decoded(&schema, &text(result_value(&schema, &response))).response.unwrap().response();
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
        let state = |reading: &Reading| reading.decoded().map(|value| timed.values[value.format].state);
        let whole = decode_value(&timed, 0, &text(&value));
        let head = value.as_bytes()[..cut.index(value.len())].to_vec();
        let part = decode_value(&timed, 0, &Content::Text { head, length: None });
        prop_assert!(state(&part).is_none() || state(&part) == state(&whole), "{part:?} of {value}");
        let told = state(&part).is_some() || part == Reading::Undecided || whole.mismatch().is_some();
        prop_assert!(told || matches!(&part, Reading::Unreadable(why) if why.starts_with("not JSON")), "{part:?} of {value}");
    }

    #[test]
    fn the_beginning_of_a_result_tells_its_form(response in response(), cut in any::<prop::sample::Index>()) {
        for schema in schemas().iter().filter(|schema| schema.name != "go-middleware-v1") {
            let value = result_value(schema, &response);
            let whole = decoded(schema, &text(&value));
            // What tells the form stands within the first 24 bytes, or behind the times where it
            // has them.
            let telling = if schema.head_bytes() > 64 { 96 } else { 24 };
            let length = telling.min(value.len()) + cut.index(value.len().saturating_sub(telling) + 1);
            let part = Content::Text { head: value[..length].to_vec(), length: Some(value.len() as u64) };
            let part = decoded(schema, &part);
            prop_assert_eq!(part.format, whole.format);
            if let (Some(part), Some(whole)) = (part.response.map(|part| part.response()), whole.response.map(|whole| whole.response())) {
                prop_assert!(part.status.is_none() || part.status == whole.status, "a cut number is no number");
                prop_assert!(part.body.len() <= whole.body.len());
            }
        }
    }
}
