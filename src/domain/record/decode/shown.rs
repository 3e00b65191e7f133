//! What is told by its first bytes alone, and shown as it stands: reading it would be running what it says, or takes the
//! language that wrote it.

use crate::domain::schema::Encoding;

/// Whether bytes begin as what an encoding writes.
pub(super) fn begins_as(encoding: Encoding, head: &[u8]) -> bool {
    match encoding {
        // From protocol 2 on, which Python 2.3 brought; before it a pickle is told from no other text.
        Encoding::Pickle => matches!(head, [0x80, 2..=5, ..]),
        Encoding::Marshal => head.starts_with(&[4, 8]),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        for (encoding, head) in
            [(Encoding::Pickle, &b"\x80\x04\x95"[..]), (Encoding::Marshal, b"\x04\x08[")]
        {
            assert!(begins_as(encoding, head), "{}", head.escape_ascii());
        }
        for other in [&b""[..], b"{\"a\":1}", b"Zk3uJ9aQw1XyBv7T", b"a:b", b"s:", b"1", b"\x80\x09"]
        {
            for encoding in [Encoding::Pickle, Encoding::Marshal] {
                assert!(!begins_as(encoding, other), "{}", other.escape_ascii());
            }
        }
    }
}
