//! Words of other tools: they lead to the right command, and none of them changes anything by itself.

use crate::support::{Server, alone};

#[test]
fn help_is_where_it_is_looked_for() {
    for words in [&["help"][..], &["-h"], &["--help"]] {
        alone(words).exits(0).shows("force-unlock").shows("Usage: idemctl");
    }
    for words in [&["help", "sweep"][..], &["sweep", "-h"], &["sweep", "--help"]] {
        alone(words).exits(0).shows("--orphaned");
    }
    assert_eq!(alone(&["version"]).exits(0).text(), alone(&["--version"]).exits(0).text());
    alone(&["completion", "bash"]).exits(0).shows("complete -F");
}

#[test]
fn a_command_of_another_tool_is_answered_with_the_right_one_and_changes_nothing() {
    let server = Server::start();
    server.put("idempotency:k", r#"{"status":"PENDING"}"#);
    for (command, says) in [
        ("delete", "idemctl purge KEY"),
        ("rm", "idemctl purge KEY"),
        ("unlock", "idemctl force-unlock KEY"),
        ("cleanup", "idemctl sweep --orphaned"),
        ("undo", "idemctl restore FILE"),
    ] {
        let run = server.idemctl(&[command, "k", "--yes"]).exits(2);
        run.says(format!("there is no command `{command}`")).says(says);
        assert!(!run.stderr.contains("similar"), "no tip says something else: {}", run.all());
    }
    assert!(server.get("idempotency:k").is_some());
    server.idemctl(&["ls"]).exits(0).shows("in-progress");
    server.idemctl(&["get", "k"]).exits(0).shows("no-expiry");
}
