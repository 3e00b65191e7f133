//! The TTL of test keys, and the commands that delete them.

use std::time::Duration;

use crate::store::{Packed, pack};

/// The longest TTL of a lock or a result that a race or a simulation creates, whatever TTLs its
/// schema has. Test keys are deleted at the end. This TTL is for the keys of an idemctl that was
/// killed. It is longer than any round or scenario.
///
/// The number is unusual, so that no script contains it by chance. A key with this TTL got it from
/// idemctl.
pub const TEST_KEYS_LIVE: Duration = Duration::from_secs(337);

/// How many Redis keys are deleted with one command: few enough that other clients do not have to
/// wait.
const REMOVED_AT_ONCE: usize = 100;

/// The commands that delete Redis keys. In a cluster each names one key, because a command must not
/// name keys of several slots.
pub(super) fn removals(redis_keys: &[Vec<u8>], is_cluster: bool) -> impl Iterator<Item = Packed> {
    let at_once = if is_cluster { 1 } else { REMOVED_AT_ONCE };
    redis_keys.chunks(at_once).map(|batch| {
        let mut words = vec![&b"UNLINK"[..]];
        words.extend(batch.iter().map(Vec::as_slice));
        pack(words)
    })
}
