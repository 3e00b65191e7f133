//! The histories that are shown: played by workers, drawn, and played again by a token.

use serde_json::Value;

use super::{USUAL, explore, only};
use crate::simulate::attempts::READS;
use crate::simulate::variant::{MINE, reference, run};

/// The token of a harm of express.
fn token(invariant: &str) -> String {
    let explored = only(&explore(&["express", "--faults", USUAL, "-o", "json"]));
    let harms = explored["harms"].as_array().unwrap();
    let by_expiry =
        |harm: &&Value| harm["invariant"] == invariant && harm["minimal_faults"]["expiry"] == 1;
    let harm = harms.iter().find(by_expiry).unwrap();
    harm["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_history_says_what_each_call_was_told_and_what_its_client_saw() {
    let explored = only(&explore(&["express", "--faults", USUAL, "-o", "json"]));
    let harms = explored["harms"].as_array().unwrap();
    let token = "1:express,express,express:s0.e0.x0.s1.s0.f1.s1";
    let harm = harms.iter().find(|harm| harm["token"] == token).unwrap();
    assert_eq!(harm["invariant"], "result-kept");
    let field = |line: &Value, name: &str| line[name].as_str().unwrap_or("-").to_owned();
    let lines = harm["trace"].as_array().unwrap().iter();
    let told: Vec<_> = lines
        .map(|line| {
            ["actor", "step", "fault", "sees", "holds"].map(|name| field(line, name)).join(" | ")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_token_plays_its_history_again() {
    let token = token("result-kept");
    let again = explore(&["--replay", &token]).exits(1);
    insta::assert_snapshot!(again.text());
    // One step less, and nothing is harmed.
    let (shorter, _) = token.rsplit_once('.').unwrap();
    let sound = only(&explore(&["--replay", shorter, "-o", "json"]));
    assert!(
        sound["harms"].as_array().unwrap().iter().all(|harm| harm["invariant"] != "result-kept"),
        "{sound:#}"
    );
}

#[test]
fn a_token_of_what_cannot_happen_is_a_usage_error() {
    for (token, why) in [
        ("1:express:e0", "step 1 (e0) cannot happen there"),
        ("1:express:s0.s3", "step 2 (s3) cannot happen there"),
        ("1:express:n7", "step 1 (n7) cannot happen there"),
        ("1:nobody:s0", "there is no schema `nobody`"),
        ("1:express,go-chi:s0", "different Redis keys"),
        ("1:a,a,a,a,a,a,a,a,a:s0", "at most 8 workers"),
        ("2:express:s0", "it is not a token"),
        ("express", "it is not a token"),
    ] {
        explore(&["--replay", token]).exits(2).says(why);
    }
}

/// Rule: what is shown was played by workers whose scripts are as the schema has them: a script that goes by the clock goes
/// another way there than where the clock stands still, and that is said.
#[test]
fn a_history_that_goes_another_way_when_it_is_played_says_so() {
    // The lock is taken only in the exploration's own year.
    let later = "if tonumber(redis.call('TIME')[1]) > 1710000000 then return {'MISMATCH'} end";
    let dated = reference().with("begin.lua", READS, &format!("{later}\n{READS}"));
    let dir = dated.folder().to_str().unwrap();
    let words = ["explore", MINE, "--schema-dir", dir, "--sandbox", "-o", "json"];
    let explored = only(&run(dated.folder(), &words));
    let harm = &explored["harms"][0];
    assert_eq!(harm["played_as_explored"], false, "{harm:#}");
    assert_eq!(
        harm["deviates"],
        "with real workers the reply means mismatch; the exploration predicts acquired"
    );
}

/// Rule: what a step does is asked twice, and another answer ends the exploration.
#[test]
fn a_step_that_goes_by_chance_is_not_explored() {
    let every_other_time =
        "if redis.call('INCR', KEYS[1] .. 'n') % 2 == 0 then return {'MISMATCH'} end";
    let counts = reference().with("begin.lua", READS, &format!("{every_other_time}\n{READS}"));
    let dir = counts.folder().to_str().unwrap();
    let run = run(counts.folder(), &["explore", MINE, "--schema-dir", dir, "--sandbox"]).exits(3);
    run.says("no result for mine: call 1 of begin of mine has different effects in the same state")
        .says("because of the Redis key idemkey:order-1n, which `[keys]` does not name");
}
