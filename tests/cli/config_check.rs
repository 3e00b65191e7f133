//! `config check` prints all that idemctl will not read.

use std::fs;

use crate::support::Home;

/// Rule: everything is read and printed at once, and each thing that is not read makes exit status 1.
#[test]
fn all_that_is_not_read_is_printed_at_once() {
    let home = Home::with("[context.old]\nurl = \"redis://a\"\n");
    for (name, toml) in [("bad", "format = 2\nkeyz = 1\n"), ("worse", "format = 2\nname =\n")] {
        let folder = home.path().join(".config/idemctl/schemas").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("schema.toml"), toml).unwrap();
    }
    let state = home.path().join(".local/state/idemctl");
    fs::create_dir_all(state.join("backups")).unwrap();
    fs::create_dir_all(state.join("audit")).unwrap();
    fs::write(state.join("audit/log.jsonl"), "half a li\n").unwrap();
    fs::write(state.join("backups/b.jsonl"), "not a backup\n").unwrap();
    let run = home.run(&["config", "check"]).exits(1);
    let text = run.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{}", run.all());
    let parts = [
        "config.toml:1: unknown field `context`",
        "bad",
        "worse",
        "audit/log.jsonl: 1 line",
        "b.jsonl",
    ];
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "{part}: {}", run.all());
    }
    run.shows("removed in 0.3.0: rename each [context.NAME] to [contexts.NAME]");
}

/// Rule: a setting that stops every command is not read. Revert: without the catalog, exit status 0.
#[test]
fn a_setting_for_no_schema_is_printed() {
    let home = Home::with(
        "default_context = \"a\"\n[contexts.a]\nurl = \"redis://a\"\n[contexts.a.deployment.nosuch]\nlock_ttl = \"5m\"\n",
    );
    home.run(&["config", "show"]).exits(2);
    home.run(&["config", "check"]).exits(1).shows("nosuch");
}

#[test]
fn what_is_read_is_exit_status_0() {
    let home = Home::with("[contexts.a]\nurl = \"redis://a\"\n");
    home.run(&["config", "check"]).exits(0).says("are read");
}
