//! `idemctl schema adopt` writes what a context lacks, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Home, LOCK, PENDING, Server};

const CONFIG: &str = "# Ours.\ndefault_context = \"prod\" # the one\n\n[contexts.prod]\nurl = \"redis://127.0.0.1:1\" # far\n\n[contexts.other]\nurl = \"redis://127.0.0.1:2\"\nschema = [\"express\"] # one\n";

fn adopted(home: &Home, words: &[&str]) -> String {
    home.run(&[&["schema", "adopt", "--yes"], words].concat()).exits(0);
    fs::read_to_string(home.config()).unwrap()
}

#[test]
fn a_prefix_is_written_into_the_deployment_and_the_rest_of_the_file_stays() {
    let home = Home::with(CONFIG);
    let text = adopted(&home, &["express", "--prefix", "shop:"]);
    let added = "\n[contexts.prod.deployment.express]\nprefix = \"shop:\"\n";
    assert_eq!(text, CONFIG.replace(" # far\n", &format!(" # far\n{added}")));
    assert_eq!(fs::metadata(home.config()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.setting(&[], &[], "deployment.express.prefix").0.as_deref(), Some("shop:"));
}

#[test]
fn what_is_said_already_is_not_written_again() {
    let home = Home::with(CONFIG);
    let text = adopted(&home, &["express", "--prefix", "shop:"]);
    home.run(&["schema", "adopt", "express", "--prefix", "shop:"])
        .exits(0)
        .says("has these settings already");
    home.run(&["schema", "adopt", "go-middleware"]).exits(0).says("has these settings already");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), text);
}

#[test]
fn a_context_that_lists_schemas_lists_the_new_one_too() {
    let home = Home::with(CONFIG);
    let text = adopted(&home, &["go-chi", "--prefix", "pay:", "--context", "other"]);
    assert!(text.contains("schema = [\"express\", \"go-chi\"] # one\n"), "{text}");
    assert!(text.ends_with("\n[contexts.other.deployment.go-chi]\nprefix = \"pay:\"\n"), "{text}");
}

#[test]
fn a_schema_without_a_prefix_is_adopted_only_with_one() {
    for name in ["go-chi", "powertools-python"] {
        let home = Home::with(CONFIG);
        let refused = home.run(&["schema", "adopt", name, "--yes"]).exits(2);
        refused.says("has no fixed prefix; pass the prefix of its keys with --prefix");
        assert_eq!(fs::read_to_string(home.config()).unwrap(), CONFIG);
        // The context goes on reading all schemas.
        let text = adopted(&home, &[name, "--prefix", "pay:"]);
        let added = format!("\n[contexts.prod.deployment.{name}]\nprefix = \"pay:\"\n");
        assert_eq!(text, CONFIG.replace(" # far\n", &format!(" # far\n{added}")));
    }
}

/// Rule: the library that `detect` prints is monitored once it is adopted as printed, beside all others.
#[test]
fn an_adopted_library_without_a_fixed_prefix_is_checked() {
    const HELD: &str = r#"{"status": "INPROGRESS", "expiration": 4102444800, "in_progress_expiration": 4102444800000}"#;
    let digest = |number: u128| number * 0x0123_4567_89ab_cdef_0fed_cba9_8765_4321;
    let redis_key = |number| format!("fn.main.f{}#{:032x}", number % 3, digest(number));
    let server = Server::filled((1..10).map(|number| (redis_key(number), HELD)), 25_000);
    let url = server.url();
    server.configure(&format!("default_context = \"here\"\n[contexts.here]\nurl = \"{url}\"\n"));
    server.set("idem:a", LOCK, 25_000);
    let found = server.unnamed(&["detect", "-o", "json"]).exits(0).json();
    let groups = found["groups"].as_array().unwrap();
    let line = groups.iter().find_map(|group| group["adopt"].as_str()).unwrap().to_owned();
    assert_eq!(line, "idemctl schema adopt powertools-python --prefix fn.main.");
    let words: Vec<_> = line.split(' ').skip(1).chain(["--yes"]).collect();
    server.unnamed(&words).exits(0);
    server.unnamed(&["check"]).exits(0).shows("records=10");
}

