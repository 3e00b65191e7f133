//! The report is true however a run ends: lost replies, a lost server, a backup that cannot be
//! written.

use crate::provider::{BY_KEY, LOCK, lock, logged, program, pttl, state, words};
use crate::support::proxy::{Hook, breaks_at, hooked_socket, says, sends_at};
use crate::support::{FOREVER, Server};

/// Rule: a reply that is lost is read back, and the other locks are told and changed.
#[test]
fn a_lost_reply_is_read_back_and_the_others_go_on() {
    for delivers in [true, false] {
        let server = Server::holding(&[
            ("idem:done-1", LOCK, FOREVER),
            ("idem:done-2", LOCK, FOREVER),
            ("idem:not-1", LOCK, FOREVER),
        ]);
        let ask = program(server.folder(), BY_KEY);
        let socket = breaks_at(&server, "EXEC", delivers);
        let ran = server.through(&socket, &words(&ask, &["-o", "json"]));
        let report = ran.json();
        let mut stored = 0;
        for key in ["done-1", "done-2"] {
            let outcome = lock(&report, key)["outcome"].as_str().unwrap();
            match state(&server, "express", key).as_str() {
                "completed" => {
                    stored += 1;
                    assert_eq!(outcome, "completed", "{delivers} {}", ran.all());
                }
                "in-progress" => {
                    assert!(["failed", "outcome-unknown"].contains(&outcome), "{}", ran.all());
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!(stored, if delivers { 2 } else { 1 }, "{}", ran.all());
        assert_eq!(lock(&report, "not-1")["outcome"], "released", "{}", ran.all());
        assert_eq!(server.get("idem:not-1"), None);
        assert_eq!(ran.code, if delivers { 0 } else { 7 }, "{}", ran.all());
    }
}

/// Rule: an extension whose reply is lost while the server does not answer for a moment is read back
/// later, and the lock is still this run's. Revert: without `settle_unknown`, it is called changed,
/// and its operation is executed again once the hold ends.
#[test]
fn an_extension_that_an_outage_hides_is_read_back_later() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), BY_KEY);
    let lost_at = std::sync::Mutex::new(None);
    let socket = hooked_socket(&server, move |sent| {
        let mut lost_at = lost_at.lock().unwrap();
        match *lost_at {
            None if says(sent, "EXEC") => {
                *lost_at = Some(std::time::Instant::now());
                Hook::Lose
            }
            Some(at) if at.elapsed() < std::time::Duration::from_millis(400) => Hook::Cut,
            _ => Hook::Pass,
        }
    });
    let ran = server.through(&socket, &words(&ask, &["--lock-ttl", "5m", "-o", "json"]));
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(lock(&ran.json(), "done-1")["outcome"], "completed", "{}", ran.all());
    assert_eq!(state(&server, "express", "done-1"), "completed");
}

/// Rule: if the reply to an extension is lost, it is read back, and the lock is extended again if that
/// was not done.
#[test]
fn a_lost_reply_to_an_extension_is_read_back() {
    for delivers in [true, false] {
        let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
        let ask = program(server.folder(), BY_KEY);
        // The first transaction is that of the extension.
        let socket = breaks_at(&server, "EXEC", delivers);
        let ran = server.through(&socket, &words(&ask, &["--lock-ttl", "5m", "-o", "json"]));
        let report = ran.json();
        let entry = lock(&report, "done-1");
        assert_eq!(ran.code, 0, "{delivers}: {}", ran.all());
        assert_eq!(entry["outcome"], "completed", "{}", ran.all());
        assert_eq!(state(&server, "express", "done-1"), "completed");
        assert_eq!(logged(&server, "done-1"), ["extended", "completed"]);
        server.idemctl(&["undo", "--yes"]).exits(0);
        assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    }
}

