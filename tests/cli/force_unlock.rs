//! `idemctl force-unlock` from the outside.

use std::fs;

use crate::support::proxy::sends_at;
use crate::support::{FOREVER, LOCK, PENDING, Runs as _, Server};

#[test]
fn removes_a_stuck_lock_backs_it_up_and_audits() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, FOREVER)]);
    server
        .idemctl(&["force-unlock", "order-1", "--yes", "--reason", "INC-7"])
        .exits(0)
        .says("Read back: the lock is gone.");
    assert_eq!(server.get("idempotency:order-1"), None);
    let entry = server.audited().remove(0);
    let noted = ["command", "who", "key", "reason"].map(|field| entry[field].as_str().unwrap());
    assert_eq!(noted, ["force-unlock", "tester", "order-1", "INC-7"]);
    let backup = fs::read_to_string(entry["backup"].as_str().unwrap()).unwrap();
    let saved: serde_json::Value = serde_json::from_str(backup.lines().nth(1).unwrap()).unwrap();
    restore(&server, &saved["keys"][0]);
    assert_eq!(server.get("idempotency:order-1").unwrap(), PENDING.as_bytes());
}

fn restore(server: &Server, saved: &serde_json::Value) {
    use base64::Engine as _;
    let bytes = |field: &str| {
        base64::engine::general_purpose::STANDARD.decode(saved[field].as_str().unwrap()).unwrap()
    };
    server.send::<()>(&[b"RESTORE", &bytes("redis_key_base64"), b"0", &bytes("dump_base64")]);
}

#[test]
fn explains_before_it_asks_and_refuses_without_a_terminal() {
    let server = Server::holding(&[("idem:started:pay-1", "worker-7", 7_230_000)]);
    let run = server
        .idemctl(&["force-unlock", "pay-1", "--schema", "event-driven", "--lock-ttl", "4h"])
        .exits(2);
    insta::assert_snapshot!(run.stable(&server));
    assert!(server.get("idem:started:pay-1").is_some());
}

#[test]
fn says_who_overwrites_and_who_is_fenced_off() {
    let server = Server::holding(&[("idem:started:a", "w", 20_000), ("idem:a", LOCK, 20_000)]);
    server.set("idempotency:a", PENDING, 20_000);
    let says = |schema: &str| {
        server.idemctl(&["force-unlock", "a", "--dry-run", "--schema", schema]).exits(0).stderr
    };
    assert!(says("event-driven").contains("can no longer store a result"));
    assert!(says("express").contains("The worker may still store its result"));
    assert!(says("go-middleware").contains("The worker may still store its result"));
}

