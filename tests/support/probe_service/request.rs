//! What a request asks for: its key, its caller and its payment.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::http::{Answer, Request};
use super::variant::Variant;

/// The longest key, in characters.
const LONGEST_KEY: usize = 255;

/// When the first execution of a key fails.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    Before,
    After,
}

/// The body of a request.
#[derive(Deserialize)]
pub struct Payment {
    pub order: String,
    pub amount: i64,
    pub fail: Option<Fail>,
}

impl Payment {
    /// Reads and checks the body.
    ///
    /// # Errors
    /// The answer to a body that is not a payment.
    pub fn of(request: &Request) -> Result<Self, Answer> {
        let Ok(payment) = serde_json::from_slice::<Self>(&request.body) else {
            return Err(Answer::problem(400, "The body needs an order (text) and an amount"));
        };
        if payment.amount <= 0 {
            return Err(Answer::problem(400, "The amount is not above 0"));
        }
        Ok(payment)
    }
}

/// The request's idempotency key: a string of RFC 9651 in quotes, whose parameters are ignored, or
/// visible ASCII without quotes.
///
/// # Errors
/// The answer to a request without a usable key.
pub fn idempotency_key(request: &Request) -> Result<String, Answer> {
    let &[value] = &request.values("idempotency-key")[..] else {
        return Err(match request.values("idempotency-key").len() {
            0 => Answer::problem(400, "Idempotency-Key is missing"),
            _ => Answer::problem(400, "Idempotency-Key occurs more than once"),
        });
    };
    let unusable = || Answer::problem(400, "Idempotency-Key is not 1 to 255 visible characters");
    let text = std::str::from_utf8(value).map_err(|_| unusable())?;
    let key = match text.strip_prefix('"') {
        Some(quoted) => {
            let (key, parameters) = quoted.split_once('"').ok_or_else(unusable)?;
            if !parameters.is_empty() && !parameters.trim_start().starts_with(';') {
                return Err(unusable());
            }
            key
        }
        None => text,
    };
    let is_usable = |byte: u8| byte.is_ascii_graphic() && !b"\"\\,;".contains(&byte);
    if key.is_empty() || key.len() > LONGEST_KEY || !key.bytes().all(is_usable) {
        return Err(unusable());
    }
    Ok(key.to_owned())
}

/// The hash of what a retry must repeat: caller, method, target and body.
pub fn fingerprint(request: &Request, variant: Option<Variant>) -> String {
    let mut hash = Sha256::new();
    if variant != Some(Variant::AnyCaller) {
        for caller in request.values("authorization") {
            hash.update(caller);
        }
    }
    if variant != Some(Variant::IgnoresPayload) {
        let ignores_path = variant == Some(Variant::IgnoresPath);
        let target = if ignores_path { "" } else { &request.target };
        let body = match Payment::of(request) {
            Ok(payment) if variant == Some(Variant::IgnoresMembers) => {
                payment.amount.to_string().into_bytes()
            }
            _ => request.body.clone(),
        };
        for part in [request.method.as_bytes(), target.as_bytes(), &body] {
            hash.update([0]);
            hash.update(part);
        }
    }
    format!("{:x}", hash.finalize())
}
