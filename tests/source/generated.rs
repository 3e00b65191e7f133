//! `completions/` and `man/` are what the binary generates, and the tables of `lua/reference/README.md` what the headers
//! of its scripts say. `IDEMCTL_BLESS=1` (`make generate`) writes them anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::header::{self, Script};
use crate::support::wire;
use crate::support::{Run, alone};

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

const SHELLS: [(&str, &str); 3] =
    [("bash", "idemctl.bash"), ("zsh", "_idemctl"), ("fish", "idemctl.fish")];

fn run(words: &[&str]) -> Run {
    alone(words).exits(0)
}

fn files_in(folder: &Path) -> Files {
    let Ok(entries) = fs::read_dir(folder) else { return Files::new() };
    entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .collect()
}

/// Holds a folder of the project against what it should be, or writes it.
pub fn hold(folder: &str, wanted: &Files) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        bless(&folder, wanted);
    }
    let stale = stale(&files_in(&folder), wanted);
    assert!(
        stale.is_empty(),
        "{}: {}; `make generate` writes them anew",
        folder.display(),
        stale.join(", ")
    );
}

fn bless(folder: &Path, wanted: &Files) {
    fs::create_dir_all(folder).unwrap();
    for name in files_in(folder).keys().filter(|name| !wanted.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for (name, text) in wanted {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// What differs, by file.
fn stale(there: &Files, wanted: &Files) -> Vec<String> {
    let missing = wanted
        .keys()
        .filter(|name| !there.contains_key(*name))
        .map(|name| format!("{name} is missing"));
    let differing = there.iter().filter_map(|(name, text)| match wanted.get(name) {
        None => Some(format!("{name} should not be there")),
        Some(wanted) if wanted != text => Some(format!("{name} is stale")),
        Some(_) => None,
    });
    missing.chain(differing).collect()
}

#[test]
fn completions_are_fresh() {
    let wanted = SHELLS.map(|(shell, file)| (file.to_owned(), run(&["completions", shell]).stdout));
    hold("completions", &wanted.into());
}

#[test]
fn manual_pages_are_fresh() {
    let folder = tempfile::tempdir().unwrap();
    run(&["man", folder.path().to_str().unwrap()]);
    let sections = ["man1", "man5", "man7"].map(|section| files_in(&folder.path().join(section)));
    hold("man", &sections.into_iter().flatten().collect());
}

const TABLES_BEGIN: &str =
    "<!-- What follows is written by `make generate` from the headers of the scripts. -->\n";
const TABLES_END: &str = "<!-- Here it ends. -->";

/// A script's positions and replies as tables.
fn tables(script: &Script) -> String {
    let (name, summary) = (&script.name, &script.summary);
    let mut text = format!("\n### `{name}`: {}\n\n", summary.trim_end_matches('.'));
    text.push_str("| position | name | meaning |\n|---|---|---|\n");
    for position in &script.positions {
        let header::Position { list, index, name, meaning } = position;
        let meaning = if list == "KEYS" { format!("`{meaning}`") } else { meaning.clone() };
        text.push_str(&format!("| `{list}[{index}]` | {name} | {meaning} |\n"));
    }
    text.push_str("\n| reply | meaning |\n|---|---|\n");
    for (reply, meaning) in script.replies.iter().zip(&script.meanings) {
        text.push_str(&format!("| `{reply}` | {meaning} |\n"));
    }
    text
}

#[test]
fn the_tables_of_the_reference_scripts_are_fresh() {
    let file = wire::lua().join("reference/README.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(TABLES_BEGIN).unwrap();
    let (_, after) = rest.split_once(TABLES_END).unwrap();
    let scripts = ["begin", "renew", "complete", "release"]
        .map(|name| Script::read(&format!("reference/{name}")));
    let tables: String = scripts.iter().map(tables).collect();
    let wanted = format!("{before}{TABLES_BEGIN}{tables}\n{TABLES_END}{after}");
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap() == wanted,
        "{}: `make generate` writes it anew",
        file.display()
    );
}

#[test]
fn a_missing_a_stale_and_a_superfluous_file_are_noticed() {
    let files = |list: &[(&str, &str)]| -> Files {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    };
    let wanted = files(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let there = files(&[("a", "1"), ("b", "old"), ("d", "4")]);
    assert_eq!(stale(&there, &wanted), ["c is missing", "b is stale", "d should not be there"]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("d"), "4").unwrap();
    bless(folder.path(), &wanted);
    assert_eq!(files_in(folder.path()), wanted);
}
