//! `idemctl schema`: what it lists and shows, and what it finds wrong with a schema of one's own.

use std::fs;
use std::path::Path;

use super::simulate::variant::home;
use crate::support::{BUILT_IN, Run, Runs, Server, alone, idemctl};

fn run(home: &Path, words: &[&str]) -> Run {
    idemctl(home).args(words).run()
}

fn lua(folder: &str) -> String {
    format!("{}/lua/{folder}", env!("CARGO_MANIFEST_DIR"))
}

/// The line of a built-in schema's file that holds this text.
fn line_of(file: &str, text: &str) -> usize {
    let whole = fs::read_to_string(lua(file)).unwrap();
    whole.lines().position(|line| line.contains(text)).unwrap() + 1
}

/// A copy of a built-in schema under another name, changed.
fn own(home: &Path, from: &str, change: impl Fn(&str, String) -> String) {
    let folder = home.join("mine");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(lua(from)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace(&format!("name = \"{from}\""), "name = \"mine\"");
        fs::write(folder.join(&name), change(&name, text)).unwrap();
    }
}

/// What `check` says of such a copy.
fn checked(from: &str, change: impl Fn(&str, String) -> String) -> Run {
    let home = home();
    own(home.path(), from, change);
    run(home.path(), &["schema", "check", "mine"])
}