/// Rule: a schema that the context names is checked, or the answer is unknown. Revert: without
/// `skipped` in check.rs.
#[test]
fn a_check_without_a_schema_that_the_context_names_is_unknown() {
    let server = Server::holding(&[("idem:a", LOCK, 25_000)]);
    let run = server.in_context("c", "schema = [\"express\", \"go-chi\"]", &["check"]).exits(3);
    run.shows("UNKNOWN - schema go-chi: no fixed prefix");
    let run = server.in_context("d", "schema = [\"express\"]", &["check"]).exits(0);
    assert!(!run.all().contains("go-chi"), "{}", run.all());
}

/// Rule: the same schema in use under another prefix is not to be replaced.
#[test]
fn detect_does_not_advise_to_adopt_what_hides_a_schema_in_use() {
    let mut records: Vec<_> = (0..9).map(|number| (format!("idem:order-{number}"), LOCK)).collect();
    records.extend((0..5).map(|number| (format!("oldshop:idem:order-{number}"), LOCK)));
    let server = Server::filled(records, 25_000);
    let found = server.idemctl(&["detect"]).exits(0);
    found.shows("list --schema express --prefix oldshop:");
    assert!(!found.all().contains("adopt"), "{}", found.all());
}

/// Rule: a prefix that a context states is nobody else's to change. Revert: without the refusal the new prefix takes its place.
#[test]
fn a_context_that_states_another_prefix_is_left_alone() {
    let home = Home::with(CONFIG);
    let text = adopted(&home, &["express", "--prefix", "shop:"]);
    let refused = home.run(&["schema", "adopt", "express", "--prefix", "eu:"]).exits(2);
    refused
        .says("states the prefix `shop:` for express")
        .says("config.toml:8")
        .says("schema new NAME --from express");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), text);
}

#[test]
fn an_unknown_name_and_a_missing_context_are_refused() {
    let home = Home::with("");
    home.run(&["schema", "adopt", "expres"])
        .exits(2)
        .says("there is no schema `expres`")
        .says("express");
    home.run(&["schema", "adopt", "express"])
        .exits(2)
        .says("no context is selected")
        .says("`idemctl context set NAME`");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), "");
}

#[test]
fn the_line_that_detect_prints_makes_the_records_seen() {
    let server =
        Server::filled((0..5).map(|number| (format!("shop:idem:order-{number}"), LOCK)), 25_000);
    server.configure(&format!(
        "default_context = \"here\"\n[contexts.here]\nurl = \"{}\"\n",
        server.url()
    ));
    let found = server.unnamed(&["detect", "-o", "json"]).exits(0).json();
    let line = found["groups"][0]["adopt"].as_str().unwrap().to_owned();
    assert_eq!(line, "idemctl schema adopt express --prefix shop:");
    let words: Vec<_> = line.split(' ').skip(1).chain(["--yes"]).collect();
    server.unnamed(&words).exits(0).says("prefix = \"shop:\"");
    assert_eq!(server.unnamed(&["list", "-o", "jsonl"]).exits(0).json_lines().len(), 5);
    let found = server.unnamed(&["detect"]).exits(0);
    assert!(
        found.text().contains("  express") && !found.text().contains("dopt"),
        "{}",
        found.all()
    );
}

/// Rule: without a context, the printed line alone would be refused.
#[test]
fn detect_says_which_context_the_adoption_needs_first() {
    let server =
        Server::filled((0..5).map(|number| (format!("shop:idem:order-{number}"), LOCK)), 25_000);
    let found = server.idemctl(&["detect"]).exits(0);
    let first = format!("idemctl -s {} context set NEW-NAME", server.socket().display());
    found.shows("schema adopt express --prefix shop:").says(&first).says("--context NEW-NAME");
    let set =
        ["-s", &server.socket().display().to_string(), "context", "set", "shop"].map(str::to_owned);
    server.unnamed(&set.each_ref().map(String::as_str)).exits(0);
    let adopt = ["--context", "shop", "schema", "adopt", "express", "--prefix", "shop:", "--yes"];
    server.unnamed(&adopt).exits(0);
    let list = ["--context", "shop", "list", "-o", "jsonl"];
    assert_eq!(server.unnamed(&list).exits(0).json_lines().len(), 5);
    let found = server.unnamed(&["--context", "shop", "detect"]).exits(0);
    assert!(!found.all().contains("needs a context"), "{}", found.all());
}

