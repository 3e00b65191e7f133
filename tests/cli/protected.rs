//! What a read-only or a protected context keeps from every command that changes records.

use crate::support::{Home, LOCK, Runs, Server, free_port, idemctl, program};

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// Every command that changes records, on what [`seeded`] puts there.
const CHANGES: [&[&str]; 10] = [
    &["force-unlock", "stuck", "--schema", "express"],
    &["begin", "new", "--schema", "express"],
    &["complete", "stuck", "--schema", "express", "--status", "201", "--body", "ok"],
    &["release", "stuck", "--schema", "express"],
    &["extend", "held", "--schema", "express", "--for", "9h"],
    &["sweep", "--orphaned", "--grace", "0s"],
    &["purge", "--all"],
    &["apply", "plan"],
    &["restore", "backup"],
    &["undo"],
];

const READ_ONLY: &str = "read_only = true";
const PROTECTED: &str = "protected = true";

/// A lock without expiry, a result and the plan to remove it, and a backup of a lock that is gone.
fn seeded() -> Server {
    let server = Server::holding(&[("idem:gone", LOCK, 1_000_000)]);
    server
        .idemctl(&["force-unlock", "gone", "--schema", "express", "--yes", "--backup", "backup"])
        .exits(0);
    server.put("idem:stuck", LOCK);
    server.set("idem:held", LOCK, 1_000_000);
    server.set("idem:done", DONE, 1_000_000);
    server.idemctl(&["purge", "--all", "--plan", "plan"]).exits(0);
    server
}

/// Each Redis key with its value, and whether the key lives longer than anything of [`seeded`] does.
fn contents(server: &Server) -> Vec<(String, Option<Vec<u8>>, bool)> {
    let is_extended = |key: &str| server.send::<i64>(&[b"PTTL", key.as_bytes()]) > 7_200_000;
    server
        .keys()
        .into_iter()
        .map(|key| (key.clone(), server.get(&key), is_extended(&key)))
        .collect()
}

#[test]
fn a_read_only_context_opens_no_door_to_a_change() {
    let server = seeded();
    let before = contents(&server);
    let run = |words: &[&str]| server.in_context("audit", READ_ONLY, words);
    let says = "context `audit` is read-only; it allows no changes";
    for words in CHANGES {
        for consent in [&["--yes"][..], &["--yes", "--confirm", "audit"]] {
            run(&[words, consent].concat()).exits(2).says(says);
        }
        run(&[words, &["--dry-run"]].concat()).exits(0);
    }
    for words in [&["race", "--rounds", "1"][..], &["simulate", "first-then-retry"]] {
        run(words).exits(2).says(says);
    }
    run(&["list"]).exits(0);
    run(&["sweep", "--orphaned", "--dry-run"]).exits(0);
    run(&["release", "nowhere", "--schema", "event-consumer", "--yes"]).exits(1);
    assert_eq!(contents(&server), before);
}

#[test]
fn a_throw_away_server_may_be_changed_whatever_the_default_context_says() {
    let home = Home::with(
        "default_context = \"audit\"\n[contexts.audit]\nread_only = true\nprotected = true\n",
    );
    let path = program().parent().unwrap().display().to_string();
    let words = ["--sandbox", "race", "--rounds", "1", "--schema", "express"];
    home.run_with(&[("PATH", &path)], &words).exits(0).shows("no violation in ");
}

/// Rule: a change through a protected context takes the name of the context, and nothing else will do.
#[test]
fn a_protected_context_wants_its_own_name() {
    for words in CHANGES {
        let server = seeded();
        let before = contents(&server);
        let address = format!("{}/0", server.socket().display());
        for more in [
            &["--yes"][..],
            &["--yes", "--confirm", "dev"],
            &["--confirm", "dev"],
            &["--confirm", &address],
        ] {
            server.in_context("prod", PROTECTED, &[words, more].concat()).exits(2);
        }
        server.in_context("prod", PROTECTED, &[words, &["--dry-run"]].concat()).exits(0);
        server.in_context("dev", "", &[words, &["--confirm", "prod"]].concat()).exits(2);
        assert_eq!(contents(&server), before, "{words:?}");
        server.in_context("prod", PROTECTED, &[words, &["--confirm", "prod"]].concat()).exits(0);
        assert_ne!(contents(&server), before, "{words:?}");
    }
}

#[test]
fn the_name_of_any_context_confirms_a_purge_through_it() {
    let server = seeded();
    server.in_context("dev", "", &["purge", "--all", "--confirm", "dev"]).exits(0);
    assert_eq!(server.get("idem:done"), None);
}

