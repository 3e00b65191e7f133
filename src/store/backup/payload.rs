//! Builds the DUMP of a string from the string itself, because a server takes longer to create it
//! than to read the record. Reads the DUMP of strings and of long hashes.
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

/// The type of a hash with many fields or a long one, whose order is that of a hash table. Short
/// hashes have other types, and keep the order of their fields.
const HASH: u8 = 4;

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

/// The names and values of a long hash's fields, in turn; `None` for any other payload.
pub(super) fn fields_in(payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (&kind, rest) = payload.split_first()?;
    if kind != HASH {
        return None;
    }
    let mut reader = RdbReader { rest };
    let RdbLength::Plain(fields) = reader.length()? else { return None };
    let mut words = Vec::new();
    for _ in 0..fields {
        words.push(reader.string()?);
        words.push(reader.string()?);
    }
    if reader.rest.len() == END { Some(words) } else { None }
}

/// Reads the encodings of an RDB file.
struct RdbReader<'a> {
    rest: &'a [u8],
}

/// The length before a string, or the form of a string that has none.
enum RdbLength {
    Plain(usize),
    /// A number as this many bytes, the lowest first.
    Number(usize),
    Compressed,
}

impl RdbReader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn length(&mut self) -> Option<RdbLength> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Some(match (first >> 6, low) {
            (0, _) => RdbLength::Plain(usize::from(low)),
            (1, _) => RdbLength::Plain(usize::from(low) << 8 | usize::from(self.byte()?)),
            (2, 0) => {
                let bytes = self.take(4)?.try_into().ok()?;
                RdbLength::Plain(usize::try_from(u32::from_be_bytes(bytes)).ok()?)
            }
            (2, 1) => {
                let bytes = self.take(8)?.try_into().ok()?;
                RdbLength::Plain(usize::try_from(u64::from_be_bytes(bytes)).ok()?)
            }
            (3, 0..=2) => RdbLength::Number(1 << low),
            (3, 3) => RdbLength::Compressed,
            _ => return None,
        })
    }

    fn plain_length(&mut self) -> Option<usize> {
        match self.length()? {
            RdbLength::Plain(length) => Some(length),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        match self.length()? {
            RdbLength::Plain(length) => Some(self.take(length)?.to_vec()),
            RdbLength::Number(1) => {
                let bytes = self.take(1)?.try_into().ok()?;
                Some(i8::from_le_bytes(bytes).to_string().into_bytes())
            }
            RdbLength::Number(2) => {
                let bytes = self.take(2)?.try_into().ok()?;
                Some(i16::from_le_bytes(bytes).to_string().into_bytes())
            }
            RdbLength::Number(_) => {
                let bytes = self.take(4)?.try_into().ok()?;
                Some(i32::from_le_bytes(bytes).to_string().into_bytes())
            }
            RdbLength::Compressed => {
                let compressed = self.plain_length()?;
                let length = self.plain_length()?;
                uncompressed(self.take(compressed)?, length)
            }
        }
    }
}

/// The text of this length that LZF compressed: runs of literal bytes, and references to bytes
/// before. `None` if it is damaged.
fn uncompressed(mut compressed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while let Some((&control, rest)) = compressed.split_first() {
        if text.len() > length {
            return None;
        }
        let control = usize::from(control);
        if control < 32 {
            let (literal, rest) = rest.split_at_checked(control + 1)?;
            text.extend_from_slice(literal);
            compressed = rest;
            continue;
        }
        let mut count = (control >> 5) + 2;
        let mut rest = rest;
        if count == 9 {
            let (&more, after) = rest.split_first()?;
            count += usize::from(more);
            rest = after;
        }
        let (&low, rest) = rest.split_first()?;
        let back = ((control & 0x1f) << 8 | usize::from(low)) + 1;
        let start = text.len().checked_sub(back)?;
        // The bytes may overlap those that they are copied to.
        for index in start..start + count {
            text.push(text[index]);
        }
        compressed = rest;
    }
    if text.len() == length { Some(text) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// What Redis 7.0 replied to DUMP: numbers, compressed texts and an empty one.
    const HASH_DUMP: &[u8] = b"\x04\x06\x03big\xc2@B\x0f\x00\x06status\xc0\x07\x04body\xc3\n@x\x02aba\
        \xe0j\x01\x01ab\x01n\xc1\xd4\xfe\x01e\x00\x05plain\xc3\x18@\\\x01xx\xe0;\x00\x0byz0123456789\
        \xc0\t\x0189\n\x00T\xb2\x0c\xc5\x19\xdal\xb3";

    #[test]
    fn the_fields_of_a_long_hash_are_found_again() {
        let text = |text: &str| text.as_bytes().to_vec();
        let wanted = [
            [text("big"), text("1000000")],
            [text("status"), text("7")],
            [text("body"), text(&"ab".repeat(60))],
            [text("n"), text("-300")],
            [text("e"), text("")],
            [text("plain"), text(&format!("{}yz01234567890123456789", "x".repeat(70)))],
        ];
        assert_eq!(fields_in(HASH_DUMP), Some(wanted.concat()));
        for cut in 0..HASH_DUMP.len() {
            assert_eq!(fields_in(&HASH_DUMP[..cut]), None, "{cut}");
        }
        assert_eq!(fields_in(&of_string(b"abc").unwrap()), None);
    }

    proptest! {
        #[test]
        fn damaged_fields_are_no_panic(at in 0..HASH_DUMP.len(), byte in any::<u8>()) {
            let mut damaged = HASH_DUMP.to_vec();
            damaged[at] = byte;
            fields_in(&damaged);
        }
    }
}