/// Rule: if the server is gone, no lock is called changed, and those that were extended are named.
#[test]
fn a_server_that_is_gone_leaves_every_lock_told() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000), ("idem:done-2", LOCK, 60_000)]);
    let gone = server.folder().join("gone");
    let seen = gone.clone();
    let socket =
        hooked_socket(&server, move |_| if seen.exists() { Hook::Cut } else { Hook::Pass });
    let ask = program(server.folder(), &format!("touch gone\n{BY_KEY}"));
    let ran = server.through(&socket, &words(&ask, &["--lock-ttl", "5m", "-o", "json"]));
    assert_ne!(ran.code, 0, "{}", ran.all());
    let report = ran.json();
    for key in ["done-1", "done-2"] {
        let entry = lock(&report, key);
        assert_ne!(entry["outcome"], "completed", "{}", ran.all());
        assert_eq!(entry["hold"], "extended", "{}", ran.all());
        assert!(entry["holds_until"].is_string(), "{}", ran.all());
        assert!(pttl(&server, &format!("idem:{key}")) > 500_000);
        assert_eq!(server.get(&format!("idem:{key}")).unwrap(), LOCK.as_bytes());
    }
    std::fs::remove_file(gone).unwrap();
}

/// Rule: an outage at the answer to the question does not hide that locks stay extended, and nothing
/// is said of a time that has passed.
#[test]
fn an_outage_after_the_question_names_the_locks_that_stay_extended() {
    use crate::support::terminal::{ends, on_terminal, press};
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000), ("idem:not-1", LOCK, 2_000)]);
    let gone = server.folder().join("gone");
    let seen = gone.clone();
    let socket =
        hooked_socket(&server, move |_| if seen.exists() { Hook::Cut } else { Hook::Pass });
    let ask = program(server.folder(), BY_KEY);
    let all = words(&ask, &["--lock-ttl", "5m"]);
    let all: Vec<_> = all.into_iter().filter(|word| *word != "--yes").collect();
    let mut command = crate::support::idemctl(server.folder());
    command.arg("-s").arg(socket);
    let mut session = on_terminal(command, &all);
    session.exp_string("[y/N]").unwrap();
    std::fs::write(&gone, "").unwrap();
    press(&mut session, "", "y\r");
    let ran = ends(session);
    let shown = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ran.code, 5, "{shown}");
    assert!(!shown.contains("name the server"), "{shown}");
    assert!(shown.contains("run the same command again to continue"));
    std::fs::remove_file(gone).unwrap();
    assert!(pttl(&server, "idem:done-1") > 500_000);
}

/// Rule: without a local Redis, a completion is not called tested.
#[test]
fn a_completion_that_was_not_tested_is_called_so() {
    let server = Server::holding(&[("idem:done-1", LOCK, FOREVER)]);
    let ask = program(server.folder(), &format!("PATH=/usr/bin:/bin\n{BY_KEY}"));
    // The program itself begins with `cat`.
    let ask = format!("PATH=/usr/bin:/bin {ask}");
    for (more, says) in [
        (&["--dry-run"][..], "complete (not tested)"),
        (&["-o", "json"], "Not tested (cannot start"),
    ] {
        let mut command = server.command();
        command.env("PATH", "/nowhere").args(words(&ask, more));
        let ran = crate::support::Runs::run(&mut command).exits(0);
        assert!(ran.all().contains(says), "{}", ran.all());
        if more[0] == "-o" {
            assert!(lock(&ran.json(), "done-1")["untested"].is_string(), "{}", ran.all());
        }
    }
    server.put("idem:done-1", LOCK);
    let ran = server.idemctl(&words(&ask, &["-o", "json"])).exits(0);
    assert!(lock(&ran.json(), "done-1")["untested"].is_null(), "{}", ran.all());
    assert!(!ran.stderr.contains("Not tested"), "{}", ran.all());
}

