//! How the response that clients get differs from the one that the operator gave to `complete`.

use crate::domain::decimal::decimal;
use crate::domain::record::{Content, Json, Response, decode, json_prefix};
use crate::domain::schema::{Keeps, Numbers, Schema};

/// The most bytes of a body that a message shows.
const MAX_SHOWN: usize = 60;

/// The response that clients get, as far as the schema describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivered {
    response: Response,
    /// False for parts of the response for which the value's format has no field.
    has_status: bool,
    has_headers: bool,
    has_body: bool,
    /// True if every body is JSON, whatever its content type is.
    is_json: bool,
    /// True if clients read a number with a point or an exponent as another one than the integer
    /// of the same value.
    has_integers: bool,
    /// True if any text has the value's format, so that a word of the service may be mistaken for
    /// it.
    pub(crate) is_opaque: bool,
}

/// The response in a value of the schema's result key; `None` if the value has none.
pub(crate) fn delivered(schema: &Schema, content: &Content) -> Option<Delivered> {
    let reading = decode::decode_value(schema, schema.result_key_index(), content);
    let decoded = reading.decoded()?;
    let format = &schema.values[decoded.format];
    Some(Delivered {
        response: decoded.response.as_ref()?.response(),
        has_status: format.fields.status.is_some(),
        has_headers: format.fields.headers.is_some() || format.fields.content_type.is_some(),
        has_body: format.fields.body.is_some(),
        is_json: schema.bodies_are_json(),
        has_integers: schema.write.numbers != Numbers::Double,
        is_opaque: format.is_opaque(),
    })
}

/// How the delivered response differs from the given one, in words; `None` if a client gets what
/// the operator gave.
///
/// Header names are compared without case, because services write them in their own form. A body
/// that the service stores as JSON is compared as a JSON value, because services write JSON without
/// spaces and may sort its members; any other body is compared byte for byte.
pub(crate) fn difference(given: &Response, delivered: &Delivered, keeps: Keeps) -> Option<String> {
    let response = &delivered.response;
    if keeps.status && delivered.has_status && given.status != response.status {
        return Some(format!(
            "its status would be {}, not {}",
            status(response.status),
            status(given.status)
        ));
    }
    if (keeps.headers || keeps.content_type) && delivered.has_headers {
        let wanted = sorted_headers(given);
        let found = sorted_headers(response);
        for header in &wanted {
            if !found.contains(header) {
                return Some(format!("it would not have the header `{}: {}`", header.0, header.1));
            }
        }
        for header in &found {
            if !wanted.contains(header) {
                return Some(format!("it would have the header `{}: {}`", header.0, header.1));
            }
        }
        if wanted != found {
            return Some("a header would occur more or less often".to_owned());
        }
    }
    let as_json = keeps.body_as_json && (delivered.is_json || given.is_json());
    let is_same = is_same_body(&given.body, &response.body, as_json, delivered.has_integers);
    if keeps.body && delivered.has_body && !is_same {
        return Some(format!(
            "its body would be {}, not {}",
            shown(&response.body),
            shown(&given.body)
        ));
    }
    None
}

fn status(status: Option<i64>) -> String {
    match status {
        Some(status) => status.to_string(),
        None => "unknown".to_owned(),
    }
}

/// The headers by name in lower case, and by value.
fn sorted_headers(response: &Response) -> Vec<(String, &str)> {
    let mut headers = Vec::with_capacity(response.headers.len());
    for (name, value) in &response.headers {
        headers.push((name.to_ascii_lowercase(), value.as_str()));
    }
    headers.sort_unstable();
    headers
}

fn is_same_body(given: &[u8], delivered: &[u8], as_json: bool, has_integers: bool) -> bool {
    if given == delivered {
        return true;
    }
    if !as_json {
        return false;
    }
    let Ok(given) = json_prefix::parse(given, true) else { return false };
    let Ok(delivered) = json_prefix::parse(delivered, true) else { return false };
    is_same_json(&given, &delivered, has_integers)
}

