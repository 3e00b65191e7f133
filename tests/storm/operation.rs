//! An operation: one request on one idempotency key, from its first attempt to how it ends.

use std::time::{Duration, Instant};

use idemctl::domain::record::response::Response;

/// How an operation ends, unless somebody takes its lock away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// The reply was lost, or so it seemed: the response is stored once more.
    CompleteTwice,
    Fail,
    Crash,
    /// What is left of it has no expiry.
    CrashForEver,
}

/// Where it stands.
#[derive(Debug, Clone, Copy)]
pub enum Phase {
    /// It tries to get the lock, until it gives up.
    Begins { until: Instant },
    /// It works, and renews its lock so often.
    Works { until: Instant, renews: Option<Duration> },
    /// It stores its response once more.
    StoresAgain,
}

/// One request.
#[derive(Debug)]
pub struct Operation {
    pub key: String,
    pub owner: String,
    pub response: Response,
    pub phase: Phase,
    pub ending: Ending,
    /// It takes the lock without an expiry and is gone.
    pub is_stillborn: bool,
}

/// How long an operation works and how it ends, by chance.
pub fn plan(rng: &mut fastrand::Rng, lock_ttl: Duration) -> (Duration, Option<Duration>, Ending) {
    let millis = |rng: &mut fastrand::Rng, range: std::ops::Range<u64>| {
        Duration::from_millis(rng.u64(range))
    };
    match rng.u8(0..100) {
        0..40 => (millis(rng, 5..300), None, Ending::Complete),
        40..52 => (millis(rng, 5..200), None, Ending::CompleteTwice),
        52..66 => (millis(rng, 5..150), None, Ending::Fail),
        66..73 => (millis(rng, 5..300), None, Ending::Crash),
        73..82 => (millis(rng, 5..300), None, Ending::CrashForEver),
        // Longer than the shortest locks live.
        82..86 => (millis(rng, 500..4_000), None, Ending::Complete),
        _ => {
            let work = millis(rng, 6_000..25_000);
            (work, Some(renewal(rng, lock_ttl)), Ending::Complete)
        }
    }
}

/// From 0.2 to 20 seconds, as often shorter as longer than 2 s, and well within the lock's TTL.
fn renewal(rng: &mut fastrand::Rng, lock_ttl: Duration) -> Duration {
    let renewal = Duration::from_secs_f64(0.2 * 100_f64.powf(rng.f64()));
    renewal.min(lock_ttl / 3)
}
