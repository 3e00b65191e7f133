//! The command from outside: what it takes, what it writes, what it exits with.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::variant::{home, run};
use crate::support::{Run, Server, alone};

/// A cell that takes no time: the reference refuses what it cannot lock.
const QUICK: [&str; 5] = ["simulate", "store-down", "--schema", "reference", "--sandbox"];

fn quick(words: &[&str]) -> Run {
    run(home().path(), &[&QUICK, words].concat())
}

#[test]
fn lists_the_scenarios() {
    let listed = run(home().path(), &["simulate", "list"]).exits(0);
    insta::assert_snapshot!(listed.all());
}

#[test]
fn bad_input_is_a_usage_error() {
    for words in [
        &["simulate"][..],
        &["simulate", "meteor-strike"],
        &["simulate", "store-down", "--all"],
        &["simulate", "store-down", "--schema", "nope"],
        &["simulate", "store-down", "--repeat", "0"],
        &["simulate", "store-down", "--seed", "x"],
    ] {
        run(home().path(), words).exits(2);
    }
    let unknown = run(home().path(), &["simulate", "meteor-strike"]);
    assert!(unknown.stderr.contains("store-down"), "it says which there are: {}", unknown.all());
}

#[test]
fn the_exit_status_tells_whether_anybody_is_hurt() {
    let simulate = |scenario, schema| {
        run(home().path(), &["simulate", scenario, "--schema", schema, "--sandbox"])
    };
    simulate("crash-before-complete", "reference").exits(0);
    simulate("zombie-releases", "express").exits(1);
    // No script can prevent this, and go-middleware does not compare payloads.
    simulate("result-not-stored", "reference").exits(0).shows("duplicate (environment)");
    simulate("payload-mismatch", "go-middleware").exits(0).shows("wrong-answer (not-compared)");
}

#[test]
fn the_report_shows_the_verdict_why_and_what_to_change() {
    let shown = run(
        home().path(),
        &["simulate", "result-not-stored", "store-down", "--schema", "reference", "--sandbox"],
    );
    insta::assert_snapshot!(shown.exits(0).all());
}

#[test]
fn the_json_has_every_field_of_the_contract() {
    let words = [
        "simulate",
        "store-down",
        "result-not-stored",
        "foreign-value",
        "--schema",
        "reference",
        "--sandbox",
    ];
    let document = run(home().path(), &[&words[..], &["-o", "json"]].concat()).exits(0).json();
    assert_eq!(keys(&document), ["cells", "format", "hashes"]);
    assert_eq!(document["format"], 1);
    // In the order the stories are told, not in that of the words.
    let verdicts =
        [("result-not-stored", "duplicate"), ("store-down", "refused"), ("foreign-value", "n/a")];
    let cells = document["cells"].as_array().unwrap();
    for (cell, (scenario, verdict)) in cells.iter().zip(verdicts) {
        let fields = [
            "blocked_ms",
            "effects",
            "excuse",
            "remedy",
            "scenario",
            "schema",
            "timeline",
            "verdict",
            "why",
            "worst_take",
        ];
        assert_eq!(keys(cell), fields);
        assert_eq!((&cell["schema"], &cell["scenario"]), (&json!("reference"), &json!(scenario)));
        assert_eq!(cell["verdict"], verdict);
        assert!(
            cell["effects"].is_u64()
                && cell["why"].is_string()
                && cell["blocked_ms"].is_null() != (verdict == "duplicate"),
            "{cell}"
        );
        assert_eq!(
            (cell["remedy"].is_string(), cell["worst_take"].is_null()),
            (verdict == "duplicate", verdict == "n/a")
        );
        for event in cell["timeline"].as_array().unwrap() {
            assert_eq!(keys(event), ["actor", "at_us", "client", "reply", "step", "take"]);
            assert!(
                event["at_us"].is_u64() && event["actor"].is_string() && event["step"].is_string(),
                "{event}"
            );
            assert!(
                ["client", "reply"]
                    .iter()
                    .all(|name| event[name].is_string() || event[name].is_null()),
                "{event}"
            );
        }
    }
    assert_eq!(cells.len(), 3);
    assert_eq!((&cells[0]["effects"], &cells[0]["blocked_ms"]), (&json!(2), &json!(30_000)));
    let lines = run(home().path(), &[&words[..], &["-o", "jsonl"]].concat()).exits(0).json_lines();
    assert_eq!(
        lines.iter().map(keys).collect::<Vec<_>>(),
        cells.iter().map(keys).collect::<Vec<_>>()
    );
    assert_eq!(
        lines.iter().map(|line| &line["verdict"]).collect::<Vec<_>>(),
        ["duplicate", "refused", "n/a"]
    );
}

