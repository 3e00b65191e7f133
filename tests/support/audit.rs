//! The audit folder as a test reads it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder of a home.
pub fn folder(home: &Path) -> PathBuf {
    home.join(".local/state/idemctl/audit")
}

/// The details of each operation in the log, in the order of their beginnings.
pub fn details(folder: &Path) -> Vec<PathBuf> {
    let log = fs::read_to_string(folder.join("log.jsonl")).unwrap_or_default();
    let mut files = Vec::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["mark"] == "begin" {
            files.push(folder.join(format!("{}.jsonl", line["op"].as_str().unwrap())));
        }
    }
    files
}

/// The text of the log, and then of all details.
pub fn text(folder: &Path) -> String {
    let files = [vec![folder.join("log.jsonl")], details(folder)].concat();
    files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect()
}

/// Removes the ends from the log, as if each operation was killed after its last change.
pub fn remove_ends(folder: &Path) {
    let log = folder.join("log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let begins = text.lines().filter(|line| line.contains("\"mark\":\"begin\""));
    fs::write(log, begins.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}
