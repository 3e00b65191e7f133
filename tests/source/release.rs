//! What the release workflow takes from `scripts/release.sh`, and that it uses only actions pinned by commit.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Run, Runs};

const TARGETS: [&str; 4] = [
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-musl",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn release(words: &[&str]) -> Run {
    Command::new("bash").arg(root().join("scripts/release.sh")).args(words).run()
}

#[test]
fn the_notes_are_the_section_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let notes = release(&["notes", version]).exits(0).text();
    let log = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let (_, section) = log.split_once(&format!("\n## [{version}]")).unwrap();
    let (_, section) = section.split_once('\n').unwrap();
    assert_eq!(notes.trim(), section.split("\n## [").next().unwrap().trim());
    release(&["notes", "0.0.1"]).exits(1).says("Cargo.toml has another version than 0.0.1");
}

/// Rule: the formula has the checksum of each of its files, and is not written without one.
#[test]
fn the_formula_has_the_checksum_of_each_file() {
    let version = env!("CARGO_PKG_VERSION");
    let folder = tempfile::tempdir().unwrap();
    let sums = folder.path().join("SHA256SUMS");
    let written = |targets: &[&str]| {
        let mut lines = String::new();
        for (index, target) in targets.iter().enumerate() {
            lines.push_str(&format!("{index:064x}  idemctl-{version}-{target}.tar.gz\n"));
        }
        fs::write(&sums, lines).unwrap();
        release(&["formula", version, sums.to_str().unwrap()])
    };
    let formula = written(&TARGETS).exits(0).text();
    for (index, target) in TARGETS.iter().enumerate() {
        let file = format!("/v{version}/idemctl-{version}-{target}.tar.gz\"\n");
        let sum = formula.split_once(&file).unwrap().1.lines().next().unwrap();
        assert_eq!(sum.trim(), format!("sha256 \"{index:064x}\""), "{formula}");
    }
    written(&TARGETS[..3]).exits(1).says("x86_64-unknown-linux-musl.tar.gz has no checksum");
}

#[test]
fn the_actions_of_the_workflows_are_pinned_by_commit() {
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let Some((_, action)) = line.split_once("uses: ") else { continue };
            let (_, commit) = action.split_once('@').unwrap();
            let commit = commit.split(' ').next().unwrap();
            let is_hash = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_hash, "{line}");
        }
    }
}
