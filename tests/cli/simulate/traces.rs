//! What workers leave behind: half a completion, a lock without TTL, the values of another release, an odd TTL.

use super::attempts::{HEALS, READS, TAKES};
use super::variant::{Variant, plays, reference};

const DROPS_LOCK: &str = r#"
[[complete.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "MEANS" }, { integer = 0, means = "MEANS" }]
"#;

const SETS_RESULT: &str = r#"
[[complete.call]]
command = ["SET", "{result}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "MEANS" }]
"#;

/// A schema with a lock and a result, whose completion is these two calls.
fn in_two_calls(first: &str, second: &str) -> Variant {
    let calls = [first.replace("MEANS", "next"), second.replace("MEANS", "stored")].concat();
    Variant::of("event-consumer").with_block(
        "schema.toml",
        ("[[complete.call]]", "[release]"),
        &format!("{calls}\n"),
    )
}

#[test]
fn half_a_completion_is_harmless_when_the_result_comes_first() {
    plays("event-consumer", "crash-between-steps").is("safe").makes(1);
    in_two_calls(SETS_RESULT, DROPS_LOCK).plays("crash-between-steps").is("safe").makes(1);
}

#[test]
fn a_crash_after_the_lock_is_dropped_makes_the_payment_twice() {
    let hasty = in_two_calls(DROPS_LOCK, SETS_RESULT);
    hasty.plays("crash-between-steps").is("duplicate").makes(2).because("by worker 1 and a retry");
}

#[test]
fn a_begin_that_asks_for_the_lock_first_waits_for_one_left_beside_a_result() {
    let text = std::fs::read_to_string(format!(
        "{}/lua/event-consumer/schema.toml",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let (start, end) = (text.find("[[begin.call]]").unwrap(), text.find("[complete]").unwrap());
    let second = text[start + 1..end].find("[[begin.call]]").unwrap() + start + 1;
    let (asks_result, takes_lock) = (&text[start..second], &text[second..end]);
    let takes_lock = takes_lock.replace("means = \"acquired\"", "means = \"next\"");
    let asks_result = asks_result.replace("means = \"next\"", "means = \"acquired\"");
    let reversed = Variant::of("event-consumer").with_block(
        "schema.toml",
        ("[[begin.call]]", "[complete]"),
        &format!("{takes_lock}{asks_result}"),
    );
    reversed.plays("crash-between-steps").is("blocked").blocks(60_000).makes(1);
}

#[test]
fn one_redis_key_completed_in_one_call_has_no_half() {
    plays("reference", "crash-between-steps").is("n/a").because("one Redis key and one call");
}

#[test]
fn a_begin_that_gives_a_lock_without_ttl_one_blocks_no_longer_than_that() {
    plays("reference", "lock-without-expiry").is("blocked").blocks(30_000).makes(1);
    reference().with("begin.lua", HEALS, "").plays("lock-without-expiry").is("stuck").makes(0);
}

#[test]
fn a_lock_whose_ttl_is_set_by_a_second_call_is_stuck_after_the_first() {
    let two_calls = r#"[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX"]
replies = [{ word = "OK", means = "next" }, { nil = true, means = "conflict", when = { lock = "present" } }]

[[begin.call]]
command = ["EXPIRE", "{lock}", "{lock_ttl}"]
replies = [{ integer = 1, means = "acquired", when = { lock = "absent" } }, { error = "*", means = "fail" }]

"#;
    let slow = Variant::of("event-driven").with_block(
        "schema.toml",
        ("[[begin.call]]", "[complete]"),
        two_calls,
    );
    slow.plays("lock-without-expiry").is("stuck").because("its own begin, after 1 of 2 calls");
    // EXPIRE 0 takes the lock away, and says 1.
    slow.plays("clock-of-ttl").is("overwritten").because("a TTL of 0");
}

#[test]
fn an_odd_ttl_is_refused_before_anything_is_written() {
    plays("reference", "clock-of-ttl").is("refused").makes(1);
    let rounded = reference().with(
        "begin.lua",
        "local lock_ttl = tonumber(ARGV[3])",
        "local lock_ttl = math.max(1, tonumber(ARGV[3]))",
    );
    rounded.plays("clock-of-ttl").is("safe").makes(1);
}

#[test]
fn an_odd_ttl_that_fails_behind_the_set_is_stuck() {
    let careless = reference()
        .with(
            "begin.lua",
            TAKES,
            "redis.call('SET', record, lock)\nredis.call('EXPIRE', record, ARGV[3])",
        )
        .with("begin.lua", HEALS, "");
    careless.plays("clock-of-ttl").is("stuck").makes(0).because("a TTL of 1.5");
}

#[test]
fn an_odd_ttl_that_becomes_no_lock_makes_the_payment_twice() {
    let careless = reference()
        .with("begin.lua", "not (lock_ttl > 0 and lock_ttl <= 1e9)", "lock_ttl > 1e9")
        .with("begin.lua", TAKES, &format!("if lock_ms ~= '0' then {TAKES} end"));
    careless.plays("clock-of-ttl").is("duplicate").makes(2).because("a TTL of 0");
}

#[test]
fn a_ttl_in_seconds_that_is_taken_for_milliseconds_makes_the_payment_twice() {
    let short = reference().with("begin.lua", "math.ceil(lock_ttl * 1000)", "math.ceil(lock_ttl)");
    short.plays("clock-of-ttl").is("duplicate");
}

#[test]
fn without_a_ttl_to_send_there_is_no_odd_one() {
    let fixed = reference().with("schema.toml", "\"{lock_ttl}\", \"retry\"]", "\"30\", \"retry\"]");
    fixed.plays("clock-of-ttl").is("n/a").because("sends no lock TTL");
}

/// A schema with another on the same Redis keys, and this answer to its values.
fn shared(answer: &str) -> Variant {
    let met = format!("if stored then\n  -- the other release's\n  {answer}\n  local locked_for");
    let shared =
        reference().and("express", "other").with("other/schema.toml", "idem:{key}", "pay:{key}");
    let shared = shared.with("schema.toml", "idemkey:{key}", "pay:{key}");
    shared.with("begin.lua", "if stored then\n  local locked_for", &met)
}

const LOCKED: &str = "if stored == '{\"status\":\"IN_PROGRESS\"}'";
const COMPLETED: &str =
    "if string.find(stored, '^{\"status\":\"COMPLETED\"') then return {'REPLAY', stored} end";

#[test]
fn a_value_of_another_release_blocks_who_cannot_read_it() {
    plays("reference", "foreign-value").is("n/a").because("no other schema");
    shared("").plays("foreign-value").is("blocked").blocks(86_400_000);
}

#[test]
fn who_reads_the_other_releases_values_waits_for_its_lock_and_replays_its_result() {
    let reads = shared(&format!("{LOCKED} then return {{'IN_PROGRESS', 1}} end\n{COMPLETED}"));
    reads.plays("foreign-value").is("blocked").blocks(30_000).makes(1).because("a lock of other");
}

#[test]
fn who_overwrites_the_other_releases_result_makes_the_payment_twice() {
    let forgets_results =
        format!("{READS}\nif stored and string.find(stored, 'COMPLETED') then stored = nil end");
    let forgets = shared("").with("begin.lua", READS, &forgets_results);
    forgets.plays("foreign-value").is("duplicate").makes(2).because("a result of other");
}

#[test]
fn who_takes_the_lock_from_the_other_release_makes_the_payment_twice() {
    let forgets = shared(COMPLETED).with(
        "begin.lua",
        READS,
        &format!("{READS}\n{LOCKED} then stored = nil end"),
    );
    let cell = forgets.plays("foreign-value").is("overwritten").makes(2);
    cell.because("worker 1 removed or replaced the result of a retry");
}