#[test]
fn lists_every_schema() {
    let run = alone(&["schema", "list"]).exits(0);
    for name in BUILT_IN {
        assert!(
            run.text().lines().any(|line| line.starts_with(&format!("{name} "))),
            "{}",
            run.all()
        );
    }
    let line = run.text().lines().find(|line| line.starts_with("event-driven")).unwrap().to_owned();
    for word in
        ["idem:started:{key}", "idem:result:{key}", "30s", "1d", "checked", "script", "built in"]
    {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn lists_as_json() {
    let document = alone(&["schema", "list", "-o", "json"]).exits(0).json();
    assert_eq!(document["format"], 1);
    let names: Vec<_> =
        document["schemas"].as_array().unwrap().iter().map(|schema| &schema["name"]).collect();
    assert_eq!(names, BUILT_IN);
    assert_eq!(alone(&["schema", "list", "-o", "jsonl"]).exits(0).json_lines().len(), 7);
}

#[test]
fn shows_all_of_a_schema() {
    insta::assert_snapshot!(alone(&["schema", "show", "go-middleware"]).exits(0).text());
}

#[test]
fn shows_a_schema_as_json() {
    let schema =
        alone(&["schema", "show", "event-driven", "-o", "json"]).exits(0).json()["schemas"][0]
            .clone();
    assert_eq!(schema["lock_ttl_ms"], 30_000);
    assert_eq!(schema["checks_owner"], true);
    assert_eq!(schema["late_worker"]["fenced_off"], true);
    assert_eq!(schema["keys"][1]["template"], "idem:result:{key}");
    let begin = &schema["begin"]["calls"][0];
    assert_eq!(begin["args"], serde_json::json!(["{owner}", "{lock_ttl}", "{result_ttl}"]));
    assert_eq!(begin["replies"][0]["when"], serde_json::json!([{ "result": "wrong-type" }]));
    let stored = &schema["values"][2];
    assert_eq!((&stored["closed"], &stored["opaque"]), (&true.into(), &false.into()));
    assert_eq!(stored["required"], serde_json::json!(["/statusCode"]));
    assert_eq!(stored["optional"], serde_json::json!(["/body", "/error"]));
    assert_eq!(stored["null"], serde_json::json!(["/body", "/error"]));
    assert_eq!(schema["values"][0]["opaque"], true);
    assert_eq!(schema["release"], serde_json::Value::Null);
}

#[test]
fn shows_a_schema_with_every_step_and_what_the_service_does() {
    insta::assert_snapshot!(alone(&["schema", "show", "reference"]).exits(0).text());
}

#[test]
fn shows_what_is_written_and_what_the_service_does_as_json() {
    let schema =
        alone(&["schema", "show", "reference", "-o", "json"]).exits(0).json()["schemas"][0].clone();
    let service = serde_json::json!({
        "on_failure": "store",
        "on_hang_up": "go-on",
        "without_redis": "refuse",
        "stores": null,
        "payload": null,
        "sample_body": null,
    });
    assert_eq!(schema["service"], service);
    assert_eq!(schema["renew"]["calls"][0]["replies"][0]["means"], "renewed");
    assert_eq!(schema["begin"]["calls"][0]["replies"][0]["array"], "ACQUIRED");
    assert_eq!(schema["values"][0]["fields"]["fingerprint"], "/fingerprint");
    assert_eq!(schema["values"][2]["fields"]["error"], "/response/error");
    assert_eq!(schema["values"][2]["timestamp"], "ms");
    assert!(schema["write"]["failed_value"].as_str().unwrap().contains("\"failed\""));
    assert_eq!(schema["write"]["header_names"], "as-given");
}

#[test]
fn prints_a_script_byte_for_byte() {
    let run = alone(&["schema", "show", "express", "--script", "start_processing"]).exits(0);
    assert_eq!(run.stdout, fs::read(lua("express/start_processing.lua")).unwrap());
    let run = alone(&["schema", "show", "express", "--script", "lock"]).exits(2);
    run.says("scripts: complete_processing, start_processing");
}

#[test]
fn an_unknown_name_is_a_usage_error_that_names_the_known() {
    alone(&["schema", "show", "nope"])
        .exits(2)
        .says("there is no schema `nope`")
        .says("go-middleware-v1");
}

#[test]
fn a_schema_of_ones_own_is_listed_and_replaces_a_built_in_one() {
    let home = home();
    own(home.path(), "express", |_, text| text);
    let folder = home.path().join("mine");
    fs::rename(&folder, home.path().join("express")).unwrap();
    let toml = home.path().join("express/schema.toml");
    let text = fs::read_to_string(&toml).unwrap().replace("name = \"mine\"", "name = \"express\"");
    fs::write(&toml, text.replace("lock = \"30s\"", "lock = \"45s\"")).unwrap();
    let run = run(home.path(), &["schema", "list", "--schema-dir", "."]).exits(0);
    let line = run.text().lines().find(|line| line.starts_with("express")).unwrap().to_owned();
    assert!(line.contains("45s") && line.contains("./express"), "{line}");
    assert_eq!(run.text().lines().count(), 8);
}

#[test]
fn every_built_in_schema_passes_the_check() {
    let all = alone(&["schema", "check", &lua("")]).exits(0);
    let expected: String = BUILT_IN.iter().map(|name| format!("{name}: ok\n")).collect();
    assert_eq!(all.text(), expected);
    // A schema's own folder, by any name for it.
    assert_eq!(
        run(Path::new(&lua("go-chi")), &["schema", "check", "."]).exits(0).text(),
        "go-chi: ok\n"
    );
}

#[test]
fn a_mistake_is_named_with_file_and_line() {
    let name = "name is `yours`, but the folder is called `mine`";
    for (from, to, file, at, says) in [
        ("{lock_ttl}", "{ttl}", "schema.toml", "{lock_ttl}", "`{ttl}` is not a placeholder here"),
        ("name = \"mine\"", "\"name\" = \"yours\"", "schema.toml", "name = \"express\"", name),
        (
            "[\"{lock_ttl}\"]",
            "[]",
            "start_processing.lua",
            "= ARGV[1]",
            "uses ARGV[1], but the call sends 0",
        ),
    ] {
        let run = checked("express", |_, text| text.replace(from, to)).exits(1);
        let line = line_of(&format!("express/{file}"), at);
        run.shows(format!("mine/{file}:{line}: error: {says}"));
        assert!(run.text().ends_with("mine: wrong\n"), "{}", run.all());
    }
}

#[test]
fn a_form_that_other_programs_values_fit_is_a_warning() {
    let run = checked("go-chi", |_, text| text.replace("required = [\"/status\"]\n", "")).exits(0);
    let line = line_of("go-chi/schema.toml", "[[value]]");
    let expected = format!(
        "mine/schema.toml:{line}: warning: `in-progress` also matches values with other fields"
    );
    run.shows(&expected);
    let run = checked("event-driven", |_, text| text).exits(0);
    assert!(!run.text().contains("warning"), "{}", run.all());
}

/// Rule: a folder of idemctl 0.2 gets one error, which names the version and every line to change.
#[test]
fn a_folder_of_format_1_is_refused_with_the_lines_to_change() {
    let home = home();
    own(home.path(), "event-driven", |_, text| {
        text.replace("format = 2", "format = 1").replace("opaque = true", "encoding = \"text\"")
    });
    let refused = run(home.path(), &["schema", "show", "mine", "--schema-dir", "."]).exits(2);
    refused.says("`format = 2` is missing; idemctl no longer reads format 1, of idemctl 0.2");
    let check = run(home.path(), &["schema", "check", "mine"]).exits(1);
    for run in [refused.stderr.clone(), check.text()] {
        let lines: Vec<_> = run.lines().filter(|line| line.starts_with("  line ")).collect();
        let of_format = line_of("event-driven/schema.toml", "format = 2");
        let of_value = line_of("event-driven/schema.toml", "[[value]]");
        let expected = [
            format!("  line {of_format}: write `format = 2`"),
            format!(
                "  line {of_value}: matches any text; write `equals`, or `opaque = true` if that \
                is intended"
            ),
        ];
        assert_eq!(lines, expected, "{run}");
    }
}

#[test]
fn a_format_that_takes_any_text_is_marked() {
    let run = checked("event-driven", |_, text| text.replace("opaque = true\n", "")).exits(1);
    run.shows("error: nothing distinguishes this value");
}

#[test]
fn what_is_written_must_have_the_form_it_is_said_to_have() {
    let run = checked("express", |_, text| {
        text.replace(r#"["/headers", "/body"]"#, r#"["/body"]"#)
            .replace(r#"headers = "/headers", "#, "")
    });
    let run = run.exits(1);
    let line = line_of("express/schema.toml", "result_value = ");
    run.shows(format!("mine/schema.toml:{line}: error: the value that it writes does not match"));
    run.shows("`/headers` is a field that it does not have");
}

#[test]
fn what_is_written_must_read_back() {
    let run = checked("express", |_, text| {
        text.replace(r#"lock_value = '{"status":"IN_PROGRESS"}'"#, "lock_value = 'x'")
    });
    let run = run.exits(1);
    run.shows("error: the value that it writes is read back as unreadable");
    let line = line_of("express/schema.toml", "lock_value = ");
    run.shows(format!("mine/schema.toml:{line}: "));

    let run = checked("go-chi", |_, text| text.replace("body_encoding = \"base64\"", "")).exits(1);
    run.shows("the body is read back as");
}

#[test]
fn a_failure_a_fingerprint_and_a_response_must_read_back() {
    let line_of = |text: &str| line_of("reference/schema.toml", text);
    for (from, to, at, message) in [
        (
            "\"/response/error\"",
            "\"/error\"",
            "failed_value = ",
            "the error text cannot be read back",
        ),
        (
            "\"state\":\"failed\"",
            "\"state\":\"broken\"",
            "failed_value = ",
            "is read back as unreadable",
        ),
        (
            "fingerprint = \"/fingerprint\"",
            "fingerprint = \"/owner\"",
            "lock_value = ",
            "the fingerprint is read back as",
        ),
        (
            "fingerprint = \"/fingerprint\"",
            "fingerprint = \"/print\"",
            "result_value = ",
            "the fingerprint cannot be read back at `fields.fingerprint`",
        ),
        (
            "\"response\":{response}",
            "\"response\":{\"status\":{status},\"body\":\"{body_base64}\"}",
            "response = ",
            "`result_value` does not contain the response",
        ),
    ] {
        let run =
            checked(
                "reference",
                |name, text| if name == "schema.toml" { text.replace(from, to) } else { text },
            );
        let run = run.exits(1);
        let expected = format!("mine/schema.toml:{}: error: ", line_of(at));
        assert!(
            run.text().contains(&expected) && run.text().contains(message),
            "{from}: {}",
            run.all()
        );
    }
}

#[test]
fn what_replies_foretell_must_be_what_the_states_say() {
    let run = checked("express", |_, text| {
        text.replace(
            r#"{ word = "CONFLICT", means = "conflict", when = { record = "in-progress" }"#,
            r#"{ word = "CONFLICT", means = "conflict""#,
        )
    })
    .exits(1);
    run.shows(
        "when a lock is held, the prediction for the next request is to fail, not to be rejected",
    );
}

#[test]
fn every_folder_is_checked_though_one_is_wrong() {
    let home = home();
    own(home.path(), "express", |_, text| text);
    fs::create_dir(home.path().join("another")).unwrap();
    fs::write(home.path().join("another/schema.toml"), "format = 3\n").unwrap();
    let run = run(home.path(), &["schema", "check", "."]).exits(1);
    run.shows("./another/schema.toml:1: error: ").shows("another: wrong\n").shows("mine: ok\n");
}

#[test]
fn a_folder_that_is_none_is_a_usage_error() {
    alone(&["schema", "check", "nowhere"]).exits(2).says("nowhere is neither a folder nor");
    alone(&["schema", "check", "."]).exits(2).says("contains a schema.toml");
}

#[test]
fn a_hostile_schema_does_not_reach_the_terminal() {
    let home = home();
    own(home.path(), "express", |_, text| {
        text.replace("summary = \"Express", "summary = \"\\u001b[31mExpress")
    });
    let run = run(home.path(), &["schema", "show", "mine", "--schema-dir", "."]).exits(0);
    assert!(!run.stdout.contains(&0x1b), "{}", run.all());
}

/// Rule: a word that this version does not have is refused, and the error says what to use instead.
#[test]
fn a_removed_word_is_refused_with_what_to_use_instead() {
    let server = Server::start();
    for word in ["hash = \"sha256(body)\"", "parts = { code = \"old:{key}:code\" }"] {
        let toml = format!(
            "format = 2\nname = \"old\"\nkeys = {{ record = \"old:{{key}}\", {word} }}\n\
            ttl = {{ lock = \"30s\" }}\n[[value]]\nname = \"held\"\nequals = \"1\"\n\
            state = \"in-progress\"\n"
        );
        server.describe("old", &[("schema.toml", &toml)]);
        let run = server.idemctl(&["list", "--schema", "old"]).exits(2);
        run.says("schema.toml:").says("; removed in 0.3.0: ");
        let checked = server.idemctl(&["schema", "check", "old"]).exits(1);
        assert_eq!(checked.text().matches("error: ").count(), 1, "{word}: {}", checked.all());
    }
}