/// True for the same JSON value. The order of members does not matter, and numbers are compared as
/// decimals, so that a number that lost digits differs. With `has_integers`, an integer also
/// differs from `1e+14`, which Lua writes of a long one.
fn is_same_json(one: &Json<'_>, other: &Json<'_>, has_integers: bool) -> bool {
    match (&one.opened(), &other.opened()) {
        (Json::Number(one), Json::Number(other)) => {
            let is_lost = has_integers && is_integer(one) && !is_integer(other);
            !is_lost && decimal(one) == decimal(other)
        }
        (Json::Array(ones), Json::Array(others)) => {
            ones.len() == others.len()
                && ones
                    .iter()
                    .zip(others)
                    .all(|(one, other)| is_same_json(one, other, has_integers))
        }
        (Json::Object(ones), Json::Object(others)) => {
            if ones.len() != others.len() {
                return false;
            }
            // In the order of their names, because an object may have many members.
            let mut ones: Vec<_> = ones.iter().collect();
            let mut others: Vec<_> = others.iter().collect();
            ones.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            others.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            for ((name, one), (other_name, other)) in ones.into_iter().zip(others) {
                if name != other_name || !is_same_json(one, other, has_integers) {
                    return false;
                }
            }
            true
        }
        (one, other) => one == other,
    }
}

fn is_integer(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}

/// The first number of a JSON body that comes back from the service as another one, and that one;
/// `None` if there is none.
pub(super) fn changed_number(body: &[u8], numbers: Numbers) -> Option<(String, String)> {
    if numbers == Numbers::Decimal {
        return None;
    }
    let Ok(json) = json_prefix::parse(body, true) else { return None };
    changed_in(&json, numbers)
}

fn changed_in(json: &Json<'_>, numbers: Numbers) -> Option<(String, String)> {
    match &json.opened() {
        Json::Number(text) => {
            if is_integer(text) && numbers == Numbers::DoubleFraction {
                return None;
            }
            let double: f64 = text.parse().ok()?;
            // Such a number is more than a double has.
            if double.is_infinite() {
                return Some((shown(text.as_bytes()), "infinity".to_owned()));
            }
            let read = double.to_string();
            let is_same = decimal(text) == decimal(&read);
            if is_same { None } else { Some((shown(text.as_bytes()), read)) }
        }
        Json::Array(items) => items.iter().find_map(|item| changed_in(item, numbers)),
        Json::Object(members) => members.iter().find_map(|(_, member)| changed_in(member, numbers)),
        _ => None,
    }
}

