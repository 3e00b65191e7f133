//! What all checks of one run share.

use std::cell::Cell;
use std::time::Duration;

use super::message::{ProbeAnswer, ProbeRequest};
use super::payload::with_other_payload;
use super::profile::ProbeProfile;
use super::template::RequestTemplate;

/// The request, the profile and the options of one run.
#[derive(Debug, Clone)]
pub(crate) struct ProbeTask {
    pub(crate) template: RequestTemplate,
    /// The body that the operator gave as another payload.
    pub(crate) other_body: Option<Vec<u8>>,
    /// The body that the operator gave to make the service fail.
    pub(crate) failing_body: Option<Vec<u8>>,
    pub(crate) profile: ProbeProfile,
    /// The random name of this run, which is part of each key.
    pub(crate) run: String,
    /// True if keys are UUIDs.
    pub(crate) has_uuid_keys: bool,
    pub(crate) concurrency: usize,
    /// How often each simultaneous check is repeated.
    pub(crate) rounds: usize,
    /// The time before the retry of `replay-later`.
    pub(crate) later: Duration,
    /// The path that the operator gave as another operation of the service.
    pub(crate) other_path: Option<String>,
    /// The header that names another caller.
    pub(crate) other_caller: Option<(String, Vec<u8>)>,
    /// True if idemctl can read the number of effects.
    pub(crate) counts_effects: bool,
    /// True if the number is that of one key.
    pub(crate) counts_by_key: bool,
    /// Why the number of effects proves nothing, such as that it changes by itself.
    pub(crate) effects_drift: Option<String>,
    /// True if idemctl reads the records in Redis.
    pub(crate) reads_records: bool,
    /// True if idemctl changes the records of its own keys, to see what the service does.
    pub(crate) makes_faults: bool,
    pub(crate) baseline: Baseline,
    /// How many keys were made.
    pub(crate) keys: Cell<u32>,
}

/// What the first requests showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Baseline {
    /// How long the first answer took, in microseconds.
    pub(crate) answer_us: u64,
    /// True if simultaneous requests with different keys get different results, so that a replay can be told from an execution.
    pub(crate) tells_results_apart: bool,
    /// True if a retry of the same request succeeds. Otherwise a rejection shows nothing about
    /// another request.
    pub(crate) retries_succeed: bool,
    /// True if a replay equals the first answer, so that a difference means an execution.
    pub(crate) replays_equal: bool,
}

/// The prefix of each key.
pub(crate) const KEY_PREFIX: &str = "idemctl-probe";

/// The first group of each key that is a UUID.
pub(crate) const UUID_PREFIX: &str = "1de3c710";

impl ProbeTask {
    /// A key that no other request of any run has.
    pub(crate) fn new_key(&self) -> String {
        let number = self.keys.get() + 1;
        self.keys.set(number);
        let prefix = self.key_prefix();
        // With a fixed length, no key is the beginning of another one.
        if self.has_uuid_keys {
            format!("{prefix}{number:05x}")
        } else {
            format!("{prefix}{number:05}")
        }
    }

    /// The beginning of each key of this run.
    pub(crate) fn key_prefix(&self) -> String {
        let run = &self.run;
        if self.has_uuid_keys {
            // The bits of version 4 and of the variant are those of RFC 9562.
            return format!(
                "{UUID_PREFIX}-{}-4{}-8{}-{}",
                &run[..4],
                &run[4..7],
                &run[7..10],
                &format!("{:0<7}", &run[10..])[..7]
            );
        }
        format!("{KEY_PREFIX}-{run}-")
    }

    /// The operator's request with a new key.
    ///
    /// # Errors
    /// Why the check is not applicable.
    pub(crate) fn new_request(&self) -> Result<ProbeRequest, String> {
        self.request(&self.new_key())
    }

    /// The operator's request with a key.
    ///
    /// # Errors
    /// Why the check is not applicable.
    pub(super) fn request(&self, key: &str) -> Result<ProbeRequest, String> {
        self.template.with_key(key)
    }

    /// The operator's request with the first `numbered` other payload, and a key.
    ///
    /// # Errors
    /// Why the check is not applicable.
    pub(super) fn other_request(&self, key: &str, number: u64) -> Result<ProbeRequest, String> {
        match &self.other_body {
            Some(body) if number == 1 => self.with_body(body, key),
            _ => with_other_payload(&self.request(key)?, number).ok_or_else(|| {
                "the body has no number to change; pass another payload with --other-data"
                    .to_owned()
            }),
        }
    }

    /// The request that makes the service fail, with a new key; `None` if the operator gave none.
    ///
    /// # Errors
    /// Why the check is not applicable.
    pub(super) fn failing_request(&self) -> Result<Option<ProbeRequest>, String> {
        let failing = self.failing_body.as_ref();
        failing.map(|body| self.with_body(body, &self.new_key())).transpose()
    }

    fn with_body(&self, body: &[u8], key: &str) -> Result<ProbeRequest, String> {
        let template = RequestTemplate { body: body.to_vec(), ..self.template.clone() };
        template.with_key(key)
    }

    pub(crate) fn is_conflict(&self, answer: &ProbeAnswer) -> bool {
        self.profile.statuses.conflict.contains(&answer.status)
    }

    /// True if the answer rejects a used key with another payload, as the profile says. If the profile
    /// names no status, this is any rejection that is not one of a conflict.
    pub(super) fn is_mismatch(&self, answer: &ProbeAnswer) -> bool {
        let named = &self.profile.statuses.mismatch;
        if named.is_empty() {
            let is_rejection = matches!(answer.status, 400..=499) && !answer.is_overload();
            return is_rejection && !self.is_conflict(answer);
        }
        named.contains(&answer.status)
    }

    /// A time in which a request has begun, but has not ended. Timers are too coarse for a quick
    /// service, so it is zero there.
    pub(super) fn part_of_request(&self) -> Duration {
        match self.baseline.answer_us {
            0..4_000 => Duration::ZERO,
            took => Duration::from_micros((took / 2).min(500_000)),
        }
    }
}
