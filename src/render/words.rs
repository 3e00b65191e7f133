//! Domain values as words and sentences.

use std::time::Duration;

use crate::domain::change::unlock::answer_without;
use crate::domain::duration;
use crate::domain::manual_step;
use crate::domain::record::age::millis;
use crate::domain::record::{Age, AgeSource, Evidence, Record, TimeLeft};
use crate::domain::schema::{Clock, PastExpiry, Schema, State, TtlOf};
use crate::domain::step::{Answer, NextRequest, StepReply, UnknownAnswer, fencing};
use crate::render::escape;

/// The longest reply that is shown unabridged, in bytes.
const LONGEST_WORD: usize = 40;

/// The time left, as `4m 12s` or `never`.
pub fn time_left(time_left: TimeLeft) -> String {
    match time_left {
        TimeLeft::NoExpiry => "never".to_owned(),
        TimeLeft::Millis(ms) => duration::short(ms),
    }
}

/// An age with its evidence.
pub fn age(age: Option<Age>) -> String {
    let Some(age) = age else { return "unknown".to_owned() };
    let of = match age.source {
        AgeSource::Record => {
            return format!("{} (by the time in the record)", duration::short(age.millis));
        }
        AgeSource::LockTtl => TtlOf::Lock,
        AgeSource::ResultTtl => TtlOf::Result,
    };
    let (name, setting) = (of.as_str(), of.option());
    let source = match age.evidence {
        Evidence::Estimated => format!(
            "estimated: the schema's default {name} TTL minus the time left; {setting} sets your \
            deployment's TTL"
        ),
        Evidence::Stated | Evidence::Known => {
            format!("this deployment's {name} TTL minus the time left")
        }
    };
    format!("{} ({source})", short_age(age))
}

/// An age in few characters. An estimate has a mark: `~23h`.
pub fn short_age(age: Age) -> String {
    format!("{}{}", age.evidence.mark(), duration::short(age.millis))
}

/// An idle time, which Redis reports in whole seconds.
pub fn idle(idle: Duration) -> String {
    match idle.as_secs() {
        0 => "under 1s".to_owned(),
        seconds => duration::short(seconds * 1_000),
    }
}

/// A number as `26,000`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A number with its noun: `1 key`, `2 keys`.
pub fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What a comparison with accepted results says if nothing differs.
pub const ALL_ACCEPTED: &str = "All results match the accepted file.\n";

/// The heading of what differs from accepted results.
pub const DIFFERENT: &str = "Different from the accepted file";

/// Why an idle time may be too short.
pub const IDLE_TIMES: &str = "earlier reads of idemctl count as accesses in the idle times; CLIENT \
    NO-TOUCH, of Redis 7.2 and outside clusters, prevents that";

/// What a scan of so many keys found: `3 records among 5 keys of db0`.
pub fn among(found: &str, keys: u64, server: &str) -> String {
    format!("{found} among {} of {server}", counted(keys, "key"))
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(words: &[String], last: &str) -> String {
    match words.split_last() {
        Some((end, others)) if !others.is_empty() => format!("{} {last} {end}", others.join(", ")),
        _ => words.concat(),
    }
}

/// A number of bytes as `512 B`, `64.0 KiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// The prediction for the next request: the first word of the sentence, and the rest.
pub fn next_request(record: &Record) -> (&'static str, String) {
    let (word, rest) = predicted_answer(record);
    (word, rest + &outside(record))
}

/// What is said of Redis keys outside the record on which the answer depends, too.
fn outside(record: &Record) -> String {
    let mut names = Vec::new();
    for redis_key in record.also_depends_on() {
        names.push(escape::text(&redis_key).to_string());
    }
    if names.is_empty() {
        return String::new();
    }
    let names = list(&names, "and");
    format!("; this also depends on {names}, which idemctl does not read")
}

fn predicted_answer(record: &Record) -> (&'static str, String) {
    let next = &record.next_request;
    let told = match &next.client {
        Some(client) => format!(" ({client})"),
        None => String::new(),
    };
    match next.answer {
        Answer::Execute => ("executes", executes(record).to_owned()),
        Answer::Conflict => {
            let rest = format!("{told} {}{}", how_long(record, next), with_fingerprint(next));
            ("conflict", rest)
        }
        Answer::Replay => {
            let told = replayed(record, &told);
            ("replay", format!("{told} {}{}", how_long(record, next), with_fingerprint(next)))
        }
        Answer::Fail => ("fails", format!("{told} {}", how_long(record, next))),
        Answer::Unknown => ("unknown", unknown_because(record)),
    }
}

fn unknown_because(record: &Record) -> String {
    let why = match (&record.next_request.unknown_because, &record.schema.begin) {
        (Some(UnknownAnswer::Value(why)), _) => {
            let is = if why.ends_with("is missing") { "incomplete" } else { "unclear" };
            let why = escape::text(why.as_bytes());
            return format!(", because the value is {is} ({why})");
        }
        (Some(because), _) => because.as_str(),
        (None, Some(_)) => "the schema does not say what the begin step replies in this state",
        (None, None) => "the schema does not describe the begin step",
    };
    format!(", because {why}")
}

/// For whom a prediction is if the stored fingerprint is empty or missing.
const ONLY_WITHOUT_FINGERPRINT: &str =
    "; this is for a request without a fingerprint, and others may be rejected";

/// Whom the prediction is for if the stored fingerprint is empty. A service may reject requests
/// with a fingerprint, or compare none; and its requests without one may have none, not an empty one.
fn with_fingerprint(next: &NextRequest) -> &'static str {
    if next.only_without_fingerprint { ONLY_WITHOUT_FINGERPRINT } else { "" }
}

