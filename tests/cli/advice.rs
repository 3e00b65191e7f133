//! The commands that advice names: each is one that can be done.

use std::process::Command;

use crate::support::{FOREVER, Runs, Server, binary};

/// Rule: what `inspect` advises is not refused. Each command between backticks is tried as a dry run.
#[test]
fn no_advice_is_a_command_that_is_refused() {
    let server = Server::holding(&[
        ("idempotency:older-held", "in-progress", 60_000),
        ("idempotency:older-done", "completed", FOREVER),
        ("idem:stuck", r#"{"status":"IN_PROGRESS"}"#, FOREVER),
        ("idem:odd", "{odd", FOREVER),
        ("idem:lock:a", "1", FOREVER),
        ("idem:done:a", "1", 60_000),
    ]);
    let keys = ["older-held", "older-done", "stuck", "a"];
    let mut tried = 0;
    for key in keys {
        let json = server.idemctl(&["inspect", key, "-o", "json"]).json();
        for record in json["records"].as_array().unwrap() {
            for finding in record["findings"].as_array().unwrap() {
                let advice = finding["advice"].as_str().unwrap();
                let commands = advice.split('`').filter_map(|part| part.strip_prefix("idemctl "));
                for command in commands {
                    let line = format!("{} {command} --dry-run", binary().display());
                    let mut shell = Command::new("sh");
                    shell
                        .env_clear()
                        .env("HOME", server.folder())
                        .args(["-c", &line])
                        .run()
                        .exits(0);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 4, "{tried}");
}
