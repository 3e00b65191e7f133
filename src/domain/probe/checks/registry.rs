//! All checks, in the order in which they are made and shown.

use super::{concurrency, failures, faults, mismatch, replay, stored_record};
use crate::domain::probe::probe_check::ProbeGroup::{
    self, Concurrency, Failures, Fault, Header, Mismatch, Record, Replay,
};
use crate::domain::probe::probe_check::ProbeNeed::{self, Effects, Faults, Nothing, Records};
use crate::domain::probe::probe_check::{Judged, MadeSteps, ProbeCheck, Steps};
use crate::domain::probe::profile::ProbeProfile;
use crate::domain::probe::task::ProbeTask;

/// Every check: its id, group and title, what it needs, the steps that show what it found, its
/// steps, and its judgement.
pub(crate) static CHECKS: [ProbeCheck; 26] = [
    check(
        "replay-at-once",
        Replay,
        "a retry right after the whole answer is a success, too",
        Nothing,
        &[0, 1],
        replay::send_twice_at_once,
        replay::at_once,
    ),
    check(
        "replay-status",
        Replay,
        "a retry gets the status of the first answer",
        Nothing,
        &[0, 1],
        replay::send_twice,
        replay::status,
    ),
    check(
        "replay-body",
        Replay,
        "a retry gets the body of the first answer",
        Nothing,
        &[0, 1],
        replay::send_twice,
        replay::body,
    ),
    check(
        "replay-headers",
        Replay,
        "a retry gets Location, ETag and Content-Type of the first answer",
        Nothing,
        &[0, 1],
        replay::send_twice,
        replay::headers,
    ),
    check(
        "replay-one-effect",
        Replay,
        "a request and its two retries execute once",
        Effects,
        &[1, 2],
        replay::send_three_times,
        replay::one_effect,
    ),
    check(
        "replay-later",
        Replay,
        "a retry after a pause (--later) gets the result",
        Nothing,
        &[1, 3],
        replay::send_again_later,
        replay::later,
    ),
    check(
        "concurrent-one-effect",
        Concurrency,
        "simultaneous requests with one key execute once",
        Effects,
        &[],
        concurrency::rounds,
        concurrency::one_effect,
    ),
    check(
        "concurrent-answers",
        Concurrency,
        "simultaneous requests with one key get one result, or are rejected as in progress",
        Nothing,
        &[],
        concurrency::rounds,
        concurrency::answers,
    ),
    check(
        "concurrent-payloads",
        Concurrency,
        "of simultaneous requests with one key and different payloads, one succeeds, and the \
                others are rejected with a status of the profile",
        Nothing,
        &[2],
        concurrency::payloads,
        concurrency::different_payloads,
    ),
    check(
        "concurrent-keys",
        Concurrency,
        "simultaneous requests with different keys are all accepted",
        Nothing,
        &[1],
        concurrency::keys,
        concurrency::different_keys,
    ),
    check(
        "mismatch-payload",
        Mismatch,
        "another payload with a used key is rejected with the status of the profile, if it \
                names one",
        Nothing,
        &[1, 2],
        mismatch::other_payload,
        mismatch::payload,
    ),
    check(
        "mismatch-members",
        Mismatch,
        "another value of any one member of the body with a used key is rejected",
        Nothing,
        &[0],
        mismatch::other_members,
        mismatch::members,
    ),
    check(
        "mismatch-path",
        Mismatch,
        "another path with a used key is rejected",
        Nothing,
        &[0, 2],
        mismatch::other_path,
        mismatch::path,
    ),
    check(
        "mismatch-caller",
        Mismatch,
        "another caller with the same key does not get the first caller's result",
        Nothing,
        &[0, 2],
        mismatch::other_caller,
        mismatch::caller,
    ),
    check(
        "key-missing",
        Header,
        "a request without a key is rejected",
        Nothing,
        &[1],
        mismatch::without_key,
        mismatch::missing,
    ),
    check(
        "disconnect-retry",
        Failures,
        "a client that disconnects before the answer and retries executes once",
        Effects,
        &[1, 2],
        failures::disconnect,
        failures::disconnected,
    ),
    check(
        "timeout-retry-early",
        Failures,
        "a retry on a second connection, before the first answer, executes nothing",
        Nothing,
        &[1],
        failures::retry_before,
        failures::early,
    ),
    check(
        "timeout-retry-late",
        Failures,
        "a retry after an answer that the client did not read executes nothing",
        Effects,
        &[1, 2],
        failures::retry_after,
        failures::given_up,
    ),
    check(
        "error-then-retry",
        Failures,
        "after a server error, a retry executes nothing a second time, and the error is not \
                stored without expiry",
        Nothing,
        &[1, 2],
        failures::error_then_retry,
        failures::error,
    ),
    check(
        "record-lock",
        Record,
        "a lock with a TTL is held while the handler runs",
        Records,
        &[0],
        stored_record::read_while_running,
        stored_record::lock,
    ),
    check(
        "record-owner",
        Record,
        "the locks of two requests have different owners",
        Records,
        &[0, 1],
        stored_record::read_two_locks,
        stored_record::owner,
    ),
    check(
        "record-stored",
        Record,
        "the result is stored when the answer has arrived",
        Records,
        &[0],
        stored_record::watch,
        stored_record::stored,
    ),
    check(
        "record-ttl",
        Record,
        "the stored result expires, and not before its TTL or the promised retention",
        Records,
        &[0],
        stored_record::send_once,
        stored_record::ttl,
    ),
    check(
        "fault-lock-expires",
        Fault,
        "a retry after the lock expired while the handler runs executes nothing",
        Faults,
        &[1],
        faults::lose_lock,
        faults::lost_lock,
    ),
    check(
        "fault-foreign-value",
        Fault,
        "a retry that finds an unrecognised value in place of its result executes nothing and \
                keeps the value",
        Faults,
        &[1, 3],
        faults::replace_result,
        faults::foreign_value,
    ),
    check(
        "fault-result-expires",
        Fault,
        "a retry after the stored result expired executes nothing",
        Faults,
        &[1, 3],
        faults::expire_result,
        faults::expired_result,
    ),
];

/// A row of the table.
const fn check(
    id: &'static str,
    group: ProbeGroup,
    title: &'static str,
    needs: ProbeNeed,
    shown: &'static [usize],
    steps: fn(&ProbeTask) -> Steps,
    judge: fn(&MadeSteps<'_>) -> Judged,
) -> ProbeCheck {
    ProbeCheck { id, group, title, needs, shown, steps, judge }
}

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
