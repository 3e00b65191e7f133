//! The slot of a Redis key in a Redis Cluster, which has 16384 slots.
//!
//! The redis crate has this only in its feature `cluster`, whose client idemctl does not use
//! (`store/cluster/routing.rs` says why).

use crc::{CRC_16_XMODEM, Crc, Table};

/// The number of slots in a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// Reads 16 bytes at a time, because a scan of a cluster needs the slot of every Redis key.
static CRC: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_XMODEM);

/// The slot of a Redis key: CRC-16 of the text between the first `{` and the next `}` if there is
/// any, else of the whole key (Redis Cluster specification, "Hash tags").
pub fn of(redis_key: &[u8]) -> u16 {
    CRC.checksum(hashed(redis_key)) % SLOTS
}

/// True if all keys are in one slot.
pub(crate) fn is_one<'a>(redis_keys: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut slots = redis_keys.into_iter().map(of);
    let Some(first) = slots.next() else { return true };
    slots.all(|slot| slot == first)
}

/// The slot of each key in words, for messages.
pub(crate) fn words<'a>(redis_keys: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut words = Vec::new();
    for redis_key in redis_keys {
        words.push(format!("{} is in slot {}", redis_key.escape_ascii(), of(redis_key)));
    }
    words.join(", ")
}

/// Slots in ascending order, as ranges: `0-5460, 7000`.
pub(crate) fn ranges(slots: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for slot in slots {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *slot => *last = *slot,
            _ => ranges.push((*slot, *slot)),
        }
    }
    let mut words = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        words.push(if first == last { format!("{first}") } else { format!("{first}-{last}") });
    }
    words.join(", ")
}

/// The part of the key that determines its slot.
fn hashed(redis_key: &[u8]) -> &[u8] {
    let Some(open) = redis_key.iter().position(|byte| *byte == b'{') else { return redis_key };
    let inside = &redis_key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        // An empty tag `{}` does not count, and neither does a later one in the same key.
        Some(close) if close > 0 => &inside[..close],
        _ => redis_key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_the_specification() {
        assert_eq!(of(b"123456789"), 0x31c3);
        assert_eq!(of(b""), 0);
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
        assert_eq!(of(b"foo{}{bar}"), CRC.checksum(b"foo{}{bar}") % SLOTS);
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{{bar}x"));
        assert_eq!(of(b"foo{bar}{zap}"), of(b"bar"));
        assert_eq!(of(b"foo{bar"), CRC.checksum(b"foo{bar") % SLOTS);
    }

    #[test]
    fn slots_are_listed_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0, 1, 2, 5, 16_382, 16_383]), "0-2, 5, 16382-16383");
    }

    #[test]
    fn keys_of_one_slot_are_recognised() {
        assert!(is_one([&b"a{t}"[..], b"b{t}"]));
        assert!(!is_one([&b"a"[..], b"b"]));
        assert!(is_one([]));
        assert_eq!(words([&b"a\n"[..]]), format!("a\\n is in slot {}", of(b"a\n")));
    }
}
