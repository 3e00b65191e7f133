//! What every service meets: a retry, a crash, a failure, a client that is gone, another payload.

use super::variant::{Variant, plays, reference};

/// The line with which the reference reads what is there.
pub const READS: &str = "local stored = redis.call('GET', record)";

/// The line with which the reference takes its lock.
pub const TAKES: &str = "redis.call('SET', record, lock, 'PX', lock_ms)";

/// The line with which the reference stores its result.
const STORES: &str =
    "redis.call('SET', record, result, 'PX', string.format('%d', math.ceil(result_ttl * 1000)))";

/// What heals a lock without TTL.
pub const HEALS: &str = "redis.call('PEXPIRE', record, lock_ms)";

/// A reference whose locks have no TTL.
fn without_ttl() -> Variant {
    reference().with("begin.lua", TAKES, "redis.call('SET', record, lock)").with(
        "begin.lua",
        HEALS,
        "",
    )
}

#[test]
fn a_retry_gets_the_result() {
    plays("reference", "first-then-retry").is("safe").makes(1);
    reference().checked().plays("first-then-retry").is("safe").makes(1);
}

#[test]
fn a_complete_that_says_stored_and_stores_nothing_makes_the_payment_twice() {
    reference().with("complete.lua", STORES, "").plays("first-then-retry").is("duplicate").makes(2);
}

#[test]
fn a_begin_that_never_looks_the_result_up_makes_the_payment_twice() {
    let blind = ("if outcome == 'completed' or on_failed == 'replay' then", "if false then");
    reference()
        .with("begin.lua", blind.0, blind.1)
        .plays("first-then-retry")
        .is("duplicate")
        .makes(2);
}

#[test]
fn a_complete_that_gives_the_wrong_response_back_is_a_wrong_answer() {
    let other =
        reference().with("begin.lua", "return {'REPLAY', response}", "return {'REPLAY', '{}'}");
    other.plays("first-then-retry").is("wrong-answer").because("a response that no handler gave");
}

#[test]
fn a_begin_that_says_done_at_once_is_a_wrong_answer() {
    let rash = reference().with("begin.lua", READS, "do return {'REPLAY', '{}'} end\nlocal stored");
    for cell in rash.plays_each(&["first-then-retry", "zombie-completes", "concurrent-duplicates"])
    {
        cell.is("wrong-answer");
    }
}

#[test]
fn of_requests_at_the_same_moment_one_gets_through() {
    plays("reference", "concurrent-duplicates").is("safe").makes(1);
    plays("go-middleware-v1", "concurrent-duplicates").is("refused").makes(1);
}

#[test]
fn get_and_then_set_lets_two_through() {
    let check_then_act = r#"
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next" },
  { word = "completed", means = "replay", when = { record = "completed" } },
  { error = "WRONGTYPE", means = "fail", when = { record = "wrong-type" } },
  { text = true, means = "conflict", when = { record = "present" } },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }]

"#;
    let racy = Variant::of("go-middleware-v1").with_block(
        "schema.toml",
        ("[[begin.call]]", "[complete]"),
        check_then_act,
    );
    racy.checked().plays("concurrent-duplicates").is("overwritten").because("removed or replaced");
}

#[test]
fn after_a_crash_the_client_waits_for_the_locks_ttl() {
    plays("reference", "crash-before-complete").is("blocked").blocks(30_000).makes(1);
    let sooner = reference().with("schema.toml", "lock = \"30s\"", "lock = \"7s\"");
    sooner.plays("crash-before-complete").is("blocked").blocks(7_000);
}

#[test]
fn after_a_crash_a_lock_without_ttl_is_stuck() {
    without_ttl().plays("crash-before-complete").is("stuck").makes(0);
}

#[test]
fn a_lock_that_each_retry_prolongs_is_stuck() {
    let prolonged = reference().with("begin.lua", "if left == -1 then", "if left then");
    prolonged.plays("crash-before-complete").is("stuck").makes(0);
}

#[test]
fn a_lock_that_nobody_gets_is_stuck_in_every_story() {
    let closed = reference().with(
        "begin.lua",
        "return {'ACQUIRED'}",
        "redis.call('DEL', record)\nreturn {'IN_PROGRESS', 1}",
    );
    for cell in closed.plays_each(&[
        "crash-before-complete",
        "concurrent-duplicates",
        "zombie-completes",
        "payload-mismatch",
    ]) {
        cell.is("stuck").makes(0);
    }
}

#[test]
fn a_begin_that_always_fails_is_stuck_in_every_story() {
    let failing = reference().with(
        "begin.lua",
        TAKES,
        "do return redis.error_reply('BROKEN by mistake') end",
    );
    for cell in failing.plays_each(&[
        "zombie-completes",
        "zombie-releases",
        "payload-mismatch",
        "client-hangs-up",
    ]) {
        cell.is("stuck").makes(0).because("error BROKEN by mistake");
    }
}

#[test]
fn after_a_failure_the_next_request_executes() {
    plays("reference", "handler-fails").is("safe").makes(1);
    reference().releasing().plays("handler-fails").is("safe").makes(1);
}

#[test]
fn a_lock_that_stays_after_a_failure_blocks() {
    let keeps = reference()
        .with("schema.toml", "on_failure = \"store\"", "on_failure = \"keep\"")
        .checked();
    keeps.plays("handler-fails").is("blocked").blocks(30_000).makes(1);
}

#[test]
fn a_second_result_that_is_not_stored_shows_after_a_failure() {
    let once = reference().with(
        "complete.lua",
        STORES,
        &format!("if outcome == 'failed' then {STORES} end"),
    );
    once.plays("handler-fails").is("duplicate").makes(2);
}

#[test]
fn a_result_that_cannot_be_stored_is_made_again_unless_the_lock_stays() {
    plays("reference", "result-not-stored").is("duplicate").makes(2);
    // A renewal would give the lock a TTL.
    let never_renewed = without_ttl().with_block("schema.toml", ("[renew]", "[complete]"), "");
    never_renewed.plays("result-not-stored").is("stuck").makes(1);
}

#[test]
fn a_client_that_hangs_up_has_cancelled_nothing() {
    plays("reference", "client-hangs-up").is("safe").makes(1);
    let on_hang_up = "on_hang_up = \"go-on\"";
    let releases =
        reference().with("schema.toml", on_hang_up, "on_hang_up = \"release\"").checked();
    releases.plays("client-hangs-up").is("duplicate").makes(2);
    reference()
        .with("schema.toml", on_hang_up, "")
        .plays("client-hangs-up")
        .is("n/a")
        .because("on_hang_up");
}

#[test]
fn another_payload_is_told_of_the_first() {
    plays("reference", "payload-mismatch").is("safe").makes(1);
    let (asks, compares) =
        ("if (locked_for or done_for) ~= fingerprint then", "    return {'MISMATCH'}");
    let blind = reference().with("begin.lua", asks, "if false then");
    blind
        .plays("payload-mismatch")
        .is("wrong-answer")
        .because("got the response of the payment of 10");
    let careless = reference().with(
        "begin.lua",
        compares,
        "    redis.call('DEL', record)\n    return {'MISMATCH'}",
    );
    careless.plays("payload-mismatch").is("duplicate").makes(2);
}
