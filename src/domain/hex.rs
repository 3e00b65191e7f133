//! Hexadecimal digits, as checksums are written.

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
    let wrong = || format!("{} hex digits were expected", 2 * N);
    // Slicing by bytes below would panic within a multi-byte character.
    if text.len() != 2 * N || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
    }
    Ok(bytes)
}
