//! Parts of documents that are written from data: the table in CHANGELOG.md of what was removed, and the checks of doctor.
//! `IDEMCTL_BLESS=1` (`make generate`) writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use idemctl::domain::removed;

const END: &str = "<!-- Here it ends. -->";

/// Holds the part of a document that is written from this file to what it should be.
#[track_caller]
fn keep(document: &str, source: &str, part: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(&file).unwrap();
    let begin = format!("<!-- What follows is written by `make generate` from {source}. -->\n");
    let (before, rest) = text.split_once(&begin).expect("the document has a place for it");
    let (_, after) = rest.split_once(END).expect("it has an end");
    let wanted = format!("{before}{begin}{part}\n{END}{after}");
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap() == wanted, "`make generate` writes it again");
}

#[test]
fn the_table_of_the_changelog_is_fresh() {
    let mut table = "\n| removed | what it was | use instead |\n|---|---|---|\n".to_owned();
    for row in removed::all() {
        let kind: &str = row.kind.into();
        writeln!(table, "| `{}` | {kind} | {} |", row.name, row.instead).unwrap();
    }
    keep("CHANGELOG.md", "src/domain/removed.toml", &table);
}

#[test]
fn the_checks_of_doctor_are_fresh() {
    let source = "src/domain/doctor/checks/checks.toml";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).unwrap();
    let rows: toml::Table = toml::from_str(&text).unwrap();
    let mut chapter = String::new();
    for check in rows["check"].as_array().unwrap() {
        let of = |field: &str| check[field].as_str().unwrap();
        write!(chapter, "\n### {}\n\nChecks {}.\n\n", of("code"), of("title")).unwrap();
        for field in ["Reads", "Rule", "Source", "Consequence", "Remedy"] {
            writeln!(chapter, "- {field}: {}", of(&field.to_lowercase())).unwrap();
        }
    }
    keep("docs/doctor.md", source, &chapter);
}
