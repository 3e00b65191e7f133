//! A worker that was paused for longer than its lock lived.

use super::variant::{Cell, FENCES, Variant, plays, reference};

/// Whose workers do not ask for their lock before they go on.
fn without_renew() -> Variant {
    reference().with_block("schema.toml", ("[renew]", "[complete]"), "")
}

/// Whose complete is a SET of the result, whoever holds the lock.
fn with_blind_set() -> Variant {
    let call = r#"[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]

"#;
    reference().with_block("schema.toml", ("[[complete.call]]", "[release]"), call)
}

/// What the stories come to in which it comes back before and after another has completed.
fn both(schema: &Variant) -> [Cell; 2] {
    let mut cells = schema.plays_each(&["zombie-completes", "zombie-overwrites"]).into_iter();
    [cells.next().unwrap(), cells.next().unwrap()]
}

#[test]
fn a_worker_that_asks_for_its_lock_before_it_goes_on_is_safe() {
    for scenario in ["zombie-completes", "zombie-overwrites"] {
        plays("reference", scenario).is("safe").makes(1);
    }
}

#[test]
fn a_worker_that_goes_on_without_asking_makes_the_payment_twice() {
    for cell in both(&without_renew().checked()) {
        cell.is("duplicate").makes(2).because("it continues").has_excuse(Some("environment"));
    }
}

#[test]
fn a_renew_that_renews_whatever_is_there_makes_the_payment_twice() {
    let [completes, overwrites] =
        both(&reference().with("renew.lua", FENCES, "if not holder then"));
    completes.is("duplicate").makes(2);
    overwrites.is("safe").makes(1);
}

#[test]
fn a_complete_that_does_not_check_the_owner_overwrites_a_lock() {
    let unfenced =
        reference().with("complete.lua", "if (holder or author) ~= owner then", "if false then");
    let [completes, overwrites] = both(&unfenced);
    completes.is("overwritten").because("worker 1 removed or replaced the lock of worker 2");
    overwrites.is("safe").makes(1);
}

#[test]
fn a_complete_that_sets_whatever_is_there_overwrites_locks_and_results() {
    for cell in both(&with_blind_set()) {
        cell.is("overwritten").makes(1).has_excuse(None);
    }
}

#[test]
fn a_fenced_completion_that_drops_the_lock_overwrites_it() {
    let rude = reference().with(
        "complete.lua",
        "return 'FENCED'",
        "redis.call('DEL', record)\n  return 'FENCED'",
    );
    for cell in both(&rude) {
        cell.is("overwritten").because("its operation has no effect");
    }
}

/// Rule: a worker that pauses after its renewal has its effect again, and no script prevents it.
#[test]
fn a_worker_that_pauses_after_its_renewal_is_excused_and_fenced() {
    let cell = plays("reference", "zombie-after-renewal").is("duplicate").makes(2);
    cell.has_excuse(Some("environment"));
    plays("express", "zombie-after-renewal").is("n/a");
}

#[test]
fn a_late_failure_leaves_the_next_workers_lock_alone() {
    plays("reference", "zombie-releases").is("safe").makes(1);
}

#[test]
fn a_release_that_does_not_check_the_owner_makes_the_payment_twice() {
    let unfenced = || reference().with("release.lua", FENCES, "if not holder then");
    unfenced().plays("zombie-releases").is("overwritten").makes(2).because("it releases");
    let failing = unfenced().releasing();
    failing.plays("zombie-releases").is("overwritten").makes(2).because("the lock of worker 2");
}

#[test]
fn a_late_failure_that_makes_a_lock_endless_is_stuck() {
    let rude = reference()
        .with(
            "release.lua",
            "  return 'FENCED'",
            "  redis.call('PERSIST', record)\n  return 'FENCED'",
        )
        .with(
            "complete.lua",
            "return 'STORED'",
            "redis.call('SET', record, stored)\nreturn 'STORED'",
        )
        .with("begin.lua", "redis.call('PEXPIRE', record, lock_ms)", "");
    rude.plays("zombie-releases").is("stuck").makes(1);
}

/// The worker whose lock has run out stores its result over the next worker's lock, and that worker's failure deletes what
/// is there.
#[test]
fn a_failure_that_deletes_whatever_is_there_makes_the_payment_twice() {
    for schema in ["express", "go-chi"] {
        plays(schema, "failure-deletes-result").is("overwritten").makes(2).has_excuse(None);
    }
    for schema in ["go-middleware", "go-middleware-v1", "event-consumer"] {
        let cell = plays(schema, "failure-deletes-result").is("overwritten").makes(1);
        cell.because("worker 1 removed or replaced the lock of worker 2");
    }
    plays("reference", "failure-deletes-result").is("safe").makes(1);
    let cell = plays("event-driven", "failure-deletes-result").is("wrong-answer").makes(1);
    cell.has_excuse(Some("environment"));
}

#[test]
fn a_release_that_takes_results_makes_the_payment_twice() {
    let careless = reference()
        .releasing()
        .with("renew.lua", FENCES, "if not holder then")
        .with("complete.lua", "if (holder or author) ~= owner then", "if false then")
        .with("release.lua", FENCES, "if holder and holder ~= owner then");
    careless.plays("failure-deletes-result").is("overwritten").makes(2);
}

/// Rule: the workers of `simulate` renew their locks before the effect, as those of `explore` do, so that both notice a
/// renewal that never succeeds.
#[test]
fn a_worker_whose_renewal_is_refused_does_nothing() {
    let as_pattern = reference().with(
        "renew.lua",
        FENCES,
        "if not holder or not string.find(holder, owner) then",
    );
    for cell in as_pattern.plays_each(&["first-then-retry", "concurrent-duplicates"]) {
        cell.is("blocked").makes(0);
    }
}
