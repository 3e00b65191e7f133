//! Undoing a text that stands in front of a value, or behind.

use super::inflate::InflateEnd;

pub(super) fn prefix(bytes: &[u8], text: &str) -> (Vec<u8>, InflateEnd) {
    match bytes.strip_prefix(text.as_bytes()) {
        Some(rest) => (rest.to_vec(), InflateEnd::Reached),
        None if text.as_bytes().starts_with(bytes) => (Vec::new(), InflateEnd::Cut),
        None => (Vec::new(), InflateEnd::Damaged("it does not begin so".to_owned())),
    }
}

/// Of the beginning of a value nobody knows whether the text has begun.
pub(super) fn suffix(bytes: &[u8], text: &str, whole: bool) -> (Vec<u8>, InflateEnd) {
    match bytes.strip_suffix(text.as_bytes()) {
        Some(rest) if whole => (rest.to_vec(), InflateEnd::Reached),
        _ if !whole => (bytes.to_vec(), InflateEnd::Cut),
        _ => (Vec::new(), InflateEnd::Damaged("it does not end so".to_owned())),
    }
}