/// Rule: nobody is asked about a table that was not shown.
#[test]
fn with_json_the_table_is_shown_before_the_question() {
    use crate::support::terminal::{ends, on_terminal, press};
    let server = Server::holding(&[("idem:done-1", LOCK, FOREVER)]);
    let ask = program(server.folder(), BY_KEY);
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().env("HOME", server.folder()).env("IDEMCTL_URL", server.url());
    shell.env("PATH", "/usr/bin:/bin").current_dir(server.folder());
    let line = format!(
        "{} reconcile --schema express --older-than 1m --ask {ask} -o json > report.json",
        crate::support::binary().display()
    );
    let mut session = on_terminal(shell, &["-c", &line]);
    let shown = session.exp_string("[y/N]").unwrap();
    assert!(shown.contains("done-1  express  orphaned "), "{shown}");
    press(&mut session, "", "y\r");
    ends(session).exits(0);
    let report = std::fs::read_to_string(server.folder().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(lock(&report, "done-1")["outcome"], "completed");
}

/// Rule: without a backup nothing is changed, and nothing is extended either.
#[test]
fn a_backup_that_cannot_be_opened_stops_everything_first() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), &format!("touch asked\n{BY_KEY}"));
    // A file where a folder is needed.
    let file = server.folder().join("ask/backup.jsonl").display().to_string();
    let more = ["--lock-ttl", "5m", "--backup", &file];
    server.idemctl(&words(&ask, &more)).exits(2).says("backup.jsonl");
    assert!(pttl(&server, "idem:done-1") <= 60_000);
    assert!(!server.folder().join("asked").exists());
}

/// Rule: a backup that cannot be written while locks are changed stops the changes, and every lock is
/// told.
#[test]
fn a_backup_that_cannot_be_written_stops_the_changes() {
    let server = Server::start();
    for index in 0..20 {
        server.put(&format!("idem:done-{index:02}"), LOCK);
    }
    let ask = program(server.folder(), BY_KEY);
    let mut command = server.command();
    command.args(words(&ask, &["-o", "json"]));
    // A file of the run may have this many blocks of 512 bytes.
    let ran = crate::support::bounded(&command, "ulimit -f 8");
    assert_ne!(ran.code, 0, "{}", ran.all());
    let report = ran.json();
    let mut completed = 0;
    for index in 0..20 {
        let key = format!("done-{index:02}");
        let is_stored = server.get(&format!("idem:{key}")).unwrap() != LOCK.as_bytes();
        completed += usize::from(is_stored);
        let outcome = lock(&report, &key)["outcome"].as_str().unwrap();
        assert_eq!(outcome == "completed", is_stored, "{key}: {}", ran.all());
    }
    assert_eq!(report["completed"], completed, "{}", ran.all());
    assert!((1..20).contains(&completed), "{}", ran.all());
}

/// Rule: a lock that changes between the comparison and the step stays as it is.
#[test]
fn a_lock_that_changes_at_the_last_moment_stays() {
    let server = Server::holding(&[("idem:done-1", LOCK, FOREVER)]);
    let ask = program(server.folder(), BY_KEY);
    let socket = sends_at(&server, "EXEC", &["PEXPIRE", "idem:done-1", "50000"]);
    let ran = server.through(&socket, &words(&ask, &["-o", "json"])).exits(3);
    assert_eq!(lock(&ran.json(), "done-1")["outcome"], "changed", "{}", ran.all());
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    assert!(logged(&server, "done-1").is_empty());
}

/// Rule: printed command lines repeat the options of the server, and quote keys.
#[test]
fn printed_commands_lead_back() {
    let answer = r#"{"outcome":"done","status":500,"headers":{},"body":1}"#;
    let server = Server::holding(&[("idem:done 'a'", LOCK, FOREVER)]);
    let ask = program(server.folder(), &format!("echo '{answer}'"));
    let ran = server.idemctl(&words(&ask, &[])).exits(3);
    ran.says(format!("`idemctl -s {} release", server.socket().display()));
    assert!(says(ran.stderr.as_bytes(), "release"));
}