fn executes(record: &Record) -> &'static str {
    let is_there = record.seen.keys.iter().any(|key| !key.content.is_absent());
    match record.contained_expiry().and_then(|(value, _)| value.past_expiry) {
        Some(_) => " the operation, because the stored value has passed its own expiry",
        None if is_there => " the operation",
        None => " the operation, because the key is free",
    }
}

/// The prediction for the next request as a clause:
/// `the next request gets conflict (409 Conflict) for another 4m …`.
pub fn then(record: &Record) -> String {
    let (word, rest) = next_request(record);
    let gets = match record.next_request.answer {
        Answer::Execute | Answer::Fail => "",
        Answer::Conflict => "gets ",
        Answer::Replay => "gets a ",
        Answer::Unknown => "gets a reply that is ",
    };
    format!("the next request {gets}{word}{rest}")
}

/// The same after a completion, and for whom it is if the service may compare payloads with a
/// fingerprint that the result does not have.
pub fn then_of_result(record: &Record) -> String {
    let then = then(record);
    let is_replay = record.next_request.answer == Answer::Replay;
    if !is_replay || record.fingerprint().is_some() || !manual_step::may_lack_fingerprint(record) {
        return then;
    }
    then + ONLY_WITHOUT_FINGERPRINT
}

/// A step's reply; for a long text only its size.
pub fn reply(reply: &StepReply) -> String {
    match reply {
        StepReply::Nil => "nil".to_owned(),
        StepReply::Integer(number) => number.to_string(),
        StepReply::Text(text) if text.len() <= LONGEST_WORD => escape::text(text),
        // A stored response may be megabytes long.
        StepReply::Text(text) => format!("a text of {}", bytes(text.len() as u64)),
        StepReply::Array(items) => {
            format!("[{}]", items.iter().map(self::reply).collect::<Vec<_>>().join(", "))
        }
        StepReply::Error { code, message } => {
            format!("error {}", escape::text(format!("{code} {message}").trim_end().as_bytes()))
        }
    }
}

fn how_long(record: &Record, next: &NextRequest) -> String {
    // An answer without an end is that of a lock to which this request gives a TTL.
    let Some(until) = next.until else {
        return "until the lock expires; it has no TTL, and this request gives it one".to_owned();
    };
    let what = match next.until_key {
        Some(key_index) => what_ends(record, key_index),
        None => "the value".to_owned(),
    };
    match until {
        TimeLeft::NoExpiry if next.until_key.is_some_and(|index| has_no_ttl(record, index)) => {
            format!("as long as {what} exists, because its service gives it no TTL")
        }
        TimeLeft::NoExpiry => format!("indefinitely, because {what} never expires"),
        TimeLeft::Millis(ms) => {
            // Another Redis key may still reject the next request then, such as a lock beside the
            // result.
            let after = match next.until_key {
                Some(key_index) => answer_without(record, key_index),
                None => Answer::Execute,
            };
            let then = match after {
                _ if record.is_renewable() => ", unless its worker renews the lock",
                Answer::Execute => executes_later(record, next),
                _ => "",
            };
            format!("for another {}, until {what} expires{then}", duration::short(ms))
        }
    }
}

/// That a request executes once the value that decides now has expired. Redis keys outside the
/// record, which stay, may still stop it.
fn executes_later(record: &Record, next: &NextRequest) -> &'static str {
    match next.until_key {
        Some(index) if !record.also_depends_on_without(index).is_empty() => ", then it may execute",
        _ => ", then it executes",
    }
}

