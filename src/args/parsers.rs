//! What the values of options have to be.

use std::time::Duration;

use crate::domain::duration::parse_duration;

/// A duration longer than zero.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a TTL is longer than zero".to_owned()),
        ttl => Ok(ttl),
    }
}

/// An owner token or a hash of a payload: one line of text.
pub(crate) fn parse_token(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        Err("it has control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// An owner token, which is never empty.
pub(crate) fn parse_owner(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("an owner is not empty".to_owned()) } else { parse_token(text) }
}