/// Rule: a lock whose extension the required replicas did not confirm is not held, so it is not asked
/// about, and the table says so. Revert: if `take_extension` ignores the replicas, it is completed.
#[test]
fn a_lock_whose_extension_no_replica_has_is_left() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000), ("idem:done-2", LOCK, FOREVER)]);
    let ask = program(server.folder(), &format!("echo \"$question\" >> asked\n{BY_KEY}"));
    let more = ["--lock-ttl", "5m", "--wait-replicas", "1", "--wait-timeout", "100ms"];
    let ran = server.idemctl(&words(&ask, &more)).exits(3);
    ran.shows("left: its extension was done at").shows("only 0 of 1 replicas confirmed it");
    ran.says("completed 1, released 0, left 1");
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
    assert!(pttl(&server, "idem:done-1") <= 60_000);
    let asked = std::fs::read_to_string(server.folder().join("asked")).unwrap();
    assert!(asked.contains("done-2") && !asked.contains("done-1"), "{asked}");
}

/// Rule: the same if the reply to the extension was lost, because nobody knows which replicas have it.
#[test]
fn an_extension_whose_reply_was_lost_counts_as_on_no_replica() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), &format!("touch asked\n{BY_KEY}"));
    let socket = breaks_at(&server, "EXEC", true);
    let more = ["--lock-ttl", "5m", "--wait-replicas", "1", "--wait-timeout", "100ms"];
    let ran = server.through(&socket, &words(&ask, &more));
    ran.shows("its reply was lost, so it is unknown which replicas have it");
    assert_eq!(ran.code, 3, "{}", ran.all());
    assert!(!server.folder().join("asked").exists());
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
}

/// Rule: a run that ends early still says that the replicas do not have its changes.
#[test]
fn a_run_that_ends_early_tells_of_the_replicas() {
    use crate::support::terminal::{answered, on_terminal};
    let server = Server::holding(&[("idem:unclear", LOCK, 60_000), ("idem:done-2", LOCK, FOREVER)]);
    let ask = program(server.folder(), BY_KEY);
    let more = ["--lock-ttl", "5m", "--wait-replicas", "1", "--wait-timeout", "100ms"];
    let all = words(&ask, &more);
    let all: Vec<_> = all.into_iter().filter(|word| *word != "--yes").collect();
    let ran = answered(on_terminal(server.command(), &all), "[y/N]", "n\r").exits(2);
    ran.shows("a change was done at").shows("only 0 of 1 replicas");
}

/// Rule: of a step whose outcome is unknown, nobody knows whether the extended lock still holds, and
/// the hint does not ask for a server that was named.
#[test]
fn after_an_unknown_outcome_the_lock_only_may_hold() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), BY_KEY);
    let executed = std::sync::atomic::AtomicUsize::new(0);
    let socket = hooked_socket(&server, move |sent| {
        use std::sync::atomic::Ordering::SeqCst;
        if executed.load(SeqCst) >= 2 {
            return Hook::Cut;
        }
        // The first transaction extends, the second completes.
        if says(sent, "EXEC") && executed.fetch_add(1, SeqCst) == 1 {
            return Hook::Lose;
        }
        Hook::Pass
    });
    let ran = server.through(&socket, &words(&ask, &["--lock-ttl", "5m"]));
    assert_eq!(ran.code, 7, "{}", ran.all());
    ran.says("outcome unknown").says("extended until");
    assert!(!ran.all().contains("name the server"), "{}", ran.all());
}

/// Rule: a table in a file is also shown to the operator who is asked about it.
#[test]
fn a_table_in_a_file_is_shown_before_the_question() {
    use crate::support::terminal::{ends, on_terminal, press};
    let server = Server::holding(&[("idem:done-1", LOCK, FOREVER)]);
    let ask = program(server.folder(), BY_KEY);
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().env("HOME", server.folder()).env("IDEMCTL_URL", server.url());
    shell.env("PATH", "/usr/bin:/bin").current_dir(server.folder());
    let line = format!(
        "{} reconcile --schema express --older-than 1m --ask {ask} > table",
        crate::support::binary().display()
    );
    let mut session = on_terminal(shell, &["-c", &line]);
    let shown = session.exp_string("[y/N]").unwrap();
    assert!(shown.contains("done-1  express  orphaned "), "{shown}");
    press(&mut session, "", "y\r");
    ends(session).exits(0);
    let table = std::fs::read_to_string(server.folder().join("table")).unwrap();
    assert!(table.contains("done-1  express"), "{table}");
}
