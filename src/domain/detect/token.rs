//! Folds one part of a Redis key: text that varies from key to key becomes the name of its class.

/// The shortest random text; a shorter one may be a word.
const MIN_RANDOM: usize = 16;

/// The shortest hexadecimal number; a shorter one, such as `face2`, may be a name.
const MIN_HEX: usize = 8;

/// A part of a Redis key as a pattern shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Folded {
    /// The text with its varying pieces as `{n}`, `{uuid}` and the like.
    pub(super) shape: String,
    /// True if a piece of the part was folded.
    pub(super) varies: bool,
}

/// The shape of any text.
pub(super) const ANY: &str = "*";

/// Classes that do not recognise every random text of their kind. If other texts occur beside them,
/// all are any text.
pub(super) const LOOSE: [&str; 2] = ["{base64}", "{id}"];

/// Folds a part of a Redis key.
pub(super) fn fold(token: &[u8]) -> Folded {
    let text = String::from_utf8_lossy(token);
    let shape = match whole(&text) {
        Some(class) => class.to_owned(),
        None => of_parts(&text),
    };
    let varies = shape != text;
    Folded { shape, varies }
}

/// The class of a part that consists of one token; `None` if it contains words.
fn whole(text: &str) -> Option<&'static str> {
    if is_uuid(text) {
        return Some("{uuid}");
    }
    if consists_of(text, u8::is_ascii_digit) {
        return Some("{n}");
    }
    let has_digit = contains(text, u8::is_ascii_digit);
    // Without a digit, text such as `deadbeef` may be a word.
    if text.len() >= MIN_HEX && has_digit && consists_of(text, u8::is_ascii_hexdigit) {
        return Some("{hex}");
    }
    if text.len() < MIN_RANDOM {
        return None;
    }
    let is_padded = text.ends_with('=');
    let is_mixed = contains(text, u8::is_ascii_uppercase) && contains(text, u8::is_ascii_lowercase);
    // Random text of this length nearly always has a digit. Without one, only the padding of Base64
    // identifies it.
    if (is_padded || has_digit && is_mixed) && consists_of(text, is_base64) {
        return Some("{base64}");
    }
    // One digit in five is what random base 32 or base 36 has; a word with a number has fewer.
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits * 5 >= text.len() && consists_of(text, u8::is_ascii_alphanumeric) {
        return Some("{id}");
    }
    None
}

/// True for a text of at least one byte that has only bytes of this kind.
fn consists_of(text: &str, is_kind: fn(&u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(|byte| is_kind(&byte))
}

/// True for a text with at least one byte of this kind.
fn contains(text: &str, is_kind: fn(&u8) -> bool) -> bool {
    text.bytes().any(|byte| is_kind(&byte))
}

/// The shape of a part that consists of words and classes, separated by `-`.
fn of_parts(text: &str) -> String {
    // A UUID contains the separator, so it is cut off first.
    if let Some(at) = text.len().checked_sub(36)
        && text.is_char_boundary(at)
        && is_uuid(&text[at..])
    {
        return format!("{}{{uuid}}", of_parts(&text[..at]));
    }
    let mut shapes = Vec::new();
    for part in text.split('-') {
        shapes.push(match whole(part) {
            Some(class) => class.to_owned(),
            None => without_numbers(part),
        });
    }
    shapes.join("-")
}

fn without_numbers(text: &str) -> String {
    let mut shape = String::new();
    for character in text.chars() {
        match character.is_ascii_digit() {
            true if shape.ends_with("{n}") => {}
            true => shape.push_str("{n}"),
            false => shape.push(character),
        }
    }
    shape
}

fn is_uuid(text: &str) -> bool {
    if text.len() != 36 {
        return false;
    }
    for (index, byte) in text.bytes().enumerate() {
        let fits = match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_that_varies_from_key_to_key_is_folded() {
        for (token, shape) in [
            ("orders", "orders"),
            ("10008", "{n}"),
            ("order-10008", "order-{n}"),
            ("v2", "v{n}"),
            ("550e8400-e29b-41d4-a716-446655440000", "{uuid}"),
            ("pay-550e8400-e29b-41d4-a716-446655440000", "pay-{uuid}"),
            ("29e18cb356200b53e267423c5f99dece", "{hex}"),
            ("deadbeef", "deadbeef"),
            ("a1b22c", "a{n}b{n}c"),
            ("0tXET60XEBZ+v9jUIdm9A==", "{base64}"),
            ("01hv3x2k9c4m5n6p7q8r9s0t1v", "{id}"),
            ("", ""),
        ] {
            let folded = fold(token.as_bytes());
            assert_eq!((folded.shape.as_str(), folded.varies), (shape, shape != token), "{token}");
        }
    }

    proptest! {
        #[test]
        fn a_uuid_and_a_number_are_recognised_whatever_their_digits(uuid in "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", n in "[0-9]{1,20}") {
            prop_assert_eq!(fold(uuid.as_bytes()).shape, "{uuid}");
            prop_assert_eq!(fold(n.as_bytes()).shape, "{n}");
        }

        #[test]
        fn a_word_stays_as_it_is(token in "[a-zA-Z-]{0,12}") {
            let folded = fold(token.as_bytes());
            prop_assert!(!folded.varies);
            prop_assert_eq!(folded.shape, token);
        }

        #[test]
        fn any_bytes_fold(token in prop::collection::vec(any::<u8>(), 0..60)) {
            fold(&token);
        }
    }
}
