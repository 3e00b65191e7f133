//! Makes bytes from Redis safe to print: they cannot move the cursor, set a colour or change the
//! writing direction.

use std::borrow::Cow;

use bstr::ByteSlice as _;

/// Bytes as text: printable characters unchanged, all others as `\n`, `\x1b`, `\u{202e}` and so on,
/// so that different bytes give different text. A backslash is doubled only if it would read as one
/// of these, because operators copy the names of PHP classes from tables.
pub fn text(bytes: &[u8]) -> String {
    // Without an early exit, the compiler checks many bytes at a time.
    let is_plain = bytes
        .iter()
        .fold(true, |plain, byte| plain & (matches!(byte, b' '..=b'~') & (*byte != b'\\')));
    if let Ok(plain) = std::str::from_utf8(bytes)
        && is_plain
    {
        return plain.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(character) = characters.next() {
            // The next character may show that a backslash does not begin an escape.
            if character == '\\'
                && let Some(next) = characters.peek()
                && (' '..='~').contains(next)
                && !"\\nrtxu".contains(*next)
            {
                text.push(character);
            } else {
                push(&mut text, character);
            }
        }
        // Bytes that are not UTF-8 are shown one by one, so that no two keys look the same.
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// An idempotency key for people. An empty key is shown as two quotes, as in a name.
pub fn key(bytes: &[u8]) -> String {
    if bytes.is_empty() { "\"\"".to_owned() } else { text(bytes) }
}

/// Text that was escaped before it was stored, possibly by another program: unchanged, except for
/// characters that move the cursor.
pub fn again(escaped: &str) -> String {
    let mut text = String::with_capacity(escaped.len());
    for character in escaped.chars() {
        if character == '\\' { text.push(character) } else { push(&mut text, character) }
    }
    text
}

/// Text for people. Line ends and colours stay, and everything else that moves the cursor or
/// changes the writing direction is escaped. Messages contain paths and file contents from many
/// sources, and this is their last filter.
pub fn styled(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = color(rest).unwrap_or(character.len_utf8());
        match character {
            // A backslash may be the beginning of an escape that was made earlier.
            '\n' | '\\' => safe.push(character),
            '\x1b' if length > 1 => safe.push_str(&rest[..length]),
            _ => push(&mut safe, character),
        }
        rest = &rest[length..];
    }
    Cow::Owned(safe)
}

/// The length of the colour sequence at the beginning of a text: `ESC [`, numbers and semicolons,
/// `m`.
fn color(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    // Two bytes for the beginning, and one for the `m`.
    if numbers[end..].starts_with('m') { Some(end + 3) } else { None }
}

fn push(text: &mut String, character: char) {
    match character {
        // The usual case. `escape_debug` would also escape quotes, which are harmless on a
        // terminal.
        ' '..='~' if character != '\\' => text.push(character),
        // `escape_debug` would write `\u{1b}`; `\x1b` is shorter, and looks like any escaped byte.
        '\0'..='\x1f' | '\x7f' if !matches!(character, '\n' | '\r' | '\t') => {
            text.push_str(&format!("\\x{:02x}", u32::from(character)));
        }
        _ => text.extend(character.escape_debug()),
    }
}

/// JSON text with `\uXXXX` for every character that a terminal does not print. Its meaning is the
/// same.
pub fn json(json: String) -> String {
    // The usual case: serde_json escapes all other ASCII control characters, so only DEL may
    // remain.
    if json.is_ascii() && json.as_bytes().find_byte(b'\x7f').is_none() {
        return json;
    }
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\x7f' || character.escape_debug().count() == 1 {
            safe.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_what_moves_a_terminal() {
        assert_eq!(text(b"a\x1b[31m\x07\n\xff"), "a\\x1b[31m\\x07\\n\\xff");
        assert_eq!(text("x\u{202e}y\u{9b}\u{200b}".as_bytes()), "x\\u{202e}y\\u{9b}\\u{200b}");
        assert_eq!(text("für \"Zoë\" 😀".as_bytes()), "für \"Zoë\" 😀");
        assert_eq!(text(b"a\\n"), "a\\\\n");
        assert_eq!(text(br"App\Jobs\Charge:42"), r"App\Jobs\Charge:42");
    }

    #[test]
    fn escaped_text_stays_as_it_is() {
        let once = text(b"a\\\x1b[31m\xff");
        assert_eq!(again(&once), once);
        assert_eq!(again("a\x1b[31m\\x07"), "a\\x1b[31m\\x07");
    }

    #[test]
    fn people_see_colours_and_lines_and_nothing_moves() {
        assert_eq!(styled("a\n\u{1b}[1;31mred\u{1b}[0m é"), "a\n\u{1b}[1;31mred\u{1b}[0m é");
        assert_eq!(
            styled("\u{1b}[2Jx\u{1b}]0;t\u{7}\r\u{9b}2J\u{202e}"),
            "\\x1b[2Jx\\x1b]0;t\\x07\\r\\u{9b}2J\\u{202e}"
        );
        assert_eq!(styled("\u{1b}["), "\\x1b[");
    }

    /// The bytes that an escaped text represents.
    fn meant(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text);
        while let Some(character) = rest.chars().next() {
            let mut skip = character.len_utf8();
            let hex = |text: &str| u32::from_str_radix(text, 16).unwrap();
            match rest.as_bytes() {
                [b'\\', b'\\', ..] => (bytes.push(b'\\'), skip = 2).0,
                [b'\\', letter @ (b'n' | b'r' | b't'), ..] => {
                    bytes.push(match letter {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        _ => b'\t',
                    });
                    skip = 2;
                }
                [b'\\', b'x', ..] => {
                    (bytes.push(u8::try_from(hex(&rest[2..4])).unwrap()), skip = 4).0
                }
                [b'\\', b'u', ..] => {
                    let (code, _) = rest[3..].split_once('}').unwrap();
                    bytes.extend(char::from_u32(hex(code)).unwrap().to_string().bytes());
                    skip = code.len() + 4;
                }
                _ => bytes.extend(character.to_string().bytes()),
            }
            rest = &rest[skip..];
        }
        bytes
    }

    proptest! {
        #[test]
        fn different_bytes_give_different_text(bytes in prop::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'n'), any::<u8>()], 0..20)) {
            prop_assert_eq!(meant(&text(&bytes)), bytes);
        }

        #[test]
        fn nothing_unprintable_is_left(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(text(&bytes).chars().all(|c| !c.is_control()));
        }

        #[test]
        fn escaped_json_has_the_same_meaning(original in any::<String>()) {
            let escaped = json(serde_json::to_string(&original).unwrap());
            prop_assert!(escaped.chars().all(|c| !c.is_control()));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), original);
        }
    }
}