/// The beginning of a body, which a message shows.
pub(super) fn shown(body: &[u8]) -> String {
    if body.is_empty() {
        return "empty".to_owned();
    }
    let start = &body[..body.len().min(MAX_SHOWN)];
    let rest = if body.len() > MAX_SHOWN { "..." } else { "" };
    format!("`{}{rest}`", start.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_client_would_read_as_others_are_found() {
        let changed = |body: &str, numbers| {
            changed_number(body.as_bytes(), numbers)
                .map(|(number, read)| format!("{number} {read}"))
        };
        let big = r#"{"a":[1,12345678901234567890]}"#;
        let read = Some("`12345678901234567890` 12345678901234567000".to_owned());
        assert_eq!(changed(big, Numbers::Double), read);
        assert_eq!(changed(big, Numbers::DoubleFraction), None);
        assert_eq!(changed(big, Numbers::Decimal), None);
        for body in ["9007199254740993", "1e400", "-1e-400", "0.1234567890123456789"] {
            assert!(changed(body, Numbers::Double).is_some(), "{body}");
        }
        for body in ["1e400", "0.1234567890123456789"] {
            assert!(changed(body, Numbers::DoubleFraction).is_some(), "{body}");
        }
        for body in ["9007199254740991", "-0", "10.00", "1.5e3", "1e-7", "0.1", "no JSON", ""] {
            assert_eq!(changed(body, Numbers::Double), None, "{body}");
            assert_eq!(changed(body, Numbers::DoubleFraction), None, "{body}");
        }
    }

    const KEEPS_ALL: Keeps = Keeps {
        status: true,
        headers: true,
        content_type: false,
        body: true,
        text_only: false,
        body_as_json: true,
        takes_no_body: true,
        error: false,
    };

    fn response(headers: &[(&str, &str)], body: &str) -> Response {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status: Some(201), headers, body: body.as_bytes().to_vec(), whole: true }
    }

    fn delivered(response: &Response) -> Delivered {
        Delivered {
            response: response.clone(),
            has_status: true,
            has_headers: true,
            has_body: true,
            is_json: false,
            has_integers: false,
            is_opaque: false,
        }
    }

    fn of(given: &Response, found: &Response) -> Option<String> {
        difference(given, &delivered(found), KEEPS_ALL)
    }

    fn of_bodies(given: &str, found: &str) -> Option<String> {
        of(&response(&[], given), &response(&[], found))
    }

    #[test]
    fn json_is_compared_as_a_value() {
        for (given, delivered) in [
            ("{\"a\": 1, \"b\": [true]}", "{\"b\":[true],\"a\":1}"),
            ("1.50", "15e-1"),
            ("-0", "0"),
            ("100", "1E2"),
            ("\"\\u00e9\"", "\"\u{e9}\""),
        ] {
            assert_eq!(of_bodies(given, delivered), None, "{given}");
        }
        for (given, delivered) in [
            ("{\"items\":[]}", "{\"items\":{}}"),
            ("12345678901234567890", "1.2345678901235e+19"),
            ("[1,2]", "[2,1]"),
            ("{\"a\":null}", "{}"),
            ("\"hello\"", "hello"),
            ("1e400", "1e401"),
        ] {
            assert!(of_bodies(given, delivered).is_some(), "{given}");
        }
        // Lua writes a long integer with an exponent, which Python reads as a float.
        let float = response(&[], "{\"n\":1e+14}");
        let with_integers = Delivered { has_integers: true, ..delivered(&float) };
        let integer = response(&[], "{\"n\":100000000000000}");
        assert!(difference(&integer, &with_integers, KEEPS_ALL).is_some());
        assert_eq!(difference(&float, &with_integers, KEEPS_ALL), None);
        // A text is compared byte for byte.
        let text = |body| response(&[("Content-Type", "text/plain")], body);
        assert!(of(&text("1.0"), &text("1")).is_some());
        // Unless every body of the service is JSON.
        let json = Delivered { is_json: true, ..delivered(&text("1")) };
        assert_eq!(difference(&text("1.0"), &json, KEEPS_ALL), None);
    }

    #[test]
    fn a_part_without_a_field_is_not_compared() {
        let given = response(&[("a", "1")], "body");
        let found = Response { status: None, ..Response::default() };
        let unknown = Delivered {
            has_status: false,
            has_headers: false,
            has_body: false,
            ..delivered(&found)
        };
        assert_eq!(difference(&given, &unknown, KEEPS_ALL), None);
    }

    #[test]
    fn header_names_have_no_case_and_values_do() {
        let given = response(&[("X-A", "1"), ("x-b", "2"), ("x-a", "3")], "");
        let same = response(&[("x-b", "2"), ("x-a", "1"), ("x-a", "3")], "");
        assert_eq!(of(&given, &same), None);
        let lost = response(&[("x-b", "2"), ("x-a", "1")], "");
        let words = of(&given, &lost).unwrap_or_default();
        assert!(words.contains("`x-a: 3`"), "{words}");
        let more = of(&lost, &given).unwrap_or_default();
        assert!(more.contains("would have the header `x-a: 3`"), "{more}");
        let status = Response { status: Some(200), ..given.clone() };
        let words = of(&given, &status).unwrap_or_default();
        assert_eq!(words, "its status would be 200, not 201");
    }
}
