//! Which schema says what a command writes.

use std::collections::BTreeSet;

use super::validator::files;

/// The commands with `-o json`, each with the schemas of its documents; `$defs/line` in there is of a line of `-o jsonl`.
pub const OUTPUTS: [(&str, &[&str]); 34] = [
    ("apply", &["purge.json"]),
    ("backup list", &["backups.json"]),
    ("backup prune", &["backups.json"]),
    ("begin", &["step.json"]),
    ("check", &["check.json"]),
    ("complete", &["step.json"]),
    ("config show", &["settings.json"]),
    ("context list", &["contexts.json"]),
    ("context show", &["contexts.json"]),
    ("context test", &["context-test.json"]),
    ("detect", &["detect.json"]),
    ("diff", &["diff.json"]),
    ("doctor", &["doctor.json"]),
    ("duplicates", &["duplicates.json"]),
    ("explore", &["explore.json"]),
    ("extend", &["extend.json"]),
    ("force-unlock", &["force-unlock.json"]),
    ("inspect", &["inspect.json"]),
    ("list", &["list.json"]),
    ("log", &["changes.json", "log.json"]),
    ("log prune", &["log.json"]),
    ("log show", &["log-show.json"]),
    ("probe", &["probe.json"]),
    ("purge", &["purge.json"]),
    ("race", &["race.json"]),
    ("reconcile", &["reconcile.json"]),
    ("release", &["step.json"]),
    ("restore", &["restore.json"]),
    ("schema list", &["schemas.json"]),
    ("schema show", &["schemas.json"]),
    ("simulate", &["scenarios.json", "simulate.json"]),
    ("stats", &["stats.json"]),
    ("sweep", &["sweep.json"]),
    ("undo", &["undo.json"]),
];

/// The schemas of what stands in documents of several commands, or is written for a program.
const SHARED: [&str; 3] = ["ask.json", "coverage.json", "record.json"];

/// The commands below this one that take `-o json`, by their words.
fn writers(command: &clap::Command, words: &str) -> Vec<String> {
    let writes = command.get_arguments().filter(|option| option.get_long() == Some("output"));
    let json =
        writes.flat_map(clap::Arg::get_possible_values).any(|value| value.get_name() == "json");
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    let below =
        below.flat_map(|command| writers(command, &format!("{words} {}", command.get_name())));
    json.then(|| words.trim().to_owned()).into_iter().chain(below).collect()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_command_with_json_has_a_schema() {
    let writers: BTreeSet<_> = writers(&idemctl::cli::command(), "").into_iter().collect();
    assert_eq!(writers, names(OUTPUTS.iter().map(|(command, _)| *command)));
}

#[test]
fn every_schema_is_of_a_command() {
    let schemas = OUTPUTS.iter().flat_map(|(_, schemas)| schemas.iter().copied()).chain(SHARED);
    assert_eq!(files().keys().cloned().collect::<BTreeSet<_>>(), names(schemas));
}

#[test]
fn a_command_without_a_schema_is_noticed() {
    let output = clap::Arg::new("output").long("output").value_parser(["table", "json"]);
    let table = clap::Arg::new("output").long("output").value_parser(["table"]);
    let nested = clap::Command::new("b").subcommand(clap::Command::new("c").arg(output));
    let root =
        clap::Command::new("x").subcommand(clap::Command::new("a").arg(table)).subcommand(nested);
    assert_eq!(writers(&root, ""), ["b c"]);
}
