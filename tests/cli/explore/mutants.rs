//! Mutants of the reference, one edit of its Lua or of its `schema.toml` each: each breaks an invariant, or is harmless under
//! an assumption that is named.

use super::{Frontier, explored, frontier, only, ways};
use crate::simulate::attempts::{HEALS, TAKES};
use crate::simulate::variant::{FENCES, MINE, Variant, reference, run};

fn of(mutant: &Variant, words: &[&str]) -> Frontier {
    let folder = mutant.folder();
    let dir = ["--schema-dir", folder.to_str().unwrap()];
    let explored =
        run(folder, &[&["explore", MINE], words, &dir, &["--sandbox", "-o", "json"]].concat());
    frontier(&only(&explored))
}

/// What the mutant breaks that the reference does not.
fn breaks(mutant: &Variant, words: &[&str]) -> Vec<String> {
    let sound = explored(&[&["reference"], words].concat());
    of(mutant, words).into_keys().filter(|harm| !sound.contains_key(harm)).collect()
}

/// What holds for the reference without exception.
const SOUND: [&str; 4] = [
    "--faults",
    "expiry=2,crash=1,lost=1,fail=1,persist=1,resend=0",
    "--assume",
    "critical-section,results-outlive-retries",
];

#[test]
fn the_reference_holds_under_its_assumptions() {
    let resending = SOUND[1].replace("resend=0", "resend=1");
    assert_eq!(explored(&["reference", "--faults", &resending, SOUND[2], SOUND[3]]), ways(&[]));
    assert_eq!(explored(&[&["reference"], &SOUND[..]].concat()), ways(&[]));
}

#[test]
fn a_begin_that_ignores_locks_is_killed() {
    let ignores =
        reference().with("begin.lua", "  if locked_for then\n", "  if false then\n").with(
            "begin.lua",
            "if outcome == 'completed' or on_failed == 'replay' then",
            "if not locked_for and (outcome == 'completed' or on_failed == 'replay') then",
        );
    let broken = of(&ignores, &SOUND);
    assert!(broken.contains_key("owner-only"), "{broken:?}");
    assert_eq!(broken["owner-only"][0], (String::new(), 2));
}

#[test]
fn a_renew_that_checks_no_owner_is_killed() {
    let blind = reference().with("renew.lua", FENCES, "if not holder then");
    assert_eq!(of(&blind, &SOUND)["one-effect"], [("expiry=1".to_owned(), 7)]);
}

#[test]
fn a_release_that_checks_no_owner_is_killed() {
    let blind = reference().releasing().with("release.lua", FENCES, "if not holder then");
    assert_eq!(of(&blind, &SOUND)["owner-only"], [("expiry=1 fail=1".to_owned(), 5)]);
}

/// Rule: a described release is called, although failures are stored.
#[test]
fn a_release_that_no_failing_handler_calls_is_killed() {
    let blind = reference().with("release.lua", FENCES, "if not holder then");
    let expected = [("expiry=1 give-up=1".to_owned(), 5)];
    assert_eq!(of(&blind, &SOUND)["owner-only"], expected);
    // A worker that has completed may call it, too.
    let expected = [("expiry=1".to_owned(), 7)];
    assert_eq!(of(&blind, &["--faults", "give-up=0"])["owner-only"], expected);
}

#[test]
fn a_release_that_deletes_results_is_killed() {
    let careless =
        reference().releasing().with("release.lua", FENCES, "if holder and holder ~= owner then");
    assert_eq!(of(&careless, &SOUND)["result-kept"][0].0, "");
}

#[test]
fn a_lock_without_ttl_is_killed() {
    let endless = reference().with("begin.lua", TAKES, "redis.call('SET', record, lock)").with(
        "begin.lua",
        HEALS,
        "",
    );
    let broken = of(&endless, &SOUND);
    assert_eq!(broken["lock-ends"], [("lost=1".to_owned(), 2), ("crash=1".to_owned(), 3)]);
}

