//! How long test keys live.

use std::time::Duration;

/// How long a lock or a result lives that a race or a simulation makes, whatever its schema's TTLs are. Test keys are
/// removed at the end; this is for those of an idemctl that was killed. Longer than any round or scenario takes.
///
/// Nobody writes such a number into a script: where a key has this TTL, it was sent to the script.
pub const TEST_KEYS_LIVE: Duration = Duration::from_secs(337);
