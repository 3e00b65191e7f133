//! All checks, in the order in which they are made and shown.

use super::{concurrency, failures, faults, mismatch, replay, stored_record};
use crate::domain::probe::probe_check::{ProbeCheck, ProbeGroup, ProbeNeed};
use crate::domain::probe::profile::ProbeProfile;

/// Every check.
pub(crate) static CHECKS: [ProbeCheck; 26] = [
    ProbeCheck {
        id: "replay-at-once",
        group: ProbeGroup::Replay,
        title: "a retry right after the whole answer is a success, too",
        needs: ProbeNeed::Nothing,
        shown: &[0, 1],
        steps: replay::send_twice_at_once,
        judge: replay::at_once,
    },
    ProbeCheck {
        id: "replay-status",
        group: ProbeGroup::Replay,
        title: "a retry gets the status of the first answer",
        needs: ProbeNeed::Nothing,
        shown: &[0, 1],
        steps: replay::send_twice,
        judge: replay::status,
    },
    ProbeCheck {
        id: "replay-body",
        group: ProbeGroup::Replay,
        title: "a retry gets the body of the first answer",
        needs: ProbeNeed::Nothing,
        shown: &[0, 1],
        steps: replay::send_twice,
        judge: replay::body,
    },
    ProbeCheck {
        id: "replay-headers",
        group: ProbeGroup::Replay,
        title: "a retry gets Location, ETag and Content-Type of the first answer",
        needs: ProbeNeed::Nothing,
        shown: &[0, 1],
        steps: replay::send_twice,
        judge: replay::headers,
    },
    ProbeCheck {
        id: "replay-one-effect",
        group: ProbeGroup::Replay,
        title: "a request and its two retries execute once",
        needs: ProbeNeed::Effects,
        shown: &[1, 2],
        steps: replay::send_three_times,
        judge: replay::one_effect,
    },
    ProbeCheck {
        id: "replay-later",
        group: ProbeGroup::Replay,
        title: "a retry after a pause (--later) gets the result",
        needs: ProbeNeed::Nothing,
        shown: &[1, 3],
        steps: replay::send_again_later,
        judge: replay::later,
    },
    ProbeCheck {
        id: "concurrent-one-effect",
        group: ProbeGroup::Concurrency,
        title: "simultaneous requests with one key execute once",
        needs: ProbeNeed::Effects,
        shown: &[],
        steps: concurrency::rounds,
        judge: concurrency::one_effect,
    },
    ProbeCheck {
        id: "concurrent-answers",
        group: ProbeGroup::Concurrency,
        title: "simultaneous requests with one key get one result, or are rejected as in progress",
        needs: ProbeNeed::Nothing,
        shown: &[],
        steps: concurrency::rounds,
        judge: concurrency::answers,
    },
    ProbeCheck {
        id: "concurrent-payloads",
        group: ProbeGroup::Concurrency,
        title: "of simultaneous requests with one key and different payloads, one succeeds, and the \
                others are rejected with a status of the profile",
        needs: ProbeNeed::Nothing,
        shown: &[2],
        steps: concurrency::payloads,
        judge: concurrency::different_payloads,
    },
    ProbeCheck {
        id: "concurrent-keys",
        group: ProbeGroup::Concurrency,
        title: "simultaneous requests with different keys are all accepted",
        needs: ProbeNeed::Nothing,
        shown: &[1],
        steps: concurrency::keys,
        judge: concurrency::different_keys,
    },
    ProbeCheck {
        id: "mismatch-payload",
        group: ProbeGroup::Mismatch,
        title: "another payload with a used key is rejected with the status of the profile, if it \
                names one",
        needs: ProbeNeed::Nothing,
        shown: &[1, 2],
        steps: mismatch::other_payload,
        judge: mismatch::payload,
    },
    ProbeCheck {
        id: "mismatch-members",
        group: ProbeGroup::Mismatch,
        title: "another value of any one member of the body with a used key is rejected",
        needs: ProbeNeed::Nothing,
        shown: &[0],
        steps: mismatch::other_members,
        judge: mismatch::members,
    },
    ProbeCheck {
        id: "mismatch-path",
        group: ProbeGroup::Mismatch,
        title: "another path with a used key is rejected",
        needs: ProbeNeed::Nothing,
        shown: &[0, 2],
        steps: mismatch::other_path,
        judge: mismatch::path,
    },
    ProbeCheck {
        id: "mismatch-caller",
        group: ProbeGroup::Mismatch,
        title: "another caller with the same key does not get the first caller's result",
        needs: ProbeNeed::Nothing,
        shown: &[0, 2],
        steps: mismatch::other_caller,
        judge: mismatch::caller,
    },
    ProbeCheck {
        id: "key-missing",
        group: ProbeGroup::Header,
        title: "a request without a key is rejected",
        needs: ProbeNeed::Nothing,
        shown: &[1],
        steps: mismatch::without_key,
        judge: mismatch::missing,
    },
    ProbeCheck {
        id: "disconnect-retry",
        group: ProbeGroup::Failures,
        title: "a client that disconnects before the answer and retries executes once",
        needs: ProbeNeed::Effects,
        shown: &[1, 2],
        steps: failures::disconnect,
        judge: failures::disconnected,
    },
    ProbeCheck {
        id: "timeout-retry-early",
        group: ProbeGroup::Failures,
        title: "a retry on a second connection, before the first answer, executes nothing",
        needs: ProbeNeed::Nothing,
        shown: &[1],
        steps: failures::retry_before,
        judge: failures::early,
    },
    ProbeCheck {
        id: "timeout-retry-late",
        group: ProbeGroup::Failures,
        title: "a retry after an answer that the client did not read executes nothing",
        needs: ProbeNeed::Effects,
        shown: &[1, 2],
        steps: failures::retry_after,
        judge: failures::given_up,
    },
    ProbeCheck {
        id: "error-then-retry",
        group: ProbeGroup::Failures,
        title: "after a server error, a retry executes nothing a second time, and the error is not \
                stored without expiry",
        needs: ProbeNeed::Nothing,
        shown: &[1, 2],
        steps: failures::error_then_retry,
        judge: failures::error,
    },
    ProbeCheck {
        id: "record-lock",
        group: ProbeGroup::Record,
        title: "a lock with a TTL is held while the handler runs",
        needs: ProbeNeed::Records,
        shown: &[0],
        steps: stored_record::read_while_running,
        judge: stored_record::lock,
    },
    ProbeCheck {
        id: "record-owner",
        group: ProbeGroup::Record,
        title: "the locks of two requests have different owners",
        needs: ProbeNeed::Records,
        shown: &[0, 1],
        steps: stored_record::read_two_locks,
        judge: stored_record::owner,
    },
    ProbeCheck {
        id: "record-stored",
        group: ProbeGroup::Record,
        title: "the result is stored when the answer has arrived",
        needs: ProbeNeed::Records,
        shown: &[0],
        steps: stored_record::watch,
        judge: stored_record::stored,
    },
    ProbeCheck {
        id: "record-ttl",
        group: ProbeGroup::Record,
        title: "the stored result expires, and not before its TTL or the promised retention",
        needs: ProbeNeed::Records,
        shown: &[0],
        steps: stored_record::send_once,
        judge: stored_record::ttl,
    },
    ProbeCheck {
        id: "fault-lock-expires",
        group: ProbeGroup::Fault,
        title: "a retry after the lock expired while the handler runs executes nothing",
        needs: ProbeNeed::Faults,
        shown: &[1],
        steps: faults::lose_lock,
        judge: faults::lost_lock,
    },
    ProbeCheck {
        id: "fault-foreign-value",
        group: ProbeGroup::Fault,
        title: "a retry that finds an unrecognised value in place of its result executes nothing and \
                keeps the value",
        needs: ProbeNeed::Faults,
        shown: &[1, 3],
        steps: faults::replace_result,
        judge: faults::foreign_value,
    },
    ProbeCheck {
        id: "fault-result-expires",
        group: ProbeGroup::Fault,
        title: "a retry after the stored result expired executes nothing",
        needs: ProbeNeed::Faults,
        shown: &[1, 3],
        steps: faults::expire_result,
        judge: faults::expired_result,
    },
];

/// Parses a profile.
///
/// # Errors
/// The text is not TOML, a field is missing or unknown, or there is no check with an id.
pub(crate) fn parse_profile(text: &str) -> Result<ProbeProfile, String> {
    let profile = ProbeProfile::parse(text)?;
    for id in profile.checks.keys() {
        if !CHECKS.iter().any(|check| check.id == id) {
            return Err(format!("there is no check `{id}`"));
        }
    }
    Ok(profile)
}
