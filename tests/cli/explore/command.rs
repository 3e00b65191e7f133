//! The command from outside: what it takes, what it writes, what it exits with.

use serde_json::json;

use super::{USUAL, explore, frontier, only};
use crate::simulate::variant::{home, run};
use crate::support::Server;

/// The output but for how long it took.
pub fn steady(text: &str) -> String {
    let is_time =
        |word: &str| word.strip_suffix("ms").is_some_and(|number| number.parse::<u64>().is_ok());
    let line = |line: &str| {
        let words: Vec<_> =
            line.split(' ').map(|word| if is_time(word) { "[time]ms" } else { word }).collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_schema_is_shown_with_its_histories() {
    let shown = explore(&["express"]).exits(1);
    insta::assert_snapshot!(steady(&shown.text()));
}

#[test]
fn several_schemas_are_shown_side_by_side() {
    let shown = explore(&["all"]).exits(1);
    insta::assert_snapshot!(steady(&shown.text()));
}

#[test]
fn without_a_harm_the_answer_is_yes() {
    let sound = explore(&["reference", "--faults", "expiry=0,late-fail=0"]).exits(0);
    insta::assert_snapshot!(steady(&sound.text()));
}

/// Rule: what was not seen is not said.
#[test]
fn an_exploration_that_reaches_its_bounds_says_so() {
    let part = explore(&["reference", "--max-states", "200"]).exits(3);
    insta::assert_snapshot!(steady(&part.text()));
    let harmed = only(&explore(&["express", "--max-states", "1000", "-o", "json"]).exits(1));
    assert_eq!((&harmed["complete"], &harmed["schedules"]), (&json!(false), &json!(null)));
}

/// Rule: only a complete search knows that no fault can be left out.
#[test]
fn a_set_of_faults_is_minimal_only_if_the_search_is_complete() {
    let is_minimal = |words: &[&str]| {
        let explored = only(&explore(&[words, &["-o", "json"]].concat()).exits(1));
        let harms = explored["harms"].as_array().unwrap().clone();
        assert!(!harms.is_empty());
        let minimal: Vec<_> = harms.iter().map(|harm| harm["is_minimal"] == true).collect();
        assert!(minimal.iter().all(|is_minimal| *is_minimal == minimal[0]), "{explored:#}");
        minimal[0]
    };
    assert!(is_minimal(&["express"]));
    let part = ["express", "--max-states", "3000"];
    assert!(!is_minimal(&[&part[..], &["--faults", USUAL]].concat()));
    // The search under the assumptions has fewer states, and is complete.
    let both = only(&explore(&[&part[..], &["-o", "json"]].concat()).exits(1));
    for harm in both["harms"].as_array().unwrap() {
        assert_eq!(harm["is_minimal"], harm["cause"] == "schema", "{harm:#}");
    }
    let token = "1:express,express,express:s0.e0.x0.s1.s0.f1.s1";
    assert!(!is_minimal(&["--replay", token]), "the faults are those of the history");
    explore(&["express", "--max-states", "1000"]).exits(1);
}

#[test]
fn json_says_what_was_covered() {
    let assume = ["--assume", "critical-section,results-outlive-retries"];
    let words =
        [&["reference", "--workers", "2", "--faults", "lost=0,delay=0", "-o", "json"][..], &assume]
            .concat();
    let explored = only(&explore(&words).exits(0));
    assert_eq!(explored["schema"], "reference");
    assert_eq!(explored["workers"], 2);
    assert_eq!(explored["assume"], json!(["critical-section", "results-outlive-retries"]));
    assert_eq!(explored["faults"]["expiry"], 2);
    assert_eq!((&explored["complete"], &explored["harms"]), (&json!(true), &json!([])));
    assert!(
        explored["states"].as_u64().unwrap() > 50
            && explored["server_calls"].as_u64().unwrap() < 200
    );
}

/// Rule: eight requests are explored as three are, and break the same invariants.
#[test]
fn eight_workers_are_explored() {
    let words =
        ["express", "--faults", "expiry=1,crash=0,lost=0,resend=0,fail=0,late-fail=0,give-up=0"];
    let broken = |workers: &str| {
        let run = explore(&[&words[..], &["--workers", workers, "-o", "json"]].concat()).exits(1);
        let explored = only(&run);
        assert_eq!(explored["complete"], true, "{explored:#}");
        frontier(&explored)
    };
    assert_eq!(broken("8"), broken("3"));
}

/// Rule: a state takes at most 200 bytes.
#[test]
fn states_are_small() {
    for exploration in explore(&["all", "-o", "json"]).json()["schemas"].as_array().unwrap() {
        assert!(exploration["bytes_a_state"].as_u64().unwrap() <= 200, "{exploration:#}");
    }
}

#[test]
fn bad_input_is_a_usage_error() {
    for (words, why) in [
        (&["nobody"][..], "there is no schema `nobody`"),
        (&["--workers", "0"], "1..=8"),
        (&["--workers", "9"], "1..=8"),
        (&["--faults", "meteor=1"], "there is no fault `meteor`"),
        (&["--faults", "crash"], "has no number; write, for example, expiry=2"),
        (&["--faults", "crash=10"], "from 0 to 9"),
        (&["--assume", "luck"], "critical-section"),
        (&["--mix", "express"], "--mix OLD,NEW"),
        (&["--mix", "express,express"], "name two different schemas"),
        (&["--mix", "express,go-chi"], "cannot be mixed, because they use different Redis keys"),
        (&["--mix", "go-middleware-v1,go-middleware", "--workers", "1"], "at least two workers"),
        (&["--max-states", "0"], "--max-states"),
    ] {
        explore(words).exits(2).says(why);
    }
}

/// Rule: what befalls a whole server is for throw-away ones. On a named server one key is used, and removed.
#[test]
fn a_named_server_is_left_as_it_was() {
    let server = Server::holding(&[("idem:order-1", "theirs", 60_000)]);
    let explored = server
        .idemctl(&["explore", "express", "event-consumer", "--workers", "2", "-o", "json"])
        .exits(1);
    assert_eq!(explored.json()["schemas"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("idem:order-1").unwrap(), b"theirs");
    assert_eq!(server.keys().len(), 1);
    for fault in ["evict=1", "failover=1"] {
        server.idemctl(&["explore", "express", "--faults", fault]).exits(2).says("--sandbox");
    }
    server.idemctl(&["explore", "--replay", "1:express:s0.v0"]).exits(2).says("--sandbox");
    assert_eq!(server.keys().len(), 1);
}

#[test]
fn without_a_server_program_nothing_is_explored() {
    let folder = home();
    let mut command = crate::support::idemctl(folder.path());
    let run =
        crate::support::Runs::run(command.env("PATH", folder.path()).args(["explore", "express"]));
    run.exits(5).says("neither valkey-server nor redis-server is in PATH");
    self::run(folder.path(), &["explore", "--help"]).exits(0);
}
