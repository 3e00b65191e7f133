//! How the response that clients get differs from the one that the operator gave to `complete`.

use crate::domain::record::{Json, Response, json_prefix};
use crate::domain::schema::Keeps;

/// The most bytes of a body that a message shows.
const MOST_SHOWN: usize = 60;

/// How the delivered response differs from the given one, in words; `None` if a client gets what the
/// operator gave.
///
/// Header names are compared without case, because services write them in their own form. A body
/// that the service stores as JSON is compared as a JSON value, because services write JSON without
/// spaces and may sort its members; any other body is compared byte for byte.
pub(crate) fn difference(given: &Response, delivered: &Response, keeps: Keeps) -> Option<String> {
    if keeps.status && given.status != delivered.status {
        return Some(format!(
            "its status would be {}, not {}",
            status(delivered.status),
            status(given.status)
        ));
    }
    if keeps.headers || keeps.content_type {
        let (wanted, found) = (sorted_headers(given), sorted_headers(delivered));
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
        if wanted.len() != found.len() {
            return Some("a header would occur more or less often".to_owned());
        }
    }
    if keeps.body && !is_same_body(given, delivered, keeps) {
        return Some(format!(
            "its body would be {}, not {}",
            shown(&delivered.body),
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

/// The headers by name in lower case. Values of one name keep their order.
fn sorted_headers(response: &Response) -> Vec<(String, &str)> {
    let mut headers = Vec::with_capacity(response.headers.len());
    for (name, value) in &response.headers {
        headers.push((name.to_ascii_lowercase(), value.as_str()));
    }
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    headers
}

fn is_same_body(given: &Response, delivered: &Response, keeps: Keeps) -> bool {
    if given.body == delivered.body {
        return true;
    }
    if !keeps.body_as_json || !given.is_json() {
        return false;
    }
    let (Ok(given), Ok(delivered)) =
        (json_prefix::parse(&given.body, true), json_prefix::parse(&delivered.body, true))
    else {
        return false;
    };
    is_same_json(&given, &delivered)
}

/// True for the same JSON value. The order of members does not matter, and numbers are compared as
/// decimals, so that a number that lost digits differs.
fn is_same_json(one: &Json<'_>, other: &Json<'_>) -> bool {
    match (&one.opened(), &other.opened()) {
        (Json::Number(one), Json::Number(other)) => Decimal::of(one) == Decimal::of(other),
        (Json::Array(ones), Json::Array(others)) => {
            ones.len() == others.len()
                && ones.iter().zip(others).all(|(one, other)| is_same_json(one, other))
        }
        (Json::Object(ones), Json::Object(others)) => {
            if ones.len() != others.len() {
                return false;
            }
            for (name, value) in ones {
                let Some((_, found)) = others.iter().find(|(other, _)| other == name) else {
                    return false;
                };
                if !is_same_json(value, found) {
                    return false;
                }
            }
            true
        }
        (one, other) => one == other,
    }
}

/// A JSON number: its significant digits, and the power of ten of the last one. `1.50`, `15e-1` and
/// `1.5` are the same.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let is_negative = text.starts_with('-');
        let text = text.trim_start_matches('-').to_ascii_lowercase();
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_end_matches('0');
        // No program reads such a power.
        let power = power.trim_start_matches('+').parse::<i64>().unwrap_or(i64::MAX / 2);
        let dropped = (all.len() - significant.len()) as i64 - fraction.len() as i64;
        let digits = significant.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Self { is_negative: false, digits, exponent: 0 };
        }
        Self { is_negative, digits, exponent: power.saturating_add(dropped) }
    }
}

/// The beginning of a body, for a message.
fn shown(body: &[u8]) -> String {
    if body.is_empty() {
        return "empty".to_owned();
    }
    let start = &body[..body.len().min(MOST_SHOWN)];
    let rest = if body.len() > MOST_SHOWN { "..." } else { "" };
    format!("`{}{rest}`", start.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPS_ALL: Keeps = Keeps {
        status: true,
        headers: true,
        content_type: false,
        body: true,
        text_only: false,
        body_as_json: true,
        error: false,
    };

    fn response(headers: &[(&str, &str)], body: &str) -> Response {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status: Some(201), headers, body: body.as_bytes().to_vec(), whole: true }
    }

    fn of_bodies(given: &str, delivered: &str) -> Option<String> {
        difference(&response(&[], given), &response(&[], delivered), KEEPS_ALL)
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
        // A text is compared byte for byte.
        let text = |body| response(&[("Content-Type", "text/plain")], body);
        assert!(difference(&text("1.0"), &text("1"), KEEPS_ALL).is_some());
    }

    #[test]
    fn header_names_have_no_case_and_values_do() {
        let given = response(&[("X-A", "1"), ("x-b", "2"), ("x-a", "3")], "");
        let same = response(&[("x-b", "2"), ("x-a", "1"), ("x-a", "3")], "");
        assert_eq!(difference(&given, &same, KEEPS_ALL), None);
        let lost = response(&[("x-b", "2"), ("x-a", "1")], "");
        let words = difference(&given, &lost, KEEPS_ALL).unwrap_or_default();
        assert!(words.contains("`x-a: 3`"), "{words}");
        let more = difference(&lost, &given, KEEPS_ALL).unwrap_or_default();
        assert!(more.contains("would have the header `x-a: 3`"), "{more}");
        let status = Response { status: Some(200), ..given.clone() };
        let words = difference(&given, &status, KEEPS_ALL).unwrap_or_default();
        assert_eq!(words, "its status would be 200, not 201");
    }
}
