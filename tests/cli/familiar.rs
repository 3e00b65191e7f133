//! Help, aliases and what was removed.

use crate::support::{FOREVER, Home, PENDING, Server, alone};

#[test]
fn help_is_where_it_is_looked_for() {
    for words in [&["help"][..], &["-h"], &["--help"]] {
        alone(words).exits(0).shows("force-unlock").shows("Usage: idemctl");
    }
    for words in [&["help", "sweep"][..], &["sweep", "-h"], &["sweep", "--help"]] {
        alone(words).exits(0).shows("--orphaned");
    }
    assert_eq!(alone(&["version"]).exits(0).text(), alone(&["--version"]).exits(0).text());
    alone(&["completion", "bash"]).exits(0).shows("_clap_complete_idemctl");
    // The host option.
    alone(&["-h", "redis.invalid", "list"]).exits(5);
}

/// Rule: `--version` prints one line, which scripts read. Only `--verbose` adds what a bug report needs.
#[test]
fn a_bug_report_begins_with_the_version_and_its_build() {
    let home = Home::with("");
    let version = home.run(&["--version"]).exits(0).text();
    assert_eq!(version.lines().count(), 1, "{version}");
    let build = version.trim_end().trim_end_matches(')').split_once(" (").unwrap().1;
    let (commit, target) = match build.strip_prefix("commit ") {
        Some(build) => build.split_once(", ").unwrap(),
        None => ("unknown", build),
    };
    let folder = home.path().join(".local/state/idemctl");
    for words in [["--version", "--verbose"], ["--verbose", "--version"], ["-v", "-V"]] {
        let report = home.run(&words).exits(0).text();
        let details = report.strip_prefix(&version).unwrap();
        let names: Vec<_> = details.lines().map(|line| line[..14].trim_end()).collect();
        assert_eq!(names, ["commit", "target", "features", "tested with", "state folder"]);
        let values: Vec<_> = details.lines().map(|line| &line[14..]).collect();
        assert_eq!(values[0..2], [commit, target], "{report}");
        assert!(values[2].starts_with("TLS"), "{report}");
        assert_eq!(values[4], folder.to_str().unwrap(), "{report}");
    }
    let named = [("XDG_STATE_HOME", "/var/lib")];
    home.run_with(&named, &["-V", "-v"]).exits(0).shows("state folder  /var/lib/idemctl\n");
    let none = [("XDG_STATE_HOME", ""), ("HOME", "")];
    home.run_with(&none, &["-V", "-v"]).exits(0).shows("state folder  unknown, HOME is not set\n");
}

#[test]
fn list_and_inspect_have_short_names() {
    let server = Server::holding(&[("idempotency:k", PENDING, FOREVER)]);
    server.idemctl(&["ls"]).exits(0).shows("in-progress");
    server.idemctl(&["get", "k"]).exits(0).shows("no-expiry");
}

#[test]
fn what_commands_share_has_pages_of_its_own() {
    for (topic, shows) in [
        ("connection", "--sentinel-pass-file"),
        ("output", "-o jsonl"),
        ("incidents", "idemctl reconcile"),
        ("exit-codes", "a change was sent and its outcome is unknown"),
        ("findings", "result-no-expiry"),
        ("schemas", "--result-ttl"),
        ("changes", "--wait-replicas"),
        ("scans", "--read-from"),
    ] {
        alone(&["help", topic]).exits(0).shows(shows);
        alone(&["help"]).exits(0).shows(topic);
    }
    let run = alone(&["list", "--help"]).exits(0);
    run.shows("\n  connection  -u/--url").shows("idemctl list --finding no-expiry");
    assert!(!run.text().contains("--sentinel-pass-file"), "{}", run.text());
    alone(&["help", "list"]).exits(0).shows("Scans the keyspace");
    alone(&["help", "schema", "check"]).exits(0).shows("idemctl schema check");
    alone(&["help", "nonsense"])
        .exits(2)
        .says("there is no help on `nonsense`")
        .says("idemctl help");
}

/// Rule: a script that uses an option of an earlier version fails, and the error names the replacement.
#[test]
fn an_option_that_was_removed_names_its_replacement() {
    let server = Server::holding(&[("idempotency:k", PENDING, FOREVER)]);
    let run = server.idemctl(&["sweep", "--orphaned", "--yes", "--check"]).exits(2);
    run.says("`sweep` no longer has the option --check")
        .says("hint: removed in 0.3.0: `idemctl")
        .says(" check` prints one line");
    assert!(run.stdout.is_empty() && server.get("idempotency:k").is_some(), "{}", run.all());
    // Another command never had it.
    let run = server.idemctl(&["purge", "--all", "--check"]).exits(2);
    assert!(!run.stderr.contains("no longer"), "{}", run.all());
}

#[test]
fn a_tip_mends_a_slip_of_the_fingers() {
    alone(&["list", "--older-then", "1h"]).exits(2).says("'--older-than'");
    alone(&["insepct", "k"]).exits(2).says("'inspect'");
}
