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

/// For each scenario that ends badly: the outcome under the first schema, and what to change.
fn outcomes(cells: &[Value]) -> String {
    let mut rows = "| scenario | what happens, for example | fix |\n|---|---|---|\n".to_owned();
    for scenario in distinct(cells, "scenario") {
        let is_of_scenario = |cell: &&Value| text(cell, "scenario") == scenario;
        let Some(cell) = cells.iter().filter(is_of_scenario).find(|cell| is_bad(cell)) else {
            continue;
        };
        let why = text(cell, "why").trim_start_matches(text(cell, "worst_take"));
        let why = why.trim_start_matches(": ");
        let (schema, remedy) = (text(cell, "schema"), text(cell, "remedy"));
        writeln!(rows, "| `{scenario}` | {schema}: {why} | {remedy} |").unwrap();
    }
    rows
}

#[test]
fn the_matrix_in_the_document_is_what_is_played() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulations.md");
    let document = fs::read_to_string(&file).unwrap();
    let (before, rest) =
        document.split_once(BEGIN).expect("the document has a place for the matrix");
    let (_, after) = rest.split_once(END).expect("the matrix has an end");
    let cells = cells();
    let (table, outcomes) = (table(&cells), outcomes(&cells));
    let wanted = format!("{before}{BEGIN}\n{table}\n{outcomes}\n{END}{after}");
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let differing: Vec<_> =
        document.lines().zip(wanted.lines()).filter(|(is, played)| is != played).take(3).collect();
    let same = fs::read_to_string(&file).unwrap() == wanted;
    assert!(
        same,
        "`make generate` writes it again; the document and the simulation: {differing:#?}"
    );
}
