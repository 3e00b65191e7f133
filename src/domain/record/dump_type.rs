//! What a DUMP says of the type of its value.

/// The type of a value that is no string, by the first byte of its DUMP; empty for one that is not known here.
pub(super) fn type_of_dump(dump: &[u8]) -> Option<&'static str> {
    match dump.first()? {
        0 => None,
        1 | 10 | 14 | 18 => Some("list"),
        2 | 11 | 20 => Some("set"),
        3 | 5 | 12 | 17 => Some("zset"),
        4 | 9 | 13 | 16 | 22..=25 => Some("hash"),
        15 | 19 | 21 | 26 => Some("stream"),
        _ => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_type() {
        assert_eq!([0, 4, 16, 20, 17, 200].map(|first| type_of_dump(&[first])), {
            [None, Some("hash"), Some("hash"), Some("set"), Some("zset"), Some("")]
        });
        assert_eq!(type_of_dump(b""), None);
    }
}
