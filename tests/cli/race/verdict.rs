//! Who gets through, and what is told of it.

use serde_json::Value;

use crate::support::{BUILT_IN, Run, Server};

pub(super) fn race(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["race", "-o", "json"], words].concat())
}

pub(super) fn runs(run: &Run) -> Vec<Value> {
    let json = run.json();
    assert_eq!(json["format"], 1);
    json["runs"].as_array().cloned().unwrap_or_default()
}

/// The only run of a race on a server of its own, of which nothing is left there.
#[track_caller]
fn raced(words: &[&str], code: i32) -> Value {
    let server = Server::start();
    let run = race(&server, words).exits(code);
    nothing_is_left(&server);
    runs(&run).remove(0)
}

#[track_caller]
pub(super) fn nothing_is_left(server: &Server) {
    assert_eq!(server.size(), 0);
}

#[test]
fn every_schema_lets_exactly_one_through() {
    let server = Server::start();
    let run =
        race(&server, &["--schema", "all", "--strategy", "schema", "--rounds", "40"]).exits(0);
    let runs = runs(&run);
    assert_eq!(
        runs.iter().map(|run| run["schema"].as_str().unwrap()).collect::<Vec<_>>(),
        BUILT_IN
    );
    for run in runs {
        assert_eq!(run["verdict"], "atomic", "{run}");
        assert_eq!((&run["winners_min"], &run["winners_max"]), (&1.into(), &1.into()), "{run}");
        assert_eq!(run["rounds_with_many_winners"], 0);
        assert_eq!(
            (&run["conflicts"], &run["replays"]),
            (&(40 * 49).into(), &(40 * 49).into()),
            "{run}"
        );
        assert_eq!(run["wrong_replies"], 0);
        assert_eq!(run["operations"], 40 * (50 + 1 + 49));
        assert_eq!(run["first_offence"], Value::Null);
    }
    nothing_is_left(&server);
}

#[test]
fn the_json_has_every_field_of_the_contract() {
    let server = Server::start();
    let run = race(
        &server,
        &["--schema", "express", "--strategy", "schema", "--rounds", "3", "--concurrency", "8"],
    );
    let run = &runs(&run.exits(0))[0];
    assert_eq!((&run["schema"], &run["strategy"]), (&"express".into(), &"schema".into()));
    assert_eq!((&run["concurrency"], &run["rounds"]), (&8.into(), &3.into()));
    assert!(run["ops_per_second"].as_f64().unwrap() > 0.0);
    let latency =
        ["p50", "p95", "p99", "max"].map(|name| run["latency_us"][name].as_u64().unwrap());
    assert!(latency.is_sorted() && latency[3] > 0, "{latency:?}");
    let lines = server
        .idemctl(&["race", "-o", "jsonl", "--rounds", "2", "--concurrency", "4"])
        .exits(0)
        .json_lines();
    assert!(lines.iter().all(|line| line["rounds"] == 2));
}