/// Rule: the record shows whose worker may still run if its value says so, and the warning follows.
#[test]
fn says_whose_worker_may_still_run() {
    let server = Server::holding(&[
        ("own:a", r#"{"by":"w"}"#, 60_000),
        ("own:b", r#"{"by":""}"#, 60_000),
        ("own:c", r#"{"by""#, 60_000),
        ("idem:d", LOCK, 60_000),
    ]);
    let owned = "format = 2\nname = \"owned\"\nkeys = { record = \"own:{key}\" }\n\
        ttl = { lock = \"30s\", result = \"24h\" }\n[[value]]\nname = \"held\"\n\
        required = [\"/by\"]\nstate = \"in-progress\"\nfields = { owner = \"/by\" }\n";
    server.describe("owned", &[("schema.toml", owned)]);
    for (key, schema, whose) in [
        ("a", "owned", "Owner         w\n"),
        ("b", "owned", "Owner"),
        ("c", "owned", "unreadable"),
        ("d", "express", "Owner         unknown, because this schema stores no owner"),
    ] {
        server
            .idemctl(&["force-unlock", key, "--dry-run", "--schema", schema])
            .exits(0)
            .shows(whose)
            .says("if its worker is still running, the operation executes twice");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 20_000)]);
    server.idemctl(&["force-unlock", "order-1", "--yes", "--dry-run"]).exits(0);
    assert!(server.get("idempotency:order-1").is_some());
    assert!(!server.folder().join(".local/state/idemctl").exists());
}

#[test]
fn refuses_what_is_not_a_lock() {
    let server = Server::start();
    server.set(
        "idempotency:done",
        r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#,
        20_000,
    );
    server.send::<()>(&[b"HSET", b"idempotency:hash", b"f", b"v"]);
    server.idemctl(&["force-unlock", "done", "--yes"]).exits(2);
    server.idemctl(&["force-unlock", "hash", "--yes"]).exits(2);
    server.idemctl(&["force-unlock", "nowhere", "--yes"]).exits(1);
    assert_eq!(server.size(), 2);
}

#[test]
fn expectations_are_kept() {
    let server = Server::holding(&[("idem:started:a", "worker-7", 20_000)]);
    let hash = "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9";
    server.idemctl(&["force-unlock", "a", "--yes", "--expect", "worker-8"]).exits(8);
    server
        .idemctl(&["force-unlock", "a", "--yes", "--expect", &format!("sha256:{hash}@none")])
        .exits(8);
    server.idemctl(&["force-unlock", "a", "--yes", "--expect", "sha256:zz"]).exits(2);
    assert!(server.get("idem:started:a").is_some());
    server.idemctl(&["force-unlock", "a", "--yes", "--expect", "worker-7"]).exits(0);
    server.put("idempotency:zero", "0");
    let zero = ["force-unlock", "zero", "--yes", "--schema", "go-middleware", "--expect"];
    server.idemctl(&[&zero[..], &[&format!("sha256:{hash}@none")]].concat()).exits(0);
    assert_eq!(server.size(), 0);
}

#[test]
fn a_leftover_lock_goes_and_the_result_stays() {
    let server = Server::holding(&[("idem:lock:m", "1", 20_000), ("idem:done:m", "1", 20_000)]);
    server.idemctl(&["force-unlock", "m", "--yes"]).exits(0);
    assert_eq!(server.get("idem:lock:m"), None);
    assert!(server.get("idem:done:m").is_some());
}

#[test]
fn nothing_is_removed_when_it_cannot_be_backed_up() {
    let server = Server::holding(&[("idempotency:order-1", PENDING, 20_000)]);
    let existing = server.folder().join("exists");
    fs::write(&existing, "mine").unwrap();
    for backup in [existing.to_str().unwrap(), "/dev/full/backup"] {
        server
            .idemctl(&["force-unlock", "order-1", "--yes", "--backup", backup])
            .exits(2)
            .says("nothing was changed");
    }
    assert_eq!(fs::read(&existing).unwrap(), b"mine");
    assert!(server.get("idempotency:order-1").is_some());
}

#[test]
fn a_script_that_names_another_place_does_not_go_ahead() {
    let server = Server::holding(&[("idempotency:a", PENDING, 60_000)]);
    let run = server.idemctl(&["force-unlock", "a", "--yes", "--confirm", "prod"]).exits(2);
    run.says("not confirmed").says("hint: --confirm must be `");
    assert!(server.get("idempotency:a").is_some());
    let name = format!("{}/0", server.socket().display());
    server.idemctl(&["force-unlock", "a", "--yes", "--confirm", &name]).exits(0);
}

/// Rule: several locks go after one question, with one backup, and each that stays is named.
#[test]
fn several_locks_go_at_once_and_the_others_are_named() {
    let server =
        Server::filled(["a", "b", "c"].map(|key| (format!("idempotency:{key}"), PENDING)), FOREVER);
    server.set(
        "idempotency:done",
        r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#,
        20_000,
    );
    let keys = b"a\nb\nnowhere\ndone\na\n";
    let shown = server.idemctl_fed(&["force-unlock", "-", "--dry-run"], keys).exits(3);
    shown.shows("nowhere  -").says("2 of 4 locks were not unlocked");
    assert_eq!(server.size(), 4);
    server.idemctl(&["force-unlock", "a", "b"]).exits(2).says("cannot prompt without a terminal");
    server
        .idemctl(&["force-unlock", "a", "b", "--yes", "--expect", "x"])
        .exits(2)
        .says("--expect needs exactly one key");
    let run = server
        .idemctl_fed(&["force-unlock", "--key-file", "-", "--yes", "-o", "json"], keys)
        .exits(3);
    let report = run.json();
    let outcomes: Vec<_> =
        report["locks"].as_array().unwrap().iter().map(|lock| lock["outcome"].clone()).collect();
    assert_eq!(outcomes, ["unlocked", "unlocked", "not-found", "refused"], "{report}");
    assert_eq!(server.keys(), ["idempotency:c", "idempotency:done"]);
    let noted = server.audited();
    let backups: Vec<_> = noted.iter().map(|entry| &entry["backup"]).collect();
    assert_eq!(backups, [&report["backup"], &report["backup"]]);
    server.idemctl(&["restore", report["backup"].as_str().unwrap(), "--yes"]).exits(0);
    assert_eq!(server.size(), 4);
}

/// Rule: of several locks, each goes only if it is the one that was shown.
#[test]
fn of_several_locks_one_that_was_taken_anew_stays() {
    let server =
        Server::holding(&[("idempotency:a", PENDING, 20_000), ("idempotency:b", PENDING, 20_000)]);
    let anew = ["SET", "idempotency:a", PENDING, "PX", "15000"];
    let way = sends_at(&server, "idempotency:b\r\n$20\r\n{\"status\"", &anew);
    let run = server.through(&way, &["force-unlock", "a", "b", "--yes"]).exits(3);
    run.says("a: it changed since it was shown; nothing was done").says("Unlocked 1 lock");
    assert_eq!(server.keys(), ["idempotency:a"]);
}

/// Rule: where no log can be written nothing is changed, unless the operator goes on without a backup.
#[test]
fn a_home_that_cannot_be_written_is_told_with_the_way_out() {
    let server = Server::holding(&[("idempotency:k", PENDING, FOREVER)]);
    for home in ["/proc/nowhere", ""] {
        let unlock = |more: &[&str]| {
            let words = [&["force-unlock", "k", "--yes"], more].concat();
            server.command().env("HOME", home).args(words).run()
        };
        unlock(&[])
            .exits(2)
            .says("set XDG_STATE_HOME to another folder")
            .says("continue without both with --no-backup");
        assert!(server.get("idempotency:k").is_some());
        unlock(&["--no-backup"]).exits(0).says("the audit log will not contain this change");
        assert_eq!(server.get("idempotency:k"), None);
        server.put("idempotency:k", PENDING);
    }
}
