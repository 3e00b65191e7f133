//! Builds the DUMP of a string from the string itself, because a server takes longer to create it
//! than to read the record.
//!
//! The format is that of RDB files: the type, the length, the bytes, the version of the format in
//! two bytes, and a CRC-64 of everything before. It has been the same for strings in every version.
//! DUMP may also compress a string, and RESTORE accepts both forms.

use super::integrity;

/// The version of Redis 6.2, the oldest supported one, because RESTORE rejects a version newer than
/// its server.
const RDB_VERSION: u16 = 9;

/// The type of a string.
const STRING: u8 = 0;

/// The bytes of the version and the checksum.
const END: usize = 10;

/// A length below this takes six bits.
const SHORT: usize = 1 << 6;

/// The longest string that is written here, because its length takes fourteen bits.
pub(in crate::store) const LONGEST: usize = (1 << 14) - 1;

/// The payload for a string; `None` for one that is longer than [`LONGEST`].
pub(in crate::store) fn of_string(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > LONGEST {
        return None;
    }
    let [high, low] = u16::try_from(text.len()).ok()?.to_be_bytes();
    let mut payload = Vec::with_capacity(text.len() + 3 + END);
    payload.push(STRING);
    match text.len() {
        ..SHORT => payload.push(low),
        _ => payload.extend([0x40 | high, low]),
    }
    payload.extend_from_slice(text);
    payload.extend(RDB_VERSION.to_le_bytes());
    let sum = integrity::of_dump(&payload);
    payload.extend(sum.to_le_bytes());
    Some(payload)
}

/// The string in a payload; `None` if DUMP compressed the string, wrote it as a number, or saved
/// another type.
pub(super) fn string_in(payload: &[u8]) -> Option<&[u8]> {
    let (&kind, rest) = payload.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first >> 6 {
        0 => (usize::from(first), rest),
        1 => {
            let (&low, rest) = rest.split_first()?;
            (usize::from(first & 0x3f) << 8 | usize::from(low), rest)
        }
        _ => return None,
    };
    let (text, end) = rest.split_at_checked(length)?;
    if kind == STRING && end.len() == END { Some(text) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_the_type_the_length_the_version_and_a_checksum() {
        assert!(integrity::holds(&of_string(b"abc").unwrap()));
        assert_eq!(of_string(b"abc").unwrap()[..7], *b"\0\x03abc\x09\0");
        assert_eq!(of_string(&[b'x'; 64]).unwrap()[..4], *b"\0\x40\x40x");
        assert_eq!(of_string(&[b'x'; LONGEST]).unwrap()[..4], *b"\0\x7f\xffx");
        assert_eq!(of_string(&[b'x'; LONGEST + 1]), None);
    }

    #[test]
    fn the_string_of_a_payload_is_found_again() {
        for length in [0, 1, 63, 64, 300, LONGEST] {
            let text = vec![b'x'; length];
            let payload = of_string(&text).unwrap();
            assert_eq!(string_in(&payload), Some(&text[..]));
            assert_eq!(string_in(&payload[..payload.len() - 1]), None);
        }
        // A number and a compressed string, in the format of RDB files.
        assert_eq!(string_in(b"\0\xc1\x39\x30\x0a\0\0\0\0\0\0\0\0\0"), None);
        assert_eq!(
            string_in(b"\0\xc3\x09\x40\x64\x01xx\xe0\x57\0\x01xx\x0a\0\0\0\0\0\0\0\0\0"),
            None
        );
    }
}