/// Rule: a server is one however its host is written: by an old spelling of its number, or by a name that is looked up.
#[test]
fn a_protected_server_is_known_by_each_spelling_of_its_host() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind * -::*", "protected-mode no"]);
    server.set("idem:done", DONE, 1_000_000);
    let own_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for (host, others) in [
        (
            "127.0.0.1",
            &[
                "127.1",
                "0",
                "2130706433",
                "127.0.0.01",
                "0x7f.1",
                "::1",
                "localhost",
                own_name.as_str(),
            ][..],
        ),
        ("localhost", &["127.0.0.1", "127.1", own_name.as_str()]),
        (own_name.as_str(), &["127.0.0.1", "127.1", "localhost"]),
    ] {
        for (kept, says) in [(PROTECTED, "--confirm"), (READ_ONLY, "is read-only")] {
            let config = server.folder().join("prod.toml");
            let url = format!("redis://{host}:{port}");
            std::fs::write(&config, format!("[contexts.prod]\nurl = \"{url}\"\n{kept}\n")).unwrap();
            for other in others {
                let words = [
                    "-h",
                    other,
                    "-p",
                    &port.to_string(),
                    "purge",
                    "--all",
                    "--schema",
                    "express",
                    "--yes",
                ];
                let run = idemctl(server.folder()).arg("--config").arg(&config).args(words).run();
                assert_eq!(
                    (run.code, run.stderr.contains(says)),
                    (2, true),
                    "{url}, {other}: {}",
                    run.all()
                );
            }
        }
    }
    assert!(server.get("idem:done").is_some());
}

/// Rule: a context protects its server although its host's name cannot be looked up: nobody knows that it is another server.
#[test]
fn a_context_whose_host_cannot_be_looked_up_keeps_its_protection() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind 127.0.0.1"]);
    let purge = |kept: &str, at: u16, more: &[&str]| {
        server.set("idem:done", DONE, 1_000_000);
        let url = format!("redis://no-such-host.invalid:{at}");
        let config = server.folder().join("prod.toml");
        std::fs::write(&config, format!("[contexts.prod]\nurl = \"{url}\"\n{kept}\n")).unwrap();
        let words = ["-h", "127.0.0.1", "-p", &port.to_string(), "purge", "--all", "--yes"];
        let mut command = idemctl(server.folder());
        command
            .arg("--config")
            .arg(&config)
            .args(words)
            .args(["--schema", "express"])
            .args(more)
            .run()
    };
    for (kept, says) in [(PROTECTED, "pass --confirm prod"), (READ_ONLY, "is read-only")] {
        let run = purge(kept, port, &[]).exits(2);
        run.says(says).says("the protection of context `prod` applies");
        assert!(server.get("idem:done").is_some());
        // At another port it is another server, whatever the name leads to.
        purge(kept, port + 1, &[]).exits(0);
    }
    purge(PROTECTED, port, &["--confirm", "prod"]).exits(0);
    assert!(server.get("idem:done").is_none());
}

/// A read-only context and one for changes, with the same server.
fn with_two_contexts() -> Server {
    let server = seeded();
    let url = server.url();
    server.configure(&format!(
        "[contexts.ro]\nurl = \"{url}\"\n{READ_ONLY}\n[contexts.prod]\nurl = \"{url}\"\n{PROTECTED}\n"
    ));
    server
}

/// Rule: a context that is named decides alone whether it is read-only. Without a name, one
/// read-only context is enough, and any protected context protects all. Revert: without `is_named`.
#[test]
fn a_named_context_is_not_read_only_because_of_another() {
    let server = with_two_contexts();
    let unlock = ["force-unlock", "held", "--schema", "express"];
    let by = |place: &[&str], more: &[&str]| server.unnamed(&[place, &unlock, more].concat());
    let socket = server.socket().display().to_string();
    for words in [&["-s", socket.as_str()][..], &["--context", "ro"]] {
        by(words, &["--yes", "--confirm", "prod"])
            .exits(2)
            .says("read-only")
            .says("pass --context prod");
    }
    for words in [&["-s", socket.as_str()][..], &["--context", "ro"]] {
        let run = by(words, &["--dry-run"]).exits(0);
        assert!(!run.all().contains("For scripts"), "{}", run.all());
    }
    assert_eq!(server.get("idem:held").unwrap(), LOCK.as_bytes());
    by(&["--context", "prod"], &["--yes"]).exits(2).says("--confirm prod");
    by(&["--context", "prod"], &["--dry-run"]).exits(0).says("--confirm prod");
    by(&["--context", "prod"], &["--confirm", "prod"]).exits(0);
    assert_eq!(server.get("idem:held"), None);
    let note = "the server of context ro is read-only, unless you pass --context prod";
    for words in [&["list"][..], &["test", "prod"], &["set", "prod", "--timeout", "4s"]] {
        server.unnamed(&[&["context"], words].concat()).exits(0).says(note);
    }
}

/// Rule: protection does not end by an option alone.
#[test]
fn the_protection_of_a_context_ends_only_by_its_name() {
    let server = with_two_contexts();
    for (name, less) in [("ro", "--read-only=false"), ("prod", "--protected=false")] {
        let set =
            |words: &[&str]| server.unnamed(&[&["context", "set", name, less], words].concat());
        set(&["--yes"]).exits(2).says(format!("pass --confirm {name}"));
        set(&["--yes", "--confirm", "other"]).exits(2).says("nothing was written");
        set(&["--confirm", name]).exits(0);
        set(&["--yes"]).exits(0).says("has these settings already");
    }
}
