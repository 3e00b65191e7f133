//! The two checksums of a backup: the one at the end of what DUMP gives, and the one at the end of each line.
//!
//! A line ends in `,"crc64":"0123456789abcdef"}`. The sixteen digits are the CRC-64/XZ of all that stands before them in
//! the line, up to and without `,"crc64"`: a CRC finds every flip of a bit and every burst up to its own width, reads the
//! line once, and needs no second copy of a large value. What somebody changes on purpose it does not find.

use crc::{CRC_64_REDIS, CRC_64_XZ, Crc, Table};

/// Sixteen bytes at a time, for every byte of a backup goes through.
static OF_LINE: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

static OF_DUMP: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The bytes behind the fields of a line: `,"crc64":"`, sixteen digits, `"}`.
const SEAL: usize = 28;

/// Ends a line that began at `start` with its checksum, in place of the brace that closes its fields.
pub(super) fn seal(text: &mut Vec<u8>, start: usize) {
    text.pop_if(|last| *last == b'}');
    let seal = seal_of(&text[start..]);
    text.extend_from_slice(seal.as_bytes());
}

/// True when a line, without its line feed, is as it was written.
pub(super) fn is_sealed(line: &[u8]) -> bool {
    let Some(length) = line.len().checked_sub(SEAL) else { return false };
    let (fields, seal) = line.split_at(length);
    seal == seal_of(fields).as_bytes()
}

fn seal_of(fields: &[u8]) -> String {
    format!(",\"crc64\":\"{:016x}\"}}", OF_LINE.checksum(fields))
}

/// Chains the checksum of a sealed line to those of the lines before.
pub(super) fn chained(before: u64, line: &[u8]) -> u64 {
    let seal = &line[line.len().saturating_sub(SEAL)..];
    OF_LINE.checksum(&[&before.to_be_bytes(), seal].concat())
}

/// True when the bytes are as DUMP gave them.
pub(super) fn holds(dump: &[u8]) -> bool {
    let Some((payload, sum)) = dump.split_last_chunk::<8>() else { return false };
    of_dump(payload) == u64::from_le_bytes(*sum)
}

/// The checksum at the end of what DUMP gives.
pub(super) fn of_dump(payload: &[u8]) -> u64 {
    OF_DUMP.checksum(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_damaged_dump() {
        // The check value every implementation of this CRC is held against.
        let check = 0xe9c6_d914_c4b8_d9ca_u64.to_le_bytes();
        let mut bytes = [b"123456789", &check[..]].concat();
        assert!(holds(&bytes));
        bytes[3] ^= 1;
        assert!(!holds(&bytes));
        assert!(!holds(b"short"));
    }

    #[test]
    fn a_line_is_sealed_as_documented_for_others_to_check() {
        let mut text = b"before\n{\"a\":1}".to_vec();
        seal(&mut text, 7);
        let line = &text[7..];
        let (fields, seal) = line.split_at(line.len() - SEAL);
        assert_eq!(fields, b"{\"a\":1");
        assert_eq!(seal, format!(",\"crc64\":\"{:016x}\"}}", OF_LINE.checksum(b"{\"a\":1")).as_bytes());
        // The check value of CRC-64/XZ.
        assert_eq!(OF_LINE.checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
        assert!(is_sealed(line) && !is_sealed(b"{\"a\":1}") && !is_sealed(b""));
    }

    #[test]
    fn no_bit_of_a_sealed_line_flips_unnoticed() {
        let mut line = b"{\"format\":1,\"void\":[\"aWRlbTph\"]}".to_vec();
        seal(&mut line, 0);
        for bit in 0..line.len() * 8 {
            let mut flipped = line.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sealed(&flipped), "bit {bit}");
        }
    }
}
