//! Whether a backup is whole: its last line counts what the lines above hold.

use serde::{Deserialize, Serialize};

use super::checksum;

/// What the lines of a backup hold, as its closing line says it and as a reader counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Count {
    /// Entries, those that were taken back among them.
    pub(super) records: u64,
    pub(super) redis_keys: u64,
    pub(super) lines: u64,
    /// The CRC-64/XZ over the checksums of all lines above, in order: a line that is gone changes it.
    pub(super) crc64_above: u64,
}

impl Count {
    /// Counts a line, given without its line feed, which holds an entry of so many Redis keys or none.
    pub(super) fn add(&mut self, line: &[u8], redis_keys: u64) {
        self.lines += 1;
        self.records += u64::from(redis_keys > 0);
        self.redis_keys += redis_keys;
        self.crc64_above = checksum::chained(self.crc64_above, line);
    }
}

/// How a backup ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Its closing line agrees with the lines above.
    Whole,
    /// Its run was killed, or the file lost its end.
    Missing,
    /// Its closing line counts other lines than there are.
    Differs,
}