/// Rule: nothing is written before somebody saw it and said yes, and the former file is kept.
#[test]
fn the_change_is_shown_and_asked_for() {
    let home = Home::with(CONFIG);
    let refused = home.run(&["schema", "adopt", "express", "--prefix", "shop:"]).exits(2);
    refused
        .says("will contain:")
        .says("prefix = \"shop:\"")
        .says("cannot prompt without a terminal");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), CONFIG);
    let run = home.run(&["schema", "adopt", "express", "--prefix", "shop:", "--yes"]).exits(0);
    run.says("The previous file is kept as ");
    let former = home.config().with_extension("toml.bak");
    assert_eq!(fs::read_to_string(former).unwrap(), CONFIG);
}

/// Rule: records that a schema reads today and would read no longer are counted before the question.
#[test]
fn what_is_no_longer_recognised_is_counted() {
    let server =
        Server::filled((0..7).map(|number| (format!("idem:order-{number}"), LOCK)), 25_000);
    server.configure(&format!(
        "default_context = \"here\"\n[contexts.here]\nurl = \"{}\"\n",
        server.url()
    ));
    let run =
        server.unnamed(&["schema", "adopt", "express", "--prefix", "shop:", "--yes"]).exits(0);
    run.says("7 records under idem: will no longer be recognised by express");
}

/// Rule: adopting a draft names it in the context, which reads it from then on. Its file stays a draft for all other contexts.
#[test]
fn a_draft_that_is_adopted_is_read_in_that_context_alone() {
    let server = Server::holding(&[("idempotency:a", PENDING, 60_000)]);
    let url = server.url();
    server.configure(&format!(
        "default_context = \"here\"\n[contexts.here]\nurl = \"{url}\"\n[contexts.other]\nurl = \"{url}\"\n"
    ));
    server.unnamed(&["schema", "new", "bar", "--from", "go-middleware"]).exits(0);
    let file = server.folder().join(".config/idemctl/schemas/bar/schema.toml");
    let draft = fs::read_to_string(&file).unwrap();
    assert!(draft.contains("DECIDE"), "{draft}");
    // A list shows a record once, under one of the schemas that claim it.
    let schemas = |context: &str| {
        let run = server.unnamed(&["inspect", "a", "-o", "json", "--context", context]).exits(0);
        let records = run.json()["records"].as_array().unwrap().clone();
        let mut names: Vec<_> =
            records.iter().map(|record| record["schema"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(schemas("here"), ["go-middleware"]);
    let run = server.unnamed(&["schema", "adopt", "bar", "--yes"]).exits(0);
    run.says("[contexts.here.deployment.bar]");
    assert_eq!(schemas("here"), ["bar", "go-middleware"]);
    assert_eq!(schemas("other"), ["go-middleware"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), draft);
    server.unnamed(&["schema", "adopt", "bar"]).exits(0).says("has these settings already");
}

/// Rule: a context is changed for its own server alone.
#[test]
fn a_server_that_no_context_has_changes_no_context() {
    let server =
        Server::filled((0..5).map(|number| (format!("shop:idem:order-{number}"), LOCK)), 25_000);
    server.configure(CONFIG);
    let before = fs::read_to_string(server.folder().join(".config/idemctl/config.toml")).unwrap();
    let found = server.idemctl(&["detect", "-o", "json"]).exits(0).json();
    let line = found["groups"][0]["adopt"].as_str().unwrap().to_owned();
    let words: Vec<_> = line.split(' ').skip(1).chain(["--yes"]).collect();
    let refused = server.unnamed(&words).exits(2);
    refused.says("no context is selected");
    assert_eq!(
        fs::read_to_string(server.folder().join(".config/idemctl/config.toml")).unwrap(),
        before
    );
    // The command line that is offered instead makes a context of this server, in which the schema can be adopted.
    let socket = server.socket().display().to_string();
    let line = format!("idemctl -s {socket} context set NEW-NAME");
    refused.says(format!("with `{line}`"));
    let made: Vec<_> = line.split(' ').skip(1).collect();
    server.unnamed(&made).exits(0);
    server
        .unnamed(&[
            "--context",
            "NEW-NAME",
            "schema",
            "adopt",
            "express",
            "--prefix",
            "shop:",
            "--yes",
        ])
        .exits(0);
    let listed = server.unnamed(&["--context", "NEW-NAME", "list", "-o", "jsonl"]).exits(0);
    assert_eq!(listed.json_lines().len(), 5);
}
