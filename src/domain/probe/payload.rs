//! Other payloads and other paths, made from the operator's request.

use bstr::ByteSlice as _;
use serde_json::{Number, Value};
use url::Url;

use super::message::ProbeRequest;
use super::template::KEY_MARK;

/// The request with another payload, but the same key: one number of a JSON body is larger by
/// `step`. `None` if the body is not JSON, or has no number.
pub(super) fn with_other_payload(
    request: &ProbeRequest,
    step: u64,
    key_field: Option<&str>,
) -> Option<ProbeRequest> {
    let mut document: Value = serde_json::from_slice(&request.body).ok()?;
    let key = key_field.and_then(|pointer| document.pointer(pointer)).cloned();
    if !raise_first_number(&mut document, step, key.as_ref()) {
        return None;
    }
    let body = serde_json::to_vec(&document).ok()?;
    Some(ProbeRequest { body, ..request.clone() })
}

/// The request with the members of the JSON body in reverse order, and with white space. `None` if
/// the body is not a JSON object with at least two members.
pub(super) fn with_other_order(request: &ProbeRequest) -> Option<ProbeRequest> {
    let document: Value = serde_json::from_slice(&request.body).ok()?;
    let Value::Object(members) = document else { return None };
    if members.len() < 2 {
        return None;
    }
    let reversed: Value = members.into_iter().rev().collect::<serde_json::Map<_, _>>().into();
    let body = serde_json::to_vec_pretty(&reversed).ok()?;
    Some(ProbeRequest { body, ..request.clone() })
}

/// The request at another path of the same host. `{{key}}` in the path is replaced by the key.
///
/// # Errors
/// Why the check is not applicable.
pub(super) fn with_path(request: &ProbeRequest, path: &str) -> Result<ProbeRequest, String> {
    let key = request.key.as_deref().unwrap_or_default();
    let mut url = Url::parse(&request.url).map_err(|why| format!("the URL is not valid: {why}"))?;
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

/// Raises the first number, in the order of the document; false if there is none. The key itself
/// stays as it is.
fn raise_first_number(value: &mut Value, step: u64, key: Option<&Value>) -> bool {
    if key == Some(&*value) {
        return false;
    }
    match value {
        Value::Number(number) => {
            let raised = match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => whole.checked_add(step).map(Number::from),
                (None, Some(float)) => Number::from_f64(float + step as f64),
                _ => None,
            };
            match raised {
                Some(raised) => {
                    *number = raised;
                    true
                }
                None => false,
            }
        }
        Value::Array(items) => items.iter_mut().any(|item| raise_first_number(item, step, key)),
        Value::Object(members) => {
            members.values_mut().any(|member| raise_first_number(member, step, key))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
