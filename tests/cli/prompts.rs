//! What is asked on a terminal, from the outside: a terminal of the test's own, keys pressed as a person does.

use crate::support::terminal::{answered, ends, on_terminal, press, send_signal};
use crate::support::{DONE, FOREVER, LOCK, PENDING, Runs, Server, Signal, binary, idemctl};

/// A result, and a lock that never expires.
fn seeded() -> Server {
    Server::holding(&[
        ("idempotency:done", DONE, 3_600_000),
        ("idempotency:stuck", PENDING, FOREVER),
    ])
}

fn is_there(server: &Server, key: &str) -> bool {
    server.get(key).is_some()
}

#[test]
fn a_purge_goes_ahead_when_the_servers_name_is_typed_and_only_then() {
    let server = seeded();
    let name = format!("{}/0", server.socket().display());
    let purge = || on_terminal(server.command(), &["purge", "--all"]);
    for typed in ["\r", "\x04"] {
        answered(purge(), "to continue", typed)
            .exits(2)
            .shows("not confirmed; nothing was changed");
    }
    for typed in ["y", "yes", "localhost"] {
        let mut session = purge();
        press(&mut session, "to continue", &format!("{typed}\r"));
        session.exp_string(&format!("You typed `{typed}`.")).unwrap();
        answered(session, "to continue", "\r").exits(2).shows("not confirmed; nothing was changed");
    }
    assert!(is_there(&server, "idempotency:done"));
    let run = answered(purge(), "Purge 1 record?", &format!("{name}\r")).exits(0);
    run.shows("1 of 1 record purged; backup: ");
    assert!(!is_there(&server, "idempotency:done"));
}

#[test]
fn a_lock_is_released_on_yes_and_stays_on_no() {
    for words in [&["sweep", "--orphaned", "--grace", "0"][..], &["force-unlock", "stuck"]] {
        let server = seeded();
        // Ctrl-D is no, also behind a bare `y`: only Enter answers.
        for no in ["n\r", "\r", "\x04", "y\x04\x04"] {
            answered(on_terminal(server.command(), words), "[y/N]", no).exits(2);
        }
        assert!(is_there(&server, "idempotency:stuck"));
        answered(on_terminal(server.command(), words), "[y/N]", "y\r").exits(0);
        assert!(!is_there(&server, "idempotency:stuck"));
    }
}

/// Rule: what carries the keys does not take the question away.
#[test]
fn keys_on_stdin_are_asked_about_on_the_terminal() {
    let server = seeded();
    server.put("idempotency:other", PENDING);
    for (typed, code) in [("n\r", 2), ("\x03", 130), ("y\r", 0)] {
        let mut shell = std::process::Command::new("sh");
        shell.env_clear().env("HOME", server.folder()).env("IDEMCTL_URL", server.url());
        let line = format!("printf 'stuck\\nother\\n' | {} force-unlock -", binary().display());
        answered(on_terminal(shell, &["-c", &line]), "Remove 2 locks?", typed).exits(code);
        assert_eq!(
            is_there(&server, "idempotency:stuck") && is_there(&server, "idempotency:other"),
            code != 0
        );
    }
}

/// Rule: what was typed before the question is no answer.
#[test]
fn an_answer_before_the_question_is_none() {
    let server = seeded();
    let mut session = on_terminal(server.command(), &["sweep", "--orphaned", "--grace", "1s"]);
    session.send("y\r").unwrap();
    session.flush().unwrap();
    answered(session, "[y/N]", "n\r").exits(2);
    assert!(is_there(&server, "idempotency:stuck"));
}

#[test]
fn ctrl_c_at_a_question_changes_nothing_and_leaves_the_cursor_visible() {
    let server = seeded();
    for words in [&["purge", "--all"][..], &["sweep", "--orphaned"], &["force-unlock", "stuck"]] {
        let run = answered(on_terminal(server.command(), words), "(/", "\x03").exits(130);
        let shown = run.shows("nothing was changed").text();
        let (hidden, visible) = (shown.rfind("\x1b[?25l"), shown.rfind("\x1b[?25h"));
        assert!(visible >= hidden, "{words:?}: {shown:?}");
    }
    assert!(is_there(&server, "idempotency:done") && is_there(&server, "idempotency:stuck"));
}

/// Rule: a signal ends a question at once, as Ctrl-C does. Revert: if the prompt does not wait for the
/// signals as well, the first three hang until a key is pressed, and others are killed.
#[test]
fn a_signal_at_a_question_ends_it_at_once() {
    let server = seeded();
    for words in [
        &["purge", "--all"][..],
        &["sweep", "--orphaned"],
        &["force-unlock", "stuck"],
        &["begin", "new", "--schema", "go-middleware"],
    ] {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
            let mut session = on_terminal(server.command(), words);
            session.exp_string("(/").unwrap();
            // Part of the question was read; the rest follows before the prompt waits.
            std::thread::sleep(std::time::Duration::from_millis(300));
            send_signal(&mut session, signal);
            ends(session).exits(130).shows("nothing was changed");
        }
    }
    assert!(is_there(&server, "idempotency:done") && is_there(&server, "idempotency:stuck"));
    // The terminal is as before, so that Ctrl-C works in the shell.
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().env("HOME", server.folder()).env("IDEMCTL_URL", server.url());
    shell.env("PATH", "/usr/bin:/bin").current_dir(server.folder());
    let line = format!("sh -c 'echo $$ > pid; exec {} purge --all'; stty -a", binary().display());
    let mut session = on_terminal(shell, &["-c", &line]);
    session.exp_string("(/").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = std::fs::read_to_string(server.folder().join("pid")).unwrap();
    crate::support::signal(pid.trim().parse().unwrap(), Signal::TERM);
    ends(session).shows("intr = ^C");
}

