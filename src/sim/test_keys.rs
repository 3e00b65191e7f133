//! How long test keys live, and how they are removed.

use std::time::Duration;

use crate::store::{Packed, pack};

/// How long a lock or a result lives that a race or a simulation makes, whatever its schema's TTLs are. Test keys are
/// removed at the end; this TTL is for the test keys of an idemctl that was killed. It is longer than any round or scenario.
///
/// Nobody writes such a number into a script: where a key has this TTL, the TTL was sent to the script.
pub const TEST_KEYS_LIVE: Duration = Duration::from_secs(337);

/// Redis keys that are removed at once: enough to be quick, few enough to keep nobody waiting.
const REMOVED_AT_ONCE: usize = 100;

/// The commands that remove Redis keys. In a cluster each names one, for no command may name keys of several slots.
pub(super) fn removals(redis_keys: &[Vec<u8>], is_cluster: bool) -> impl Iterator<Item = Packed> {
    let batches = redis_keys.chunks(if is_cluster { 1 } else { REMOVED_AT_ONCE });
    batches
        .map(|batch| pack(std::iter::once(&b"UNLINK"[..]).chain(batch.iter().map(Vec::as_slice))))
}
