//! `idemctl undo` from the outside.

mod guards;
mod left;
mod pieces;
mod removed;
mod unfinished;
mod whole_records;

use crate::support::{DONE, PENDING, Server};

fn pttl(server: &Server, redis_key: &str) -> i64 {
    server.send(&[b"PTTL", redis_key.as_bytes()])
}

/// Rewrites the audit log line by line, as another idemctl, or time, would have left it.
fn rewrite_log(server: &Server, edit: impl Fn(&mut serde_json::Value)) {
    let log = server.state("audit.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["mark"].is_null() {
            edit(&mut line);
        }
        format!("{line}\n")
    });
    let lines: String = lines.collect();
    std::fs::write(log, lines).unwrap();
}
