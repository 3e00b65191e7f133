//! What an exploration never met: a schema in which nothing can run proves nothing, and says so.

use std::fs;

use serde_json::{Value, json};

use super::{explore, only};
use crate::simulate::variant::{FENCES, MINE, Variant, home, reference, run};
use crate::support::Run;

/// A lock whose SET has options that no server accepts together, so that begin always fails.
const CANNOT_RUN: &str = r#"format = 2
name = "mine"
keys = { record = "cannot:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "lock"
equals = "running"
state = "in-progress"

[[value]]
name = "done"
encoding = "json"
required = ["/s"]
state = "completed"
fields = { status = "/s" }

[write]
lock_value = "running"
result_value = '{"s":{status}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "XX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { word = "running", means = "conflict", when = { record = "lock" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

fn explore_mine(folder: &std::path::Path, words: &[&str]) -> Run {
    let dir = ["--schema-dir", folder.to_str().unwrap(), "--sandbox"];
    run(folder, &[&["explore", MINE], words, &dir].concat())
}

fn explore_variant(variant: &Variant, words: &[&str]) -> Run {
    explore_mine(variant.folder(), words)
}

fn goals(exploration: &Value) -> Vec<&str> {
    let unreached = exploration["unreached"].as_array().unwrap();
    unreached.iter().map(|unreached| unreached["goal"].as_str().unwrap()).collect()
}

/// Rule: a schema in which no request can execute is not without violation.
#[test]
fn a_begin_that_always_fails_is_no_success() {
    let folder = home();
    fs::create_dir(folder.path().join(MINE)).unwrap();
    fs::write(folder.path().join("mine/schema.toml"), CANNOT_RUN).unwrap();
    let shown = explore_mine(folder.path(), &[]).exits(1);
    let text = shown.text();
    assert!(
        text.starts_with(
            "mine: it never reaches an effect, a stored result or a replay without a fault\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("why: begin (SET) replied error ERR syntax error, which matches no reply"),
        "{text}"
    );
    assert!(!text.contains("holds:"), "{text}");
    let explored = only(&explore_mine(folder.path(), &["-o", "json"]).exits(1));
    assert_eq!(goals(&explored), ["effect", "stored-result", "replay"]);
    assert_eq!(explored["coverage"]["calls"][0]["unlisted"], "error ERR syntax error");
    assert_eq!(explored["harms"], json!([]));
    // Without the whole search, nobody knows what a longer history reaches.
    let part = only(&explore_mine(folder.path(), &["-o", "json", "--max-states", "3"]).exits(3));
    assert_eq!(goals(&part), [""; 0]);
}

/// Rule: each goal is missed where the step that leads to it fails, and the step is named.
#[test]
fn the_step_that_never_succeeds_is_named() {
    for (variant, unreached, why) in [
        (
            reference().with("renew.lua", FENCES, "if true then"),
            &["effect", "stored-result", "replay"][..],
            "renew replied only LOST (refused) and FENCED (refused), and without a fault never what",
        ),
        (
            reference().with("complete.lua", "if (holder or author) ~= owner then", "if true then"),
            &["stored-result", "replay"],
            "complete replied only LOST (refused) and FENCED (refused)",
        ),
    ] {
        let explored = only(&explore_variant(&variant, &["-o", "json"]).exits(1));
        assert_eq!(goals(&explored), unreached);
        let reason = explored["unreached"][0]["why"].as_str().unwrap();
        assert!(reason.starts_with(why), "{reason}");
    }
}

#[test]
fn a_goal_that_is_no_longer_reached_differs_from_what_was_accepted() {
    let sound = reference();
    let accepted = explore_variant(&sound, &["-o", "json"]).exits(0);
    let file = sound.folder().join("accepted.json");
    fs::write(&file, accepted.text()).unwrap();
    let never = sound.with("renew.lua", FENCES, "if true then");
    let differs = explore_variant(&never, &["--expect", file.to_str().unwrap()]).exits(1);
    assert!(differs.text().contains("new  mine: effect is never reached"), "{}", differs.text());
}

#[test]
fn every_built_in_schema_runs_and_says_what_it_never_met() {
    for explored in explore(&["all", "-o", "json"]).exits(1).json()["schemas"].as_array().unwrap() {
        assert_eq!(goals(explored), [""; 0], "{explored:#}");
        for call in explored["coverage"]["calls"].as_array().unwrap() {
            assert_eq!(call["unlisted"], Value::Null, "{call:#}");
        }
    }
    // Each described step of each schema is called.
    let explored = only(&explore(&["reference", "-o", "json"]).exits(0));
    let calls = explored["coverage"]["calls"].as_array().unwrap().clone();
    assert!(calls.iter().all(|call| call["sent"] == true), "{explored:#}");
    // A replay comes from the request after a single worker.
    let alone = only(&explore(&["express", "--workers", "1", "--faults", "none", "-o", "json"]));
    assert_eq!(goals(&alone), [""; 0]);
    let release = &alone["coverage"]["calls"][2];
    assert_eq!((&release["step"], &release["sent"]), (&json!("release"), &json!(false)));
    explore(&["express", "--workers", "1", "--faults", "none"])
        .exits(0)
        .shows("met 4 of 9 replies and 2 of 2 formats; never: ");
}
