//! The matrix in `docs/simulations.md`, with a paragraph for each bad cell, is what `simulate --all` plays. `IDEMCTL_BLESS=1` (`make
//! generate`) writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::{Runs, idemctl, program};
use idemctl::domain::duration;
use serde_json::Value;

const BEGIN: &str = "<!-- What follows is written by `make generate` from a simulation. -->\n";
const END: &str = "<!-- Here it ends. -->";

/// The step of a timeline in which a server turned out not to have the script.
const BY_DIGEST: &str = "sends the script by its digest";

/// Worse than waiting.
const BAD: [&str; 3] = ["duplicate", "wrong-answer", "stuck"];

/// What `simulate --all` plays with the built-in schemas.
fn cells() -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", program().parent().unwrap().display());
    let words = ["simulate", "--all", "--sandbox", "--output", "json"];
    let played = idemctl(home.path()).env("PATH", path).args(words).run().exits(1).json();
    played["cells"].as_array().unwrap().clone()
}

fn text<'a>(cell: &'a Value, field: &str) -> &'a str {
    cell[field].as_str().unwrap()
}

fn is_bad(cell: &Value) -> bool {
    BAD.contains(&text(cell, "verdict"))
}

fn in_words(cell: &Value) -> String {
    match (text(cell, "verdict"), cell["blocked_ms"].as_u64()) {
        ("blocked", Some(ms)) => format!("blocked {}", duration::short(ms)),
        (verdict, _) if is_bad(cell) => format!("**{verdict}**"),
        (verdict, _) => verdict.to_owned(),
    }
}

/// The values of a field in the order in which they come first.
fn distinct<'a>(cells: &'a [Value], field: &str) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for value in cells.iter().map(|cell| text(cell, field)) {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn table(cells: &[Value]) -> String {
    let (schemas, scenarios) = (distinct(cells, "schema"), distinct(cells, "scenario"));
    let by_place: BTreeMap<_, _> = cells
        .iter()
        .map(|cell| ((text(cell, "scenario"), text(cell, "schema")), in_words(cell)))
        .collect();
    let mut table =
        format!("| scenario | {} |\n|---|{}\n", schemas.join(" | "), "---|".repeat(schemas.len()));
    for scenario in scenarios {
        let row: Vec<_> =
            schemas.iter().map(|schema| by_place[&(scenario, *schema)].as_str()).collect();
        writeln!(table, "| `{scenario}` | {} |", row.join(" | ")).unwrap();
    }
    table
}

/// A paragraph a bad cell, by scenario, and behind each scenario's what to change.
fn paragraphs(cells: &[Value]) -> String {
    let mut paragraphs = String::new();
    for scenario in distinct(cells, "scenario") {
        let bad: Vec<_> = cells
            .iter()
            .filter(|cell| text(cell, "scenario") == scenario && is_bad(cell))
            .collect();
        let Some(first) = bad.first() else { continue };
        writeln!(paragraphs, "\n#### `{scenario}`\n\nFix: {}.", text(first, "remedy")).unwrap();
        for cell in bad {
            let (schema, verdict, why) =
                (text(cell, "schema"), text(cell, "verdict"), text(cell, "why"));
            let take = match text(cell, "worst_take") {
                take if why.starts_with(take) && !take.is_empty() => format!(" ({take})"),
                _ => String::new(),
            };
            let why = why.trim_start_matches(text(cell, "worst_take")).trim_start_matches(": ");
            let told = story(cell);
            writeln!(paragraphs, "\n**{schema}, {verdict}{take}.** {told}. So {why}.").unwrap();
        }
    }
    paragraphs
}

/// The worst take as a sentence: who did what, and what that meant.
fn story(cell: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut last = "";
    for event in cell["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["take"] == cell["worst_take"])
    {
        let (actor, step) = (text(event, "actor"), text(event, "step"));
        let waits = actor == last && parts.last().is_some_and(|part| part.ends_with("conflict)"));
        // Whether a client that keeps asking falls between the two calls of its begin step just as the lock goes is
        // chance: it asks once more.
        let by_chance = waits && meaning(event) == Some("fail");
        // Redis 6.2 sends scripts to its replicas, later ones send what scripts write.
        let by_engine = step == BY_DIGEST;
        if by_chance || by_engine {
            continue;
        }
        let done = match meaning(event) {
            Some(meaning) => format!("{}: {meaning})", step.trim_end_matches(')')),
            None => step.to_owned(),
        };
        match parts.last_mut() {
            Some(part) if actor == last && !is_worldly(actor) => {
                part.push_str(&format!(", {done}"))
            }
            _ if is_worldly(actor) => parts.push(done),
            _ => parts.push(format!("{actor} {done}")),
        }
        last = actor;
    }
    let mut story = parts.join("; ");
    story[..1].make_ascii_uppercase();
    story
}

/// What a call came to, without what differs from run to run.
fn meaning(event: &Value) -> Option<&str> {
    let reply = event["reply"].as_str().filter(|_| text(event, "step").ends_with(')'))?;
    Some(reply.rsplit_once(" (").map_or(reply, |(_, meaning)| meaning.trim_end_matches(')')))
}

/// True for what nobody in the story does.
fn is_worldly(actor: &str) -> bool {
    ["time", "world", "network"].contains(&actor)
}

#[test]
fn the_matrix_in_the_document_is_what_is_played() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulations.md");
    let document = fs::read_to_string(&file).unwrap();
    let (before, rest) =
        document.split_once(BEGIN).expect("the document has a place for the matrix");
    let (_, after) = rest.split_once(END).expect("the matrix has an end");
    let cells = cells();
    let bad = cells.iter().filter(|cell| is_bad(cell)).count();
    let wanted = format!(
        "{before}{BEGIN}\n{}\n<details>\n<summary>How each of the {bad} bad cells fails</summary>\n{}\n</details>\n\n{END}{after}",
        table(&cells),
        paragraphs(&cells),
    );
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let differing: Vec<_> =
        document.lines().zip(wanted.lines()).filter(|(is, played)| is != played).take(3).collect();
    let same = fs::read_to_string(&file).unwrap() == wanted;
    assert!(
        same,
        "`make generate` writes it anew; what is there and what was played: {differing:#?}"
    );
}