/// The server as the protected context `prod`, whose name is red; its config file.
fn protected(server: &Server) -> String {
    let config = server.folder().join("config.toml");
    let says = format!("url = \"{}\"\nprotected = true\ncolor = \"red\"", server.url());
    std::fs::write(&config, format!("default_context = \"prod\"\n[contexts.prod]\n{says}\n"))
        .unwrap();
    config.display().to_string()
}

#[test]
fn the_name_of_a_protected_context_stands_in_every_question_and_has_to_be_typed() {
    let server = seeded();
    let config = protected(&server);
    let on = |words: &[&str]| {
        on_terminal(idemctl(server.folder()), &[&["--config", &config], words].concat())
    };
    let backup = server.folder().join("backup.jsonl").display().to_string();
    server.set("idempotency:gone", DONE, 3_600_000);
    server.set("idem:held", LOCK, 30_000);
    server.idemctl(&["purge", "--match", "gone", "--all", "--yes", "--backup", &backup]).exits(0);
    let step = ["--schema", "go-middleware"];
    for words in [
        &["force-unlock", "stuck"][..],
        &["sweep", "--orphaned", "--grace", "0"],
        &["purge", "--all"],
        &["restore", &backup],
        &["begin", "new", step[0], step[1]],
        &["complete", "stuck", step[0], step[1], "--status", "201", "--body", ""],
        &["release", "held", "--schema", "express"],
    ] {
        for (yes, typed) in [(&[][..], "y"), (&["--yes"], ""), (&[], "staging")] {
            let mut session = on(&[words, yes].concat());
            // In its colour, on a line before anything else, and in the question.
            session.exp_string("\x1b[1m\x1b[31mprod\x1b[0m at ").unwrap();
            if !typed.is_empty() {
                press(&mut session, "Type `prod` to continue", &format!("{typed}\r"));
                session.exp_string(&format!("You typed `{typed}`.")).unwrap();
            }
            let run = answered(session, "Type `prod` to continue", "\r").exits(2);
            run.shows("not confirmed; nothing was changed");
        }
    }
    assert!(is_there(&server, "idempotency:stuck") && is_there(&server, "idempotency:done"));
    assert!(!is_there(&server, "idempotency:new") && !is_there(&server, "idempotency:gone"));
    answered(on(&["force-unlock", "stuck"]), "Type `prod` to continue", "prod\r").exits(0);
    assert!(!is_there(&server, "idempotency:stuck"));
}

/// Rule: who types `y` out of habit is asked again, three times at most.
#[test]
fn a_name_is_asked_for_again() {
    let server = seeded();
    let config = protected(&server);
    let unlock =
        || on_terminal(idemctl(server.folder()), &["--config", &config, "force-unlock", "stuck"]);
    let mut session = unlock();
    for typed in ["y\r", "yes\r"] {
        press(&mut session, "Type `prod` to continue", typed);
    }
    answered(session, "Type `prod` to continue", "Y\r")
        .exits(2)
        .shows("not confirmed; nothing was changed");
    assert!(is_there(&server, "idempotency:stuck"));
    let mut session = unlock();
    press(&mut session, "Type `prod` to continue", "y\r");
    session.exp_string("You typed `y`.").unwrap();
    answered(session, "or press Enter to stop", "prod\r").exits(0);
    assert!(!is_there(&server, "idempotency:stuck"));
}

/// Rule: a hint names what would have worked, and no option that nobody gave.
#[test]
fn without_a_terminal_the_hint_fits_the_question() {
    let server = seeded();
    let config = protected(&server);
    let run = idemctl(server.folder())
        .args(["--config", &config, "force-unlock", "stuck"])
        .run()
        .exits(2);
    run.says("context `prod` is protected: cannot prompt").says("pass --confirm prod");
    assert!(!run.stderr.contains("--yes"), "{}", run.all());
    let run = idemctl(server.folder())
        .args(["--config", &config, "force-unlock", "stuck", "--yes"])
        .run()
        .exits(2);
    run.says("--yes is not enough").says("pass --confirm prod");
    let run = server.idemctl(&["--askpass", "inspect", "stuck"]).exits(2);
    run.says("cannot prompt without a terminal").says("--pass-file FILE or REDISCLI_AUTH");
    assert!(!run.stderr.contains("--yes"), "{}", run.all());
}

#[test]
fn an_owner_and_a_password_are_asked_for_with_the_contexts_name() {
    let server = seeded();
    let config = protected(&server);
    server.set("idem:started:held", "6f1c", 20_000);
    let on = |words: &[&str]| {
        on_terminal(idemctl(server.folder()), &[&["--config", &config], words].concat())
    };
    let mut session =
        on(&["complete", "held", "--schema", "event-driven", "--status", "201", "--body", ""]);
    session.exp_string("prod").unwrap();
    answered(session, "Type the owner's ID to continue", "\r").exits(2);
    server.send::<()>(&[b"CONFIG", b"SET", b"requirepass", b"s3cret"]);
    let mut session = on(&["--askpass", "list"]);
    session.exp_string("Password for ").unwrap();
    let run = answered(session, "prod", "s3cret\r").exits(0);
    assert!(!run.text().contains("s3cret"), "{}", run.all());
}
