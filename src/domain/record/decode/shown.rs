//! What is told by its first bytes alone, and shown as it stands: reading it would be running what it says, or takes the
//! language that wrote it.

use crate::domain::schema::Encoding;

/// Whether bytes begin as what an encoding writes.
pub(super) fn begins_as(encoding: Encoding, head: &[u8]) -> bool {
    match encoding {
        // From protocol 2 on, which Python 2.3 brought; before it a pickle is told from no other text.
        Encoding::Pickle => matches!(head, [0x80, 2..=5, ..]),
        Encoding::Marshal => head.starts_with(&[4, 8]),
        Encoding::Php => is_php(head),
        _ => true,
    }
}

/// `N;`, `b:1;`, `i:-5;`, `d:0.5;`, and what has a length in front: `s:3:"abc";`, `a:1:{…}`, `O:8:"stdClass":0:{}`.
fn is_php(head: &[u8]) -> bool {
    let Some((kind, rest)) = head.split_first() else { return false };
    let Some(value) = rest.strip_prefix(b":") else { return head == b"N;" };
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match kind {
        b'b' => matches!(value, b"0;" | b"1;"),
        b'i' | b'd' => value.first().is_some_and(|first| first.is_ascii_digit() || b"-.IN".contains(first)),
        b's' | b'a' | b'O' | b'C' | b'E' => digits > 0 && value.get(digits) == Some(&b':'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        for (encoding, head) in [
            (Encoding::Pickle, &b"\x80\x04\x95"[..]),
            (Encoding::Marshal, b"\x04\x08["),
            (Encoding::Php, b"O:56:\"Square1\\LaravelIdempotency"),
            (Encoding::Php, b"a:1:{i:0;s:1:\"x\";}"),
            (Encoding::Php, b"i:-5;"),
            (Encoding::Php, b"N;"),
        ] {
            assert!(begins_as(encoding, head), "{}", head.escape_ascii());
        }
        for other in [&b""[..], b"{\"a\":1}", b"Zk3uJ9aQw1XyBv7T", b"a:b", b"s:", b"1", b"\x80\x09"] {
            for encoding in [Encoding::Pickle, Encoding::Marshal, Encoding::Php] {
                assert!(!begins_as(encoding, other), "{}", other.escape_ascii());
            }
        }
    }
}
