//! Other payloads and other paths, made from the operator's request.

use bstr::ByteSlice as _;
use serde_json::{Number, Value};
use url::Url;

use super::message::ProbeRequest;
use super::template::KEY_MARK;
use crate::domain::schema::closed_fields::escaped;

/// The most members of a body that are changed in turn. Each one costs two requests.
const MAX_MEMBERS: usize = 20;

/// The request with another payload, but the same key: one number of a JSON body is larger by
/// `step`. `None` if the body is not JSON, or has no number.
pub(super) fn with_other_payload(request: &ProbeRequest, step: u64) -> Option<ProbeRequest> {
    let mut document: Value = serde_json::from_slice(&request.body).ok()?;
    if !raise_first_number(&mut document, step) {
        return None;
    }
    let body = serde_json::to_vec(&document).ok()?;
    Some(ProbeRequest { body, ..request.clone() })
}

/// The JSON pointers of the first members of a body whose value can be another one: texts without
/// the key, numbers and booleans. Empty if the body is not JSON.
pub(super) fn members_of(request: &ProbeRequest) -> Vec<String> {
    let mut pointers = Vec::new();
    if let Ok(document) = serde_json::from_slice(&request.body) {
        let key = request.key.as_deref().unwrap_or_default();
        collect_members(&document, "", key, &mut pointers);
    }
    pointers.truncate(MAX_MEMBERS);
    pointers
}

fn collect_members(value: &Value, at: &str, key: &str, pointers: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_members(item, &format!("{at}/{index}"), key, pointers);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                collect_members(member, &format!("{at}/{}", escaped(name)), key, pointers);
            }
        }
        Value::String(text) if text.contains(key) => {}
        _ => {
            if other_value(value).is_some() {
                pointers.push(at.to_owned());
            }
        }
    }
}

/// The request with another value of this member; `None` if there is none.
pub(super) fn with_other_member(request: &ProbeRequest, pointer: &str) -> Option<ProbeRequest> {
    let mut document: Value = serde_json::from_slice(&request.body).ok()?;
    let member = document.pointer_mut(pointer)?;
    *member = other_value(member)?;
    let body = serde_json::to_vec(&document).ok()?;
    Some(ProbeRequest { body, ..request.clone() })
}

/// Another value of the same type; `None` if idemctl knows none.
fn other_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(Value::String(other_text(text))),
        Value::Number(number) => raised(number, 1).map(Value::Number),
        Value::Bool(is_true) => Some(Value::Bool(!is_true)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text that differs in its last letter or digit, so that a service may accept it as well.
fn other_text(text: &str) -> String {
    let Some(at) = text.rfind(|c: char| c.is_ascii_alphanumeric()) else {
        return format!("{text}a");
    };
    let last = text.as_bytes()[at];
    let (usual, instead) = if last.is_ascii_digit() {
        ('1', '2')
    } else if last.is_ascii_uppercase() {
        ('A', 'B')
    } else {
        ('a', 'b')
    };
    let other = if char::from(last) == usual { instead } else { usual };
    format!("{}{other}{}", &text[..at], &text[at + 1..])
}

/// The request at another path of the same host. `{{key}}` in the path is replaced by the key.
///
/// # Errors
/// Why the check is not applicable.
pub(super) fn with_path(request: &ProbeRequest, path: &str) -> Result<ProbeRequest, String> {
    let key = request.key.as_deref().unwrap_or_default();
    let mut url = Url::parse(&request.url).map_err(|why| format!("URL: {why}"))?;
    // The query stays, and so does the host, whatever the path is.
    url.set_path(&path.replace(KEY_MARK, key));
    let other = ProbeRequest { url: url.into(), ..request.clone() };
    if !other.url.contains(key) && !has_key_elsewhere(&other, key) {
        return Err("the key is in the path, and --other-path has no {{key}}".to_owned());
    }
    Ok(other)
}

/// True if a header or the body contains the key.
fn has_key_elsewhere(request: &ProbeRequest, key: &str) -> bool {
    let in_headers = request.headers.iter().any(|(_, value)| value.contains_str(key));
    in_headers || request.body.contains_str(key)
}

/// Raises the first number, in the order of the document; false if there is none.
fn raise_first_number(value: &mut Value, step: u64) -> bool {
    match value {
        Value::Number(number) => match raised(number, step) {
            Some(raised) => {
                *number = raised;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().any(|item| raise_first_number(item, step)),
        Value::Object(members) => {
            members.values_mut().any(|member| raise_first_number(member, step))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The number raised by `step`; `None` if it is too large for a difference.
fn raised(number: &Number, step: u64) -> Option<Number> {
    if let Some(whole) = number.as_u64() {
        return whole.checked_add(step).map(Number::from);
    }
    let float = number.as_f64()?;
    let raised = float + step as f64;
    if raised == float { None } else { Number::from_f64(raised) }
}

#[cfg(test)]
mod tests {
    use super::{members_of, with_other_member, with_other_payload};
    use crate::domain::probe::{ProbeRequest, ServiceTrust};

    fn request(body: &[u8]) -> ProbeRequest {
        ProbeRequest {
            method: "POST".to_owned(),
            url: "http://localhost/".to_owned(),
            headers: Vec::new(),
            caller_header: None,
            trust: ServiceTrust::System,
            body: body.to_vec(),
            key: Some("k".to_owned()),
        }
    }

    #[test]
    fn another_payload_has_another_number_and_the_same_key() {
        let other = |body, step| {
            let other = with_other_payload(&request(body), step)?;
            Some(String::from_utf8(other.body).unwrap())
        };
        assert_eq!(other(br#"{"a":"x","b":[5,6]}"#, 2).unwrap(), r#"{"a":"x","b":[7,6]}"#);
        assert_eq!(other(br#"{"a":"x"}"#, 1), None);
        assert_eq!(other(b"a=1", 1), None);
    }

    /// Rule: each member gets another value of its type, and the key stays.
    #[test]
    fn each_member_of_a_body_is_changed_alone() {
        let body = concat!(
            r#"{"key":"k","id":"k-1","a":{"b/c":["EUR","x1",""]},"#,
            r#""n":5,"f":1.5,"is":true,"no":null,"max":1e+300}"#
        );
        let given = request(body.as_bytes());
        let members = members_of(&given);
        assert_eq!(members, ["/a/b~1c/0", "/a/b~1c/1", "/a/b~1c/2", "/n", "/f", "/is"]);
        for (member, changed) in members.iter().zip([
            (r#""EUR""#, r#""EUA""#),
            (r#""x1""#, r#""x2""#),
            (r#""""#, r#""a""#),
            ("5,", "6,"),
            ("1.5", "2.5"),
            ("true", "false"),
        ]) {
            let other = with_other_member(&given, member).unwrap();
            let text = String::from_utf8(other.body).unwrap();
            let expected = body.replacen(changed.0, changed.1, 1);
            assert_eq!(text, expected, "{member}");
        }
        let many = format!("{:?}", [1; 50]);
        assert_eq!(members_of(&request(many.as_bytes())).len(), 20);
    }
}
