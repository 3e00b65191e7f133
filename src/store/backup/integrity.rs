//! Checks whether a backup is intact: the checksums of its values and lines, the closing line that
//! counts the others, and the lines that cannot be used.
//!
//! A backup has two kinds of checksums: the one at the end of each DUMP, and the one at the end of
//! each line.
//!
//! A line ends in `,"crc64":"0123456789abcdef"}`. The sixteen digits are the CRC-64/XZ of
//! everything before `,"crc64"` in the line. A CRC detects every flipped bit and every burst of
//! errors up to its own width. It reads the line once, and needs no second copy of a large value.
//! It does not detect deliberate changes.

use std::io::Write as _;

use crc::{CRC_64_REDIS, Crc, Table};
use serde::{Deserialize, Serialize};

use crate::domain::snapshot::CRC;

static OF_DUMP: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The bytes after the fields of a line: `,"crc64":"`, sixteen digits, `"}`.
const SEAL: usize = 28;

/// Ends a line that began at `start` with its checksum. This replaces the brace that closes its
/// fields.
pub(super) fn seal(text: &mut Vec<u8>, start: usize) {
    text.pop_if(|last| *last == b'}');
    let seal = seal_of(&text[start..]);
    text.extend_from_slice(&seal);
}

/// True if a line, without its line feed, has the right checksum.
pub(super) fn is_sealed(line: &[u8]) -> bool {
    let Some(length) = line.len().checked_sub(SEAL) else { return false };
    let (fields, seal) = line.split_at(length);
    seal == seal_of(fields)
}

fn seal_of(fields: &[u8]) -> [u8; SEAL] {
    let mut seal = [0; SEAL];
    // The seal has exactly this length.
    let _ = write!(&mut seal[..], ",\"crc64\":\"{:016x}\"}}", CRC.checksum(fields));
    seal
}

/// Chains the checksum of a sealed line to those of the lines before.
pub(super) fn chained(before: u64, line: &[u8]) -> u64 {
    let seal = &line[line.len().saturating_sub(SEAL)..];
    let mut digest = CRC.digest();
    digest.update(&before.to_be_bytes());
    digest.update(seal);
    digest.finalize()
}

/// True if the bytes have the checksum that DUMP wrote.
pub(super) fn holds(dump: &[u8]) -> bool {
    let Some((payload, sum)) = dump.split_last_chunk::<8>() else { return false };
    of_dump(payload) == u64::from_le_bytes(*sum)
}

/// The checksum at the end of a DUMP.
pub(super) fn of_dump(payload: &[u8]) -> u64 {
    OF_DUMP.checksum(payload)
}

/// Counts of the lines of a backup, as the closing line states them, and as a reader counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Count {
    /// Entries, including those that were withdrawn.
    pub(super) records: u64,
    pub(super) redis_keys: u64,
    pub(super) lines: u64,
    /// The CRC-64/XZ over the checksums of all lines above, in order, so that it also detects a
    /// missing line.
    pub(super) crc64_above: u64,
}

impl Count {
    /// Counts a line without its line feed. Its entry has this many Redis keys; other lines have
    /// none.
    pub(super) fn add(&mut self, line: &[u8], redis_keys: u64) {
        self.lines += 1;
        self.records += u64::from(redis_keys > 0);
        self.redis_keys += redis_keys;
        self.crc64_above = chained(self.crc64_above, line);
    }
}

/// How a backup ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Its closing line agrees with the lines above.
    Whole,
    /// Its run was killed, or the file lost its end.
    Missing,
    /// Its closing line does not match the lines above.
    Differs,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineFault {
    /// A version of idemctl wrote it whose format this version does not read.
    OtherVersion(String),
    /// It contains no data: only a line feed, spaces, or the NULs of disk blocks that were never
    /// written.
    Blank,
    Cut,
    /// It does not begin like a line of a backup.
    Foreign,
    /// It is intact, but follows the closing line.
    Behind,
    /// It is not as it was written.
    Damaged(String),
}

impl LineFault {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::OtherVersion(why) | Self::Damaged(why) => why,
            Self::Blank => "the line is empty",
            Self::Cut => "the line is truncated",
            Self::Foreign => "this is not a line of an idemctl backup",
            Self::Behind => {
                "the line follows the closing line, so it does not belong to this backup"
            }
        }
    }
}