/// The value of a Redis key, as the subject of a sentence about its end.
fn what_ends(record: &Record, key_index: usize) -> String {
    let state = match record.readings[key_index].decoded() {
        Some(value) => record.schema.values[value.format].state,
        None => State::Unreadable,
    };
    let what = match state {
        State::InProgress if key_index == record.schema.lock_key_index() => "the lock",
        State::Completed | State::Failed => "the result",
        _ => "the value",
    };
    what.to_owned()
}

/// True if the service sets no TTL on the value of this Redis key.
fn has_no_ttl(record: &Record, key_index: usize) -> bool {
    let schema = &record.schema;
    let Some(value) = record.readings[key_index].decoded() else { return false };
    let of = match schema.values[value.format].state {
        State::InProgress if key_index == schema.lock_key_index() => TtlOf::Lock,
        State::InProgress | State::Completed | State::Failed => TtlOf::Result,
        State::Absent | State::Released | State::Unreadable => return false,
    };
    record.schema.ttl(of).is_none()
}

fn replayed(record: &Record, told: &str) -> String {
    let status = record.stored().and_then(|response| response.status);
    match (status, record.blob()) {
        (Some(status), _) => format!(" of the stored response, status {status},"),
        (None, Some(_)) => " of the stored blob pointer".to_owned(),
        (None, None) => told.to_owned(),
    }
}

/// The expiry that a value itself contains, the clock that decides, and the consequence.
pub fn own_expiry(record: &Record) -> Option<String> {
    let (value, rule) = record.contained_expiry()?;
    let at = value.expires_ms?;
    let whose = match rule.clock {
        Clock::Client => "by the clients' clock, compared here with the server's",
        Clock::Server => "by the server's clock",
    };
    let mut field = match rule.field.as_str() {
        "" => "the whole value".to_owned(),
        field => escape::text(field.as_bytes()),
    };
    field.push_str(&lease(rule.plus));
    let Some(now) = record.seen.server_ms else {
        return Some(format!(
            "at the time in the value ({field}), but idemctl cannot read the server's time"
        ));
    };
    let then = match rule.past {
        PastExpiry::Absent => "the value counts as absent",
        PastExpiry::Reclaimable => "the next request may take the key over",
    };
    Some(match value.past_expiry {
        Some(_) => format!("{} ago: {then} ({field}; {whose})", duration::short(now - at)),
        None if record.is_renewable() => format!(
            "in {}, unless its worker renews the lock ({field}; {whose})",
            duration::short(at - now)
        ),
        None => format!("in {}, then {then} ({field}; {whose})", duration::short(at - now)),
    })
}

/// The length of a lease after the time in a value, as ` plus 30s`; empty if there is none.
pub fn lease(plus: Duration) -> String {
    if plus.is_zero() { String::new() } else { format!(" plus {}", duration::short(millis(plus))) }
}

/// What the next request with a key does whose lock was removed.
pub const NEXT_EXECUTES: &str = "The next request with the key executes the operation, unless a \
    result or another value remains.";

/// What the next request with a key does whose record was removed.
pub const NEXT_IS_FIRST: &str = "The next request with the key executes the operation.";

/// What a removed lock means if its worker still runs.
pub const RUNS_TWICE: &str = "if its worker is still running, the operation executes twice";

/// The consequence for the worker whose lock is removed, or released in its name.
pub fn late_worker(schema: &Schema, is_released: bool) -> &'static str {
    let may_store = is_released && fencing::stores_after_release(schema);
    match fencing::of(schema) {
        None => "It is unknown whether the worker can still store its result.",
        Some(late) if late.stores_when_absent || late.stores_when_retaken || may_store => {
            "The worker may still store its result, also under the lock of the next request."
        }
        Some(_) => "The worker can no longer store a result, because the service checks the owner.",
    }
}

/// A latency as `183µs`, `1.2ms`, `2.5s`.
pub fn latency(latency: Duration) -> String {
    let micros = latency.as_secs_f64() * 1e6;
    match micros {
        // The bounds are where rounding would give four digits: `1000µs` reads worse than `1.0ms`.
        ..999.5 => format!("{micros:.0}µs"),
        ..99_950.0 => format!("{:.1}ms", micros / 1e3),
        ..999_500.0 => format!("{:.0}ms", micros / 1e3),
        _ => format!("{:.1}s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_has_two_to_four_digits() {
        let of = |nanos| latency(Duration::from_nanos(nanos));
        assert_eq!(of(900), "1µs");
        assert_eq!(of(183_400), "183µs");
        assert_eq!(of(999_600), "1.0ms");
        assert_eq!(of(12_340_000), "12.3ms");
        assert_eq!(of(999_600_000), "1.0s");
    }
}
