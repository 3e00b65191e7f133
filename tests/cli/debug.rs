//! `--debug`: each Redis command on stderr.

use crate::support::Server;

/// Rule: each command is told with its time and its error, and nothing that is secret.
#[test]
fn each_command_is_told_and_no_password_and_no_value() {
    let server = Server::start();
    let body = "c2VjcmV0IGJvZHk=".repeat(20);
    let stored = format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{body}"}}"#);
    server.set("idempotency:k", stored, 600_000);
    server.send::<()>(&[b"ACL", b"SETUSER", b"ana", b"on", b">hunter2", b"~*", b"+@all", b"-client"]);
    let run = server.idemctl(&["--debug", "--user", "ana", "-a", "hunter2", "inspect", "k", "-o", "json"]).exits(0);
    assert_eq!(run.json()["records"][0]["state"], "completed");
    let told: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("debug: ")).collect();
    assert!(told[0].contains("  AUTH (hidden) (hidden)  -> 5 B"), "{told:?}");
    assert!(told.iter().any(|line| line.contains("CLIENT SETNAME idemctl")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("idempotency:k")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("-> error NOPERM")), "{told:?}");
    assert!(told.iter().all(|line| ["µs  ", "ms  ", "s  "].iter().any(|unit| line.contains(unit))), "{told:?}");
    assert!(!run.stderr.contains("hunter2") && !run.stderr.contains("c2Vjcm"), "{}", run.stderr);
    let list = server.idemctl(&["list", "--debug"]).exits(0);
    list.says("SCAN ");
    assert!(!server.idemctl(&["list"]).exits(0).stderr.contains("debug: "));
}
