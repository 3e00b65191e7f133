//! What docs/explore.md shows is what the commands in it write, and its tables of bugs are the planted ones. `IDEMCTL_BLESS=1`
//! (`make generate`) writes the document and its pictures anew.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::steady;
use super::{explore, planted};

const BEGIN: &str = "```console\n$ idemctl explore ";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(path)
}

/// Compares a file with what it is to be, or writes it.
fn keep(path: &Path, wanted: &str) {
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(path, wanted).unwrap();
    }
    let is = fs::read_to_string(path).unwrap_or_default();
    let differing: Vec<_> =
        is.lines().zip(wanted.lines()).filter(|(is, wanted)| is != wanted).take(3).collect();
    assert!(is == wanted, "{}: IDEMCTL_BLESS=1 writes it anew: {differing:#?}", path.display());
}

#[test]
fn the_document_shows_what_the_commands_write() {
    let document = fs::read_to_string(file("explore.md")).unwrap();
    let document = planted::with_tables(&document);
    let mut parts = document.split(BEGIN);
    let mut wanted = parts.next().unwrap().to_owned();
    for part in parts {
        let (block, after) = part.split_once("```").unwrap();
        let words = block.lines().next().unwrap();
        let shown = explore(&words.split(' ').collect::<Vec<_>>());
        wanted.push_str(&format!(
            "{BEGIN}{words}\n{}\n```{after}",
            steady(&shown.text()).replace("[time]ms", "60ms")
        ));
    }
    keep(&file("explore.md"), &wanted);
}
