//! Hexadecimal digits, as checksums are written. These are a few lines, so they do not justify a
//! dependency.

use std::fmt::Write as _;

/// The bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Parses exactly `N` bytes of hex digits.
///
/// # Errors
/// The text has another length, or a character that is not a hex digit.
pub(crate) fn unhex<const N: usize>(text: &str) -> Result<[u8; N], String> {
    // Slicing by bytes below would panic within a multi-byte character.
    if text.len() != 2 * N || !text.is_ascii() {
        return Err(expected(2 * N));
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        match u8::from_str_radix(&text[2 * index..2 * index + 2], 16) {
            Ok(value) => *byte = value,
            Err(_) => return Err(expected(2 * N)),
        }
    }
    Ok(bytes)
}

fn expected(digits: usize) -> String {
    format!("{digits} hex digits were expected")
}