#[test]
fn a_renew_that_takes_the_ttl_away_is_killed() {
    let endless = reference().with("begin.lua", HEALS, "").with(
        "renew.lua",
        "redis.call('PEXPIRE', record, string.format('%d', math.ceil(lock_ttl * 1000)))",
        "redis.call('PERSIST', record)",
    );
    let broken = of(&endless, &["--faults", "expiry=1"]);
    assert_eq!(broken["lock-ends"][0], ("lost=1".to_owned(), 3));
}

/// Rule: a failover can lose the lock together with a later write, which would otherwise protect it.
#[test]
fn a_failover_loses_the_lock_and_the_renewal_after_it() {
    let shortens = reference().with("renew.lua", "lock_ttl * 1000", "lock_ttl * 500");
    let faults = ["--faults", "expiry=0,crash=0,lost=0,fail=0,late-fail=0,failover=1"];
    assert_eq!(of(&shortens, &faults)["one-effect"], [("failover=1".to_owned(), 7)]);
    let dir = shortens.folder().to_str().unwrap();
    let token = "1:mine,mine:s0.s0.o1";
    let words = ["explore", "--replay", token, "--schema-dir", dir, "--sandbox"];
    let text = run(shortens.folder(), &words).exits(1).text();
    assert!(
        text.contains("the master fails before its last 2 writes are on the replica  nothing"),
        "{text}"
    );
}

#[test]
fn a_begin_that_replays_before_the_end_is_killed() {
    let rash =
        reference().with("begin.lua", "return {'IN_PROGRESS', left}", "return {'REPLAY', '{}'}");
    let broken = breaks(&rash, &SOUND);
    assert!(
        ["no-false-done", "true-replay"].iter().all(|harm| broken.contains(&(*harm).to_owned())),
        "{broken:?}"
    );
}

#[test]
fn a_begin_that_compares_no_payload_is_killed() {
    let blind = reference().with(
        "begin.lua",
        "if (locked_for or done_for) ~= fingerprint then",
        "if false then",
    );
    assert_eq!(of(&blind, &SOUND)["payloads-apart"], [(String::new(), 5)]);
}

#[test]
fn a_begin_that_cannot_read_results_is_killed() {
    let failing = reference().with(
        "begin.lua",
        "  if outcome == 'completed' or on_failed == 'replay' then\n    return {'REPLAY', response}",
        "  if outcome == 'completed' or on_failed == 'replay' then\n    return redis.error_reply('BROKEN by mistake')",
    );
    assert_eq!(of(&failing, &SOUND)["replays-after-success"], [(String::new(), 5)]);
}

/// What holds where no handler fails either.
const UNFAILING: [&str; 4] = [
    "--faults",
    "expiry=2,crash=1,lost=1,fail=0,persist=1,resend=0",
    "--assume",
    "critical-section,results-outlive-retries",
];

/// Harmless under the assumption of a critical section where no handler fails, for nobody reaches complete late; and not
/// without that assumption, nor where a failure is stored by complete as well.
#[test]
fn a_complete_that_checks_no_owner_is_killed_in_the_open() {
    let blind =
        reference().with("complete.lua", "if (holder or author) ~= owner then", "if false then");
    assert_eq!(of(&blind, &UNFAILING), ways(&[]));
    assert_eq!(of(&blind, &SOUND)["one-effect"], [("expiry=1 fail=1".to_owned(), 10)]);
    assert!(breaks(&blind, &["--faults", "fail=0"]).contains(&"owner-only".to_owned()));
}

#[test]
fn a_complete_over_a_result_is_killed_in_the_open() {
    let takes = r#"begun = begun or string.match(stored, '(,"owner":"[^"]+","fingerprint":"[^"]*","created_at":%d+),"completed_at"')"#;
    let over = reference()
        .with(
            "complete.lua",
            "if (holder or author) ~= owner then",
            "if holder and holder ~= owner then",
        )
        .with("complete.lua", "if not begun then\n  return 'ALREADY'\nend", takes);
    assert_eq!(of(&over, &UNFAILING), ways(&[]));
    assert!(of(&over, &SOUND).contains_key("result-kept"));
    assert!(breaks(&over, &["--faults", "fail=0"]).contains(&"result-not-replaced".to_owned()));
}