/// Lines that cannot be used: those in the middle, which intact lines follow, and those at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    pub middle: Option<Gap>,
    pub tail: Option<Gap>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The number of the first, from 1.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// How many they are. Intact lines may be between them.
    pub lines: u64,
    /// The fault of the first of them, or of the first that may have contained a changed Redis key.
    pub why: String,
    /// True if one of them may have contained a Redis key that was changed. A line that a crash
    /// truncated never does, because nothing is changed before its line is completely on the disk.
    pub may_have_held: bool,
}

impl Damage {
    pub fn is_none(&self) -> bool {
        self.middle.is_none() && self.tail.is_none()
    }

    pub fn lines(&self) -> u64 {
        let mut lines = 0;
        for gap in self.gaps() {
            lines += gap.lines;
        }
        lines
    }

    /// True if an unusable line may have contained a Redis key that was changed.
    pub fn may_have_held(&self) -> bool {
        self.gaps().any(|gap| gap.may_have_held)
    }

    fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.middle.iter().chain(&self.tail)
    }

    /// Counts a faulty line; `is_ended` is true if a line feed ends it.
    pub(super) fn add(&mut self, line: u64, fault: &LineFault, is_ended: bool) {
        let may_have_held = match fault {
            LineFault::Blank => false,
            // A crash truncates only the last line, and its record was not changed yet.
            LineFault::Cut => is_ended,
            LineFault::OtherVersion(_)
            | LineFault::Foreign
            | LineFault::Behind
            | LineFault::Damaged(_) => true,
        };
        let new =
            Gap { first: line, last: line, lines: 1, why: fault.why().to_owned(), may_have_held };
        self.tail = Some(Gap::join(self.tail.take(), new));
    }

    /// Notes that an intact line follows, so that the gap so far is in the middle.
    pub(super) fn is_followed(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.middle = Some(Gap::join(self.middle.take(), tail));
        }
    }
}

impl Gap {
    fn join(before: Option<Self>, behind: Self) -> Self {
        let Some(before) = before else { return behind };
        let why =
            if before.may_have_held || !behind.may_have_held { before.why } else { behind.why };
        Self {
            first: before.first,
            last: behind.last,
            lines: before.lines + behind.lines,
            why,
            may_have_held: before.may_have_held || behind.may_have_held,
        }
    }

    /// The lines of the gap, in words.
    pub fn words(&self) -> String {
        let Self { first, last, lines, .. } = self;
        match last - first + 1 {
            1 => format!("line {first}"),
            all if all == *lines => format!("lines {first} to {last}"),
            _ => format!("{lines} lines from {first} to {last}"),
        }
    }
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
        assert_eq!(seal, format!(",\"crc64\":\"{:016x}\"}}", CRC.checksum(b"{\"a\":1")).as_bytes());
        // The check value of CRC-64/XZ.
        assert_eq!(CRC.checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
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

    #[test]
    fn what_is_followed_by_a_whole_line_is_in_the_middle() {
        let mut damage = Damage::default();
        damage.add(2, &LineFault::Blank, true);
        damage.add(3, &LineFault::Foreign, true);
        damage.is_followed();
        damage.add(5, &LineFault::Damaged("flipped".to_owned()), true);
        damage.is_followed();
        damage.add(7, &LineFault::Cut, false);
        let (middle, tail) = (damage.middle.clone().unwrap(), damage.tail.clone().unwrap());
        assert_eq!((middle.words().as_str(), middle.lines), ("3 lines from 2 to 5", 3));
        assert_eq!(middle.why, LineFault::Foreign.why(), "the empty line held nothing");
        assert_eq!((tail.words().as_str(), tail.may_have_held), ("line 7", false));
        assert_eq!((damage.lines(), damage.may_have_held()), (4, true));
    }

    #[test]
    fn only_what_a_crash_leaves_held_nothing() {
        let may_have_held = |fault: &LineFault, is_ended| {
            let mut damage = Damage::default();
            damage.add(1, fault, is_ended);
            damage.may_have_held()
        };
        assert!(!may_have_held(&LineFault::Cut, false) && !may_have_held(&LineFault::Blank, true));
        assert!(may_have_held(&LineFault::Cut, true), "a line that ends was written to its end");
        assert!(
            may_have_held(&LineFault::Damaged(String::new()), false)
                && may_have_held(&LineFault::Foreign, false)
        );
    }
}
