//! The parts of clients' keys: `tenant:order` has one before its separator.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// The separators between parts of keys. The last four also occur within one part.
const SEPARATORS: [char; 7] = [':', '|', '#', '/', '_', '.', '-'];

/// The longest part that is taken for one that many keys share.
const LONGEST_PART: usize = 64;

/// Names of hash functions before a hash, as in `sha256:9f86d081`, which are no tenants.
const ALGORITHMS: [&str; 8] =
    ["md5", "sha1", "sha256", "sha384", "sha512", "blake2b", "blake3", "xxh64"];

fn is_algorithm(part: &[u8]) -> bool {
    ALGORITHMS.iter().any(|name| part.eq_ignore_ascii_case(name.as_bytes()))
}

/// How many keys of a schema have a part before a separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeparatorCounts {
    pub(crate) separator: char,
    pub(crate) with: u64,
    pub(crate) without: u64,
    /// How many different parts come before it.
    pub(crate) different: u64,
}

/// Counts while a sample is read.
#[derive(Default)]
pub(super) struct SeparatorCounter {
    hasher: RandomState,
    keys: u64,
    parts: [PartCounter; SEPARATORS.len()],
}

#[derive(Default)]
struct PartCounter {
    with: u64,
    /// Hashes of the parts.
    known: HashSet<u64>,
}

impl SeparatorCounter {
    pub(super) fn add(&mut self, key: &[u8]) {
        self.keys += 1;
        for (separator, counter) in SEPARATORS.iter().zip(&mut self.parts) {
            let mut found = key.iter().position(|byte| char::from(*byte) == *separator);
            // Base64 has slashes, too.
            let is_base64 = key.iter().any(|byte| matches!(byte, b'+' | b'='));
            found = found.filter(|at| {
                (1..=LONGEST_PART).contains(at)
                    && at + 1 < key.len()
                    && !(*separator == '/' && is_base64)
            });
            found = found.filter(|end| !is_algorithm(&key[..*end]));
            if let Some(end) = found {
                counter.with += 1;
                counter.known.insert(self.hasher.hash_one(&key[..end]));
            }
        }
    }

    pub(super) fn finish(self) -> Vec<SeparatorCounts> {
        let mut counts = Vec::new();
        for (separator, counter) in SEPARATORS.into_iter().zip(self.parts) {
            if counter.with > 0 {
                counts.push(SeparatorCounts {
                    separator,
                    with: counter.with,
                    without: self.keys - counter.with,
                    different: counter.known.len() as u64,
                });
            }
        }
        counts
    }
}