fn keys(object: &Value) -> Vec<&str> {
    let keys: BTreeSet<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.into_iter().collect()
}

#[test]
fn a_timeline_shows_who_did_what() {
    let shown = quick(&["crash-before-complete", "--timeline"]).exits(0).text();
    insta::assert_snapshot!(shown.lines().map(masked).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_timeline_shows_a_client_that_waits_once() {
    let words = [
        "simulate",
        "crash-before-complete",
        "--schema",
        "reference,event-consumer",
        "--sandbox",
        "-o",
        "json",
    ];
    let document = run(home().path(), &words).exits(0).json();
    for cell in document["cells"].as_array().unwrap() {
        let turned_away = |event: &&Value| {
            event["reply"].as_str().is_some_and(|reply| reply.ends_with("(conflict)"))
        };
        assert_eq!(
            cell["timeline"].as_array().unwrap().iter().filter(turned_away).count(),
            1,
            "{cell}"
        );
    }
}

/// A line without its times, and without the room that times of other lengths take.
fn masked(line: &str) -> String {
    let line = match line
        .split_once("\"IN_PROGRESS\", ")
        .map(|(before, behind)| (before, behind.split_once('}')))
    {
        Some((before, Some((_, behind)))) => format!("{before}\"IN_PROGRESS\", TIME}}{behind}"),
        _ => line.to_owned(),
    };
    let words: Vec<_> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    let is_time =
        |word: &&str| word.split_once('.').is_some_and(|(ms, _)| ms.parse::<u32>().is_ok());
    words
        .iter()
        .map(|word| if is_time(word) { "TIME" } else { word })
        .collect::<Vec<_>>()
        .join("  ")
}

/// What `--expect` says of the quick cell and one that was accepted like this.
fn expecting(accepted: &Value, words: &[&str]) -> Run {
    let home = home();
    fs::write(home.path().join("accepted.json"), accepted.to_string()).unwrap();
    let expect = ["--expect", "accepted.json", "result-not-stored"];
    run(home.path(), &[&QUICK[..], &expect, words].concat())
}

fn accepted(result_not_stored: &str) -> Value {
    let cell = |scenario: &str, verdict: &str| json!({ "schema": "reference", "scenario": scenario, "verdict": verdict });
    let unplayed = cell("evicted-lock", "safe");
    json!({ "format": 1, "cells": [cell("store-down", "refused"), cell("result-not-stored", result_not_stored), unplayed] })
}

#[test]
fn what_was_accepted_is_no_news_however_bad_it_is() {
    expecting(&accepted("duplicate"), &[]).exits(0).shows("All results match the accepted file.");
    assert_eq!(
        expecting(&accepted("duplicate"), &["-o", "json"]).exits(0).json()["differences"],
        json!([])
    );
}

#[test]
fn a_matrix_that_it_wrote_is_one_that_it_accepts() {
    let written = run(home().path(), &[&QUICK[..], &["result-not-stored", "-o", "json"]].concat())
        .exits(0)
        .json();
    expecting(&written, &[]).exits(0);
}

#[test]
fn what_is_not_as_accepted_is_named() {
    let worse = expecting(&accepted("wrong-answer"), &[]).exits(1);
    let line = "  worse    result-not-stored  reference: duplicate, accepted wrong-answer\n";
    assert!(
        worse.text().ends_with(&format!("Different from the accepted file\n{line}")),
        "{}",
        worse.all()
    );
    worse.shows("files of reference: not known to be the accepted ones");
    let mut better = accepted("duplicate");
    better["cells"][0]["verdict"] = json!("stuck");
    let changed = expecting(&better, &["-o", "json"]).exits(1).json();
    assert_eq!(changed["differences"][0]["change"], "changed");
    let played = quick(&["-o", "json"]).exits(0).json();
    better["hashes"] = played["hashes"].clone();
    let better = expecting(&better, &["-o", "json"]).exits(1).json();
    let found = json!([{ "schema": "reference", "scenario": "store-down", "accepted": "stuck", "now": "refused", "change": "better" }]);
    assert_eq!(better["differences"], found);
}

#[test]
fn a_cell_that_was_not_accepted_before_is_new() {
    let run = expecting(&json!({ "format": 1, "cells": [] }), &["-o", "json"]).exits(1).json();
    assert_eq!(run["differences"][0]["scenario"], "result-not-stored", "the worse first");
    assert_eq!(
        (&run["differences"][1]["change"], &run["differences"][1]["accepted"]),
        (&json!("new"), &Value::Null)
    );
}

#[test]
fn lines_of_json_leave_the_differences_to_stderr() {
    let run = expecting(&accepted("safe"), &["-o", "jsonl"]).exits(1);
    run.says("result-not-stored  reference: duplicate, accepted safe");
    assert_eq!(run.json_lines().len(), 2);
}

#[test]
fn what_is_no_accepted_matrix_is_a_usage_error_before_anything_is_played() {
    for (text, why) in
        [("{", "EOF"), ("{\"format\":2,\"cells\":[]}", "format 2"), ("{\"cells\":[]}", "format")]
    {
        let home = home();
        fs::write(home.path().join("accepted.json"), text).unwrap();
        let run = run(home.path(), &[&QUICK[..], &["--expect", "accepted.json"]].concat()).exits(2);
        run.says("accepted.json").says(why);
        assert_eq!(run.text(), "");
    }
    quick(&["--expect", "nowhere.json"]).exits(2).says("nowhere.json");
}

#[test]
fn chance_is_played_as_often_as_asked_for() {
    let words =
        ["simulate", "concurrent-duplicates", "--schema", "reference", "--sandbox", "-o", "json"];
    for (more, rounds) in [(&["--repeat", "5", "--seed", "7"][..], 5), (&[], 3)] {
        let cell =
            run(home().path(), &[&words[..], more].concat()).exits(0).json()["cells"][0].clone();
        let takes: BTreeSet<_> = cell["timeline"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["take"].to_string())
            .collect();
        assert_eq!(takes.len(), rounds, "{takes:?}");
    }
}

#[test]
fn a_context_that_is_kept_from_changes_is_not_simulated_through() {
    let server = Server::start();
    for kept in ["read_only", "protected"] {
        let config = format!("default_context = \"prod\"\n[contexts.prod]\n{kept} = true\n");
        fs::write(server.folder().join("config.toml"), config).unwrap();
        let words = ["simulate", "store-down", "--schema", "reference", "--config", "config.toml"];
        let refused = server.idemctl(&words).exits(2);
        let why =
            if kept == "read_only" { "it allows no changes" } else { "does not put load on it" };
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: pass --sandbox"), "{}", refused.stderr);
        run(server.folder(), &[&words[..], &["--sandbox"]].concat()).exits(0);
    }
    assert_eq!(server.size(), 0);
}

#[test]
fn the_list_of_scenarios_is_json_where_json_is_wanted() {
    let json = alone(&["simulate", "list", "-o", "json"]).exits(0).json();
    let scenarios = json["scenarios"].as_array().unwrap();
    assert!(
        scenarios.len() >= 19
            && scenarios
                .iter()
                .all(|one| one["scenario"].is_string() && one["summary"].is_string())
    );
}
