//! `idemctl undo` from the outside.

mod guards;
mod left;
mod pieces;
mod removed;
pub mod unfinished;
mod whole_records;

use crate::support::{DONE, PENDING, Server, audit};

fn pttl(server: &Server, redis_key: &str) -> i64 {
    server.send(&[b"PTTL", redis_key.as_bytes()])
}

/// Rewrites the details of the last operation line by line, as another idemctl, or time, would have
/// left them.
fn rewrite_log(server: &Server, edit: impl Fn(&mut serde_json::Value)) {
    audit::remove_ends(&server.audit());
    let details = server.details().pop().unwrap();
    let text = std::fs::read_to_string(&details).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["mark"].is_null() {
            edit(&mut line);
        }
        format!("{line}\n")
    });
    let lines: String = lines.collect();
    std::fs::write(details, lines).unwrap();
}
