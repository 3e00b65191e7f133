//! A service's step done by hand is made against exactly what was shown, or not at all; and what became of it is told.

use std::time::Duration;

use crate::support::library::Library;
use crate::support::{PENDING, Server, proxy};
use idemctl::domain::record::observation::{Content, Observation};
use idemctl::store::{GuardedOutcome, StepLock};

const COMPLETE: [&str; 9] =
    ["complete", "k", "--schema", "go-middleware", "--yes", "--status", "201", "--body", "paid"];

fn audited(server: &Server) -> Vec<String> {
    server.audited().iter().map(|line| line["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_record_that_changes_at_any_moment_before_is_left_alone() {
    let other = &["SET", "idempotency:k", "other", "PX", "9000"][..];
    let anew = &["SET", "idempotency:k", PENDING, "PX", "300000"][..];
    let persisted = &["PERSIST", "idempotency:k"][..];
    let gone = &["DEL", "idempotency:k"][..];
    let moments = [
        ("WATCH", anew),
        ("WATCH", persisted),
        ("\nGET\r", other),
        ("MULTI", anew),
        ("set_completed", gone),
    ];
    for (moment, now) in
        moments.into_iter().chain([other, anew, persisted, gone].map(|now| ("EXEC", now)))
    {
        let server = Server::holding(&[("idempotency:k", PENDING, 20_000)]);
        let socket = proxy::sends_at(&server, moment, now);
        server.through(&socket, &COMPLETE).exits(8).says("nothing was done");
        let left = server.get("idempotency:k");
        assert_eq!(left.is_none(), now == gone, "{moment}");
        assert!(left.is_none_or(|left| left == b"other" || left == PENDING.as_bytes()), "{moment}");
        assert_eq!(audited(&server), [""; 0]);
        let backups = server.state("backups");
        assert_eq!(std::fs::read_dir(backups).unwrap().count(), 0, "{moment}");
    }
}

#[test]
fn a_lock_that_appears_or_expires_in_between_is_noticed() {
    let create = [&COMPLETE[..], &["--create"]].concat();
    for moment in ["WATCH", "EXEC"] {
        let server = Server::start();
        let socket = proxy::sends_at(&server, moment, &["SET", "idempotency:k", PENDING]);
        server.through(&socket, &create).exits(8);
        assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes(), "{moment}");
        let server = Server::holding(&[("idempotency:k", PENDING, 4_000)]);
        let socket =
            proxy::acts_at(&server, moment, || std::thread::sleep(Duration::from_millis(4_100)));
        // Beside the time that the lock takes to expire, a busy machine takes its own.
        server.through(&socket, &[&COMPLETE[..], &["--timeout", "30s"]].concat()).exits(8);
        assert_eq!(server.get("idempotency:k"), None, "{moment}");
    }
}

#[test]
fn a_lock_beside_a_result_counts_too() {
    let server = Server::holding(&[("idem:lock:k", "1", 20_000)]);
    let socket = proxy::sends_at(&server, "EXEC", &["SET", "idem:done:k", "1"]);
    let words = ["complete", "k", "--schema", "event-consumer", "--yes", "--body", "x"];
    server.through(&socket, &words).exits(8);
    assert_eq!(
        (server.get("idem:done:k").unwrap(), server.get("idem:lock:k").unwrap()),
        (b"1".to_vec(), b"1".to_vec())
    );
}

#[test]
fn a_lost_reply_is_cleared_up_by_reading_back() {
    for (schema, more) in [
        ("go-middleware", &["--status", "201", "--body", "paid"][..]),
        ("event-driven", &["--status", "201", "--body", "paid", "--owner", "w"]),
        ("reference", &["--status", "201", "--body", "paid", "--owner", "w"]),
        ("go-middleware-v1", &[]),
    ] {
        let server = Server::start();
        let owner: &[&str] = if more.contains(&"--owner") { &["--owner", "w"] } else { &[] };
        server.idemctl(&[&["begin", "k", "--schema", schema, "--yes"], owner].concat()).exits(0);
        let socket = proxy::breaks_at(&server, "EXEC", true);
        let words = [&["complete", "k", "--schema", schema, "--yes", "-o", "json"], more].concat();
        let run = server.through(&socket, &words).exits(0);
        run.says("The reply was lost, but reading back shows that the step was executed: stored");
        assert_eq!(
            (&run.json()["outcome"], &run.json()["step"]["reply"]),
            (&"stored".into(), &serde_json::Value::Null)
        );
        // A line for each Redis key of the record, because either may have changed.
        let mut audited = audited(&server);
        let keys = if schema == "event-driven" { 3 } else { 2 };
        assert_eq!(audited.len(), keys, "{schema}: {audited:?}");
        audited.dedup();
        assert_eq!(audited, ["begun", "completed"]);
    }
}

#[test]
fn begin_and_release_are_cleared_up_by_the_owner_and_the_lock() {
    let server = Server::start();
    let socket = proxy::breaks_at(&server, "EXEC", true);
    server.through(&socket, &["begin", "k", "--schema", "event-driven", "--yes"]).exits(0);
    let server = Server::holding(&[("k", r#"{"status":0}"#, 20_000)]);
    let socket = proxy::breaks_at(&server, "EXEC", true);
    server.through(&socket, &["release", "k", "--schema", "go-chi", "--yes"]).exits(0);
    // A lock that names nobody may be anybody's.
    let server = Server::start();
    let socket = proxy::breaks_at(&server, "EXEC", true);
    server
        .through(&socket, &["begin", "k", "--schema", "express", "--yes"])
        .exits(7)
        .says("the begin step for k");
}

#[test]
fn what_nobody_knows_is_outcome_unknown_and_stays_in_the_backup() {
    let server = Server::holding(&[("idempotency:k", PENDING, 20_000)]);
    let socket = proxy::breaks_at(&server, "EXEC", false);
    server.through(&socket, &COMPLETE).exits(7).says("outcome unknown: the complete step for k");
    assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
    assert_eq!(audited(&server), ["outcome-unknown"]);
    let backups = server.state("backups");
    assert_eq!(std::fs::read_dir(backups).unwrap().count(), 1);
}

#[test]
fn a_connection_that_breaks_before_has_done_nothing() {
    for moment in ["WATCH", "MULTI", "set_completed"] {
        let server = Server::holding(&[("idempotency:k", PENDING, 20_000)]);
        let socket = proxy::breaks_at(&server, moment, true);
        server.through(&socket, &COMPLETE).exits(5);
        assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes(), "{moment}");
        assert_eq!(audited(&server), [""; 0], "{moment}");
    }
}

#[test]
fn a_server_that_refuses_has_done_nothing() {
    let server = Server::holding(&[("idempotency:k", PENDING, 20_000)]);
    server.send::<()>(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
    let full = server.idemctl(&[&COMPLETE[..], &["--replace"]].concat());
    assert!(full.code == 6 && full.stderr.contains("OOM"), "{}", full.all());
    server.send::<()>(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
    server.send::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    server.idemctl(&COMPLETE).exits(6);
    server.send::<()>(&[b"REPLICAOF", b"NO", b"ONE"]);
    assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
    assert_eq!(audited(&server), [""; 0]);
}

#[test]
fn each_right_that_is_missing_is_told_and_nothing_is_done() {
    let server = Server::holding(&[("idempotency:k", PENDING, 20_000)]);
    let allow = |rules: &str| server.add_user("some", rules);
    let as_some =
        |words: &[&str]| server.idemctl(&[&["--user", "some", "-a", "pw"], words].concat());
    // From Redis 7.0 on deadlines take no TIME.
    let tells_deadlines =
        redis::cmd("PEXPIRETIME").arg("k").query::<i64>(&mut server.connect()).is_ok();
    for lacking in ["-watch", "-multi", "-exec", "-dump", "-set", "-time"] {
        // What README lists under Least rights.
        allow(
            "reset on >pw ~idem* +@read +@connection +eval +time -@dangerous +watch +multi +exec +set +del +dump",
        );
        allow(lacking);
        if lacking == "-time" && tells_deadlines {
            continue;
        }
        let run = as_some(&COMPLETE).exits(4);
        assert!(run.stderr.contains("denied permission"), "{lacking}: {}", run.all());
    }
    assert_eq!(server.get("idempotency:k").unwrap(), PENDING.as_bytes());
    assert_eq!(audited(&server), [""; 0]);
    allow("+time");
    as_some(&COMPLETE).exits(0);
}

#[test]
fn a_step_that_refuses_the_lock_taken_for_it_leaves_what_was_there() {
    let stored = r#"{"state":"completed","owner":"w","fingerprint":"","created_at":1,"completed_at":2,"response":{"status":200}}"#;
    let server = Server::holding(&[("idemkey:k", stored, 50_000)]);
    // The reference takes no result TTL above 1e9 seconds.
    let words = [
        "complete",
        "k",
        "--schema",
        "reference",
        "--yes",
        "--status",
        "201",
        "--body",
        "",
        "--result-ttl",
        "99y",
    ];
    server
        .idemctl(&[&words[..], &["--replace"]].concat())
        .exits(1)
        .says("refused; nothing was changed");
    assert_eq!(server.get("idemkey:k").unwrap(), stored.as_bytes());
    let left: i64 = server.send(&[b"PTTL", b"idemkey:k"]);
    assert!((40_000..=50_000).contains(&left), "{left}");
    let words: Vec<_> = words.iter().map(|word| if *word == "k" { "new" } else { word }).collect();
    server.idemctl(&[&words[..], &["--create", "--fingerprint", ""]].concat()).exits(1);
    assert_eq!(server.get("idemkey:new"), None);
    assert_eq!(audited(&server), [""; 0]);
}

#[test]
fn a_call_tells_what_was_there_right_before_and_after() {
    let server = Server::start();
    let library = Library::on(&server);
    server.set("lock", "mine", 30_000);
    let keys = [b"lock".to_vec(), b"result".to_vec()];
    let seen = || -> Observation { library.observe(&[keys.to_vec()]).remove(0) };
    let call =
        |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let hold = StepLock { key_index: 0, value: Content::text(b"held".to_vec()), ttl_ms: 5_000 };
    let writer = library.writer();
    let made = library
        .wait(writer.call(&seen(), Some(&hold), call(&["SET", "result", "1"]), &[]))
        .unwrap();
    let GuardedOutcome::Made { reply: Ok(_), before, after, .. } = made else { panic!("{made:?}") };
    let contents =
        |of: &Observation| of.keys.iter().map(|key| key.content.clone()).collect::<Vec<_>>();
    assert_eq!(contents(&before), [Content::text(b"mine".to_vec()), Content::Absent]);
    assert_eq!(contents(&after), [Content::text(b"held".to_vec()), Content::text(b"1".to_vec())]);
    library.wait(writer.put_back(&before, &after)).unwrap();
    assert!(before.is_still(&seen()));
    let why = library.wait(writer.put_back(&before, &after)).unwrap_err();
    assert_eq!(why, "the record changed meanwhile");
}
