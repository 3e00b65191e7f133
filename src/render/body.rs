//! Response bodies for people: JSON indented, text unchanged, binary data as a hex dump.

use serde_json::Value;

use super::escape;

/// The most bytes that a hex dump shows.
const DUMP_BYTES: usize = 512;

/// The largest JSON that is indented, in bytes. Indenting takes many times the memory, and larger
/// bodies are not read on a terminal.
const LARGEST_INDENTED: usize = 1024 * 1024;

/// The lines of a body, safe for a terminal.
pub fn lines(body: &[u8]) -> Vec<String> {
    if body.len() <= LARGEST_INDENTED
        && let Ok(value @ (Value::Object(_) | Value::Array(_))) =
            serde_json::from_slice::<Value>(body)
        && let Ok(pretty) = serde_json::to_string_pretty(&value)
    {
        return pretty.lines().map(|line| escape::json(line.to_owned())).collect();
    }
    match std::str::from_utf8(body) {
        Ok(text) if is_text(text) => {
            // Bodies come from clients, so even text may contain control characters.
            text.lines().map(|line| escape::text(line.as_bytes())).collect()
        }
        _ => dump(body),
    }
}

fn is_text(text: &str) -> bool {
    for character in text.chars() {
        if character.is_control() && !matches!(character, '\n' | '\r' | '\t') {
            return false;
        }
    }
    true
}

/// A hex dump with sixteen bytes per line: offset, hex, and the printable characters.
fn dump(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    for (row, chunk) in bytes.chunks(16).take(DUMP_BYTES / 16).enumerate() {
        let mut hex = String::new();
        let mut text = String::new();
        for byte in chunk {
            hex += &format!("{byte:02x} ");
            text.push(if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' });
        }
        lines.push(format!("{:08x}  {hex:<48} |{text}|", row * 16));
    }
    if bytes.len() > DUMP_BYTES {
        lines.push(format!(
            "… {} more bytes; --body FILE writes the whole body",
            bytes.len() - DUMP_BYTES
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_numbers_stay_exact() {
        assert_eq!(
            lines(br#"{"a":12345678901234567890123}"#),
            ["{", "  \"a\": 12345678901234567890123", "}"]
        );
    }

    #[test]
    fn binary_is_dumped() {
        assert_eq!(lines(b"\x00\x01AB"), [format!("00000000  {:<48} |..AB|", "00 01 41 42 ")]);
    }

    #[test]
    fn text_keeps_its_lines() {
        assert_eq!(lines(b"a\nb\tc"), ["a", "b\\tc"]);
    }
}