#[test]
fn by_default_scripts_are_raced_beside_check_then_act() {
    let server = Server::start();
    // The pause between the look and the write lets the flaw show on a busy machine, too.
    let run = race(&server, &["--rounds", "3", "--think-time", "10ms"]).exits(0);
    let fields = ["schema", "strategy", "verdict"];
    let played = runs(&run)
        .into_iter()
        .map(|run| fields.map(|field| run[field].as_str().unwrap().to_owned()));
    let raced = ["event-driven", "express", "go-chi", "go-middleware", "reference"];
    let expected = raced.iter().flat_map(|schema| {
        [[schema, "schema", "atomic"], [schema, "check-then-act", "not-atomic"]]
            .map(|run| run.map(str::to_owned))
    });
    assert_eq!(played.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    nothing_is_left(&server);
}

#[test]
fn check_then_act_lets_many_through_and_names_the_pair() {
    let words = [
        "--schema",
        "go-middleware",
        "--strategy",
        "check-then-act",
        "--think-time",
        "20ms",
        "--rounds",
        "4",
    ];
    let run = raced(&words, 0);
    assert_eq!(run["verdict"], "not-atomic");
    assert_eq!(run["rounds_with_many_winners"], 4);
    assert!(run["winners_min"].as_u64().unwrap() > 1, "{run}");
    let offence = &run["first_offence"];
    assert_eq!((&offence["round"], &offence["rule"]), (&1.into(), &"many-winners".into()));
    let pair = offence["pair"].as_array().unwrap();
    assert_eq!(pair.len(), 2);
    assert!(pair.iter().all(|event| event["reply"] == "acquired"));
    assert_ne!(pair[0]["worker"], pair[1]["worker"]);
}

#[test]
fn set_nx_gives_wrong_replies_when_the_lock_goes_before_the_get() {
    let set_nx = |schema| {
        raced(
            &["--schema", schema, "--strategy", "set-nx", "--think-time", "10ms", "--rounds", "4"],
            0,
        )
    };
    for schema in BUILT_IN {
        let run = set_nx(schema);
        assert_eq!(run["verdict"], "not-atomic", "{run}");
        let offences = run["wrong_replies"].as_u64().unwrap()
            + run["rounds_with_many_winners"].as_u64().unwrap();
        assert!(offences > 0, "{run}");
    }
    let run = set_nx("express");
    assert!(run["wrong_replies"].as_u64().unwrap() > 0, "{run}");
}

#[test]
fn a_schema_that_loses_is_exit_status_1() {
    let run = raced(
        &[
            "--schema",
            "event-consumer",
            "--strategy",
            "schema",
            "--overlap",
            "--think-time",
            "20ms",
        ],
        1,
    );
    assert_eq!(run["verdict"], "not-atomic");
    assert!(run["winners_max"].as_u64().unwrap() > 1, "{run}");
}

/// Rule: for a schema that looks before it locks, the option is named with which completions overlap.
#[test]
fn a_look_before_the_lock_is_told_how_to_race_completions() {
    let server = Server::start();
    for (schema, is_told) in [("event-consumer", true), ("express", false)] {
        let words = ["--schema", schema, "--strategy", "schema", "--rounds", "2"];
        let run = race(&server, &words).exits(0);
        assert_eq!(run.stderr.contains("--overlap lets completions"), is_told, "{}", run.all());
    }
}

#[test]
fn a_failed_handler_hands_the_lock_to_exactly_one_other() {
    for schema in BUILT_IN {
        let run = raced(
            &["--schema", schema, "--strategy", "schema", "--fail-every", "2", "--rounds", "6"],
            0,
        );
        assert_eq!((&run["verdict"], &run["winners_max"]), (&"atomic".into(), &1.into()), "{run}");
    }
}

#[test]
fn bad_input_is_a_usage_error() {
    let server = Server::start();
    for words in [
        &["--concurrency", "1001"][..],
        &["--concurrency", "0"],
        &["--rounds", "0"],
        &["--strategy", "hope"],
        &["--schema", "nope"],
        &["--think-time", "soon"],
        &["--think-time", "30s", "--schema", "express"],
    ] {
        race(&server, words).exits(2);
    }
}

#[test]
fn the_report_fits_a_narrow_terminal_and_shows_the_pair() {
    let server = Server::start();
    let race = [
        "race",
        "--schema",
        "go-middleware",
        "--strategy",
        "schema,check-then-act",
        "--rounds",
        "3",
    ];
    // The pause between the look and the write lets the flaw show on a busy machine, too.
    let words = [&race[..], &["--think-time", "10ms"]].concat();
    let run = server.idemctl(&words).exits(0);
    let text = run.text();
    let verdict = "At most one of 50 simultaneous requests got the lock in each round of go-middleware. race judges begin only, and would not detect a flaw rarer than 1 in 150 lock attempts.\nFor comparison: with check-then-act instead of these scripts, up to ";
    assert!(text.starts_with(verdict), "{text}");
    assert!(text.contains("\n50 workers, 3 rounds, each on one fresh key\n"), "{text}");
    assert!(text.contains("\nno violation in 150  go-middleware"), "{text}");
    // What stands in for the schema's steps is there for comparison, and no failure of the schema.
    assert!(!text.contains("not-atomic") && !text.contains('▶'), "{text}");
    assert!(!text.contains("P99"), "{text}");
    let verbose = server.idemctl(&[&words[..], &["-v"]].concat()).exits(0);
    verbose.shows("P99").shows("\nnot-atomic           go-middleware check-then-act");
    verbose.shows("Round 1 shows that check-then-act (keys of go-middleware) is not atomic:");
    verbose.shows(" workers acquired the lock of one key, so the operation ran ");
    assert_eq!(verbose.text().matches('▶').count(), 2, "{}", verbose.all());
}

/// Rule: a service that takes the lock before it looks for the result rejects retries for a moment after the result is stored,
/// and is atomic nevertheless.
#[test]
fn a_service_that_locks_first_is_atomic() {
    let server = Server::start();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/explore/schemas");
    let libraries = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/libraries");
    for (dir, schema) in [(folder, "lock-then-look"), (libraries, "idempo")] {
        let words = ["--schema", schema, "--schema-dir", dir, "--rounds", "20"];
        let run = race(&server, &[&words[..], &["--strategy", "schema"]].concat()).exits(0);
        let raced = runs(&run).remove(0);
        assert_eq!((&raced["verdict"], &raced["winners_max"]), (&"atomic".into(), &1.into()));
        assert!(raced["replays"].as_u64() > Some(0), "{raced:#}");
        assert_eq!(raced["wrong_replies"], 0, "{raced:#}");
    }
}
