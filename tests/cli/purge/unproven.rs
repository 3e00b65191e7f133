//! Records of which too little is known to be chosen are counted, named, and change the exit code.

use crate::support::{Runs as _, Server, binary, printed};

const DAY: u64 = 86_400_000;
const FAILED: &str = r#"{"status":"COMPLETED","code":500,"headers":{},"body":null}"#;
const OF_DRIVEN: &str = r#"{"statusCode":500,"body":"x"}"#;

/// Two schemas with results that failed half an hour and two hours ago, if the default TTL of a day holds.
fn server() -> Server {
    let server = Server::start();
    for (age, name) in [(1_800_000, "new"), (7_200_000, "old")] {
        server.set(&format!("idempotency:{name}"), FAILED, DAY - age);
        server.set(&format!("idem:result:{name}"), OF_DRIVEN, DAY - age);
    }
    server
}

/// Rule: `list` with the same words shows what a purge removes and counts what it leaves out, and the exit code of the purge says
/// that something is left out.
#[test]
fn chosen_and_left_out_are_what_a_list_counts() {
    let server = server();
    let words = ["--status", "5xx", "--newer-than", "1h"];
    let listed = server.idemctl(&[&["list"], &words[..]].concat()).exits(3);
    listed.says("nothing was found, but not everything was read");
    listed.says(
        "Skipped 2 records (go-middleware 2): the age is only estimated, because the result TTL of \
        this deployment",
    );
    assert_eq!(printed::command_lines(&listed).len(), 2, "{}", listed.all());
    let stated = ["--schema", "event-driven", "--result-ttl", "24h"];
    let names = server.idemctl(&[&["list", "-o", "name"], &words[..], &stated].concat()).exits(0);
    assert_eq!(names.text(), "event-driven/\"new\"\n");
    let purged = server.idemctl(&[&["purge", "--dry-run"], &words[..], &stated].concat()).exits(0);
    purged.shows("event-driven  completed      1").shows("new");
    for last in ["--dry-run", "--yes"] {
        let run = server.idemctl(&[&["purge", last], &words[..]].concat()).exits(3);
        run.says("nothing was found, but not everything was read");
        run.says(
            "Skipped 2 records (go-middleware 2): the age is only estimated, because the result TTL \
            of this deployment is not configured",
        );
        run.says("Skipped 2 records (event-driven 2)");
        let json =
            server.idemctl(&[&["purge", last, "-o", "json"], &words[..]].concat()).exits(3).json();
        assert_eq!(json["unproven"]["result_ttl"], 4, "{json}");
    }
    assert_eq!(server.size(), 4);
}

/// Rule: the command line for each schema is whole, and says on which TTL of the service it depends.
#[test]
fn the_command_line_for_each_schema_is_whole() {
    let server = server();
    let run = server.idemctl(&["purge", "--status", "5xx", "--newer-than", "1h", "--yes"]).exits(3);
    run.says("if your service sets 1d: `");
    let lines = printed::command_lines(&run);
    assert_eq!(lines.len(), 2, "{}", run.all());
    for (line, left) in lines.iter().zip([3, 2]) {
        assert!(line.contains(" --result-ttl 1d "), "{line}");
        let mut shell = std::process::Command::new("/bin/sh");
        shell.env("HOME", server.folder()).args(["-c", &format!("\"$0\" {line}")]).arg(binary());
        shell.run().exits(0).says("1 of 1 record purged");
        assert_eq!(server.size(), left);
    }
}

/// Rule: a schema of the context without a fixed prefix is skipped and named, and keeps no other from being changed.
#[test]
fn a_schema_of_the_context_that_cannot_be_walked_is_skipped() {
    let server = server();
    server.set("cache:product:1", "a stranger's", DAY);
    server.put("idempotency:stuck", crate::support::PENDING);
    server.configure("default_context = \"here\"\n[contexts.here]\nschema = [\"go-middleware\", \"go-chi\", \"powertools-python\"]\n");
    let run = server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0s"]).exits(3);
    run.says("Swept: 1 of 1 lock done").says("Skipped schema go-chi: no fixed prefix");
    server.idemctl(&["sweep", "--orphaned", "--dry-run"]).exits(3);
    server
        .idemctl(&["purge", "--status", "500", "--yes", "--all"])
        .exits(3)
        .says("2 of 2 records purged");
    let list = server.idemctl(&["list"]).exits(3);
    list.says("Skipped schema go-chi");
    // Once for each of the two.
    assert_eq!(list.stderr.matches("Skipped schema").count(), 2, "{}", list.all());
    // The context names what was skipped.
    server.set("idempotency:other", FAILED, DAY);
    let says = "schema go-chi: no fixed prefix; schema powertools-python: no fixed prefix";
    server.idemctl(&["check"]).exits(3).shows(format!("UNKNOWN - {says}"));
    let inspected = server.idemctl(&["inspect", "cache:product:1"]);
    assert!(!inspected.all().contains("force-unlock"), "{}", inspected.all());
    // Named by the operator, it is refused.
    server
        .idemctl(&["sweep", "--orphaned", "--yes", "--schema", "go-chi"])
        .exits(2)
        .says("no fixed prefix");
    // The only schema of a context is meant.
    server.configure("default_context = \"here\"\n[contexts.here]\nschema = [\"go-chi\"]\n");
    server.set("bare", r#"{"status":0}"#, DAY);
    assert!(server.idemctl(&["list", "-o", "name"]).exits(0).text().contains("go-chi/\"bare\""));
}
