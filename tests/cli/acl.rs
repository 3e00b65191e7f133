//! The tool under each of the users that the document proposes, made by the very lines that stand there: what is permitted
//! works, what is not says which right is missing, and nothing is changed.

use crate::support::{LOCK, PENDING, Run, Runs, Server};

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// The lines of the document, each in words.
fn lines() -> Vec<Vec<String>> {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/connecting.md"))
            .unwrap();
    let lines = document.lines().filter(|line| line.starts_with("ACL SETUSER "));
    let lines: Vec<Vec<_>> =
        lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    assert_eq!(lines.len(), 2, "the document has a line for each user");
    lines
}

/// A server with both users, whose password is `pw`.
fn server() -> Server {
    let server = Server::start();
    for line in lines() {
        let words: Vec<_> = line.iter().map(|word| word.replace("PASSWORD", "pw")).collect();
        server.send::<()>(&words.iter().map(String::as_bytes).collect::<Vec<_>>());
    }
    server
}

fn run(server: &Server, user: &str, words: &[&str]) -> Run {
    server.command().env("REDISCLI_AUTH", "pw").args(["--user", user]).args(words).run()
}

fn seed(server: &Server) {
    server.set("idem:held", LOCK, 20_000);
    server.put("idem:stuck", LOCK);
    server.set("idem:done", DONE, 3_600_000);
}

/// What both may do; exit code 1 is an answer.
const READING: &[(&[&str], i32)] = &[
    (&["inspect", "held", "--schema", "express"], 0),
    (&["-n", "1", "inspect", "held", "--schema", "express"], 1),
    (&["list"], 0),
    (&["list", "-o", "jsonl", "--sort", "age"], 0),
    (&["check"], 2),
    (&["check", "--schema", "go-middleware"], 0),
    (&["sweep", "--orphaned", "--dry-run", "--grace", "0s"], 0),
    (&["purge", "--all", "--dry-run"], 0),
    (&["force-unlock", "stuck", "--schema", "express", "--dry-run"], 0),
    (&["begin", "new", "--schema", "express", "--dry-run"], 0),
    (&["release", "held", "--schema", "express", "--dry-run"], 0),
    (
        &[
            "complete",
            "held",
            "--schema",
            "express",
            "--status",
            "201",
            "--body",
            "ok",
            "--dry-run",
        ],
        0,
    ),
];

/// What only the second may do, in an order in which each finds what it needs, and the right that the first lacks.
const CHANGING: &[&[&str]] = &[
    &["begin", "new", "--schema", "express", "--yes"],
    &["complete", "new", "--schema", "express", "--status", "201", "--body", "ok", "--yes"],
    &["release", "held", "--schema", "express", "--yes"],
    &["force-unlock", "stuck", "--schema", "express", "--yes"],
    &["race", "--rounds", "2", "--concurrency", "5"],
    &["simulate", "first-then-retry", "--schema", "express,event-driven,reference"],
];

#[test]
fn both_users_read_all_there_is() {
    let server = server();
    seed(&server);
    for user in ["idemctl-read", "idemctl-ops"] {
        for (words, code) in READING {
            let run = run(&server, user, words);
            assert_eq!(run.code, *code, "{user} {words:?}: {}", run.all());
            assert!(
                !run.stderr.contains("NOPERM") && !run.stderr.contains("permit"),
                "{words:?}: {}",
                run.all()
            );
        }
        let shown = run(&server, user, &["inspect", "done", "--schema", "express", "-o", "json"])
            .exits(0)
            .json();
        assert!(shown["records"][0]["memory_bytes"].is_u64(), "{shown:#}");
    }
}

#[test]
fn the_operator_may_change_everything() {
    let server = server();
    seed(&server);
    for words in CHANGING {
        let run = run(&server, "idemctl-ops", words);
        // A simulation's verdict may be bad; that is an answer.
        let answers = if words[0] == "simulate" { 0..=1 } else { 0..=0 };
        assert!(answers.contains(&run.code), "{words:?}: {}", run.all());
        assert!(!run.stderr.contains("permi"), "{words:?}: {}", run.all());
    }
    server.put("idem:stuck", LOCK);
    run(&server, "idemctl-ops", &["sweep", "--orphaned", "--grace", "0s", "--yes"]).exits(0);
    server.put("idem:stuck", LOCK);
    let expire = ["--action", "expire", "--schema", "express", "--lock-ttl", "30s", "--yes"];
    run(&server, "idemctl-ops", &[&["sweep", "--orphaned", "--grace", "0s"][..], &expire].concat())
        .exits(0);
    let backup = server.folder().join("backup.jsonl").display().to_string();
    run(&server, "idemctl-ops", &["purge", "--all", "--yes", "--backup", &backup]).exits(0);
    assert!(server.get("idem:done").is_none());
    run(&server, "idemctl-ops", &["restore", &backup, "--yes"]).exits(0);
    assert!(server.get("idem:done").is_some());
    server.send::<()>(&[b"DEL", b"idem:done", b"idem:new"]);
    run(&server, "idemctl-read", &["restore", &backup, "--dry-run"]).exits(0);
    let refused = run(&server, "idemctl-read", &["restore", &backup, "--yes"]);
    assert!(refused.code == 4 && refused.stderr.contains("the user needs "), "{}", refused.all());
}

#[test]
fn the_reader_changes_nothing_and_is_told_what_it_lacks() {
    let server = server();
    seed(&server);
    let more: &[&[&str]] = &[
        &["complete", "held", "--schema", "express", "--status", "201", "--body", "ok", "--yes"],
        &["sweep", "--orphaned", "--grace", "0s", "--yes"],
        &["purge", "--all", "--yes"],
    ];
    for words in CHANGING.iter().filter(|words| words[..2] != ["complete", "new"]).chain(more) {
        let run = run(&server, "idemctl-read", words);
        assert_eq!(run.code, 4, "{words:?}: {}", run.all());
        assert!(run.stderr.contains("the user needs "), "{words:?}: {}", run.all());
        assert!(
            run.stderr.contains("hint: docs/connecting.md (ACL users)"),
            "{words:?}: {}",
            run.all()
        );
    }
    assert_eq!(server.get("idem:held").unwrap(), LOCK.as_bytes());
    assert_eq!(server.get("idem:stuck").unwrap(), LOCK.as_bytes());
    assert_eq!(server.get("idem:done").unwrap(), DONE.as_bytes());
    assert_eq!(server.send::<Vec<String>>(&[b"KEYS", b"*"]).len(), 3);
}

#[test]
fn keys_outside_the_pattern_are_left_alone_or_named_as_such() {
    let server = server();
    server.set("idempotency:mine", PENDING, 20_000);
    server.send::<()>(&[b"ACL", b"SETUSER", b"idemctl-read", b"resetkeys", b"~idempotency:*"]);
    server.set("idem:1", LOCK, 20_000);
    let looks: [&[&str]; 3] = [
        &["list", "-o", "jsonl"],
        &["sweep", "--orphaned", "--dry-run"],
        &["purge", "--all", "--dry-run"],
    ];
    for words in looks {
        // Where there is something to read, it is told what was not; where nothing can be read, that is no answer.
        run(&server, "idemctl-read", words).exits(3).says("1 record was skipped: ");
        let blind =
            run(&server, "idemctl-read", &[words, &["--schema", "express"]].concat()).exits(4);
        blind.says("a ~PATTERN that matches the Redis key");
    }
    server.set("pay:1", LOCK, 20_000);
    for words in [&["inspect"][..], &["force-unlock", "--yes"]] {
        let run = run(
            &server,
            "idemctl-ops",
            &[words, &["1", "--schema", "go-chi", "--prefix", "pay:"]].concat(),
        );
        run.exits(4).says("a ~PATTERN that matches the Redis key");
    }
}

#[test]
fn what_is_forbidden_is_asked_once() {
    let server = server();
    let rules = ["ACL", "SETUSER", "idemctl-ops", "-client"];
    server.send::<()>(&rules.map(str::as_bytes));
    server.send::<()>(&[b"ACL", b"LOG", b"RESET"]);
    let words = [
        "race",
        "--schema",
        "express",
        "--strategy",
        "schema",
        "--rounds",
        "2",
        "--concurrency",
        "20",
    ];
    run(&server, "idemctl-ops", &words).exits(0);
    let log: Vec<redis::Value> = server.send(&[b"ACL", b"LOG"]);
    let shown = format!("{log:?}");
    assert!(shown.contains("client") && shown.contains("idemctl-ops"), "{shown}");
    let counts: Vec<i64> = log
        .iter()
        .map(|entry| redis::from_redis_value::<Counted>(entry.clone()).unwrap().0)
        .collect();
    // Of twenty workers one asks: for a name, and for NO-TOUCH, which some engines look up before they look at rights.
    assert!((1..=2).contains(&counts.iter().sum::<i64>()), "{shown}");
}

/// How often an entry of the ACL log came.
struct Counted(i64);

impl redis::FromRedisValue for Counted {
    fn from_redis_value(value: redis::Value) -> Result<Self, redis::ParsingError> {
        let fields: Vec<redis::Value> = redis::from_redis_value(value)?;
        let at = fields
            .iter()
            .position(|field| matches!(field, redis::Value::BulkString(name) if name == b"count"));
        Ok(Self(redis::from_redis_value(fields[at.unwrap() + 1].clone())?))
    }
}

/// Rule: a document that leaves out records does not say that it is complete.
#[test]
fn a_list_without_forbidden_records_is_not_complete() {
    let server = server();
    seed(&server);
    server.send::<()>(&[&b"ACL"[..], b"SETUSER", b"idemctl-read", b"resetkeys", b"~idem:done*"]);
    for (words, rows) in [(["list", "-o", "json"], "records"), (["stats", "-o", "json"], "rows")] {
        let run = run(&server, "idemctl-read", &words).exits(3);
        let told = run.says("2 records were skipped").json();
        assert_eq!(
            (&told["complete"], told[rows].as_array().unwrap().len()),
            (&false.into(), 1),
            "{}",
            run.all()
        );
    }
    server.send::<()>(&[&b"ACL"[..], b"SETUSER", b"idemctl-read", b"~idem*"]);
    assert_eq!(
        run(&server, "idemctl-read", &["list", "-o", "json"]).exits(0).json()["complete"],
        true
    );
}

/// Rule: what the user may not read before a change is told as that, and not as changed meanwhile.
#[test]
fn what_may_not_be_compared_is_not_told_as_changed() {
    let long = DONE.replace(r#""body":"""#, &format!(r#""body":"{}""#, "x".repeat(9_000)));
    for rules in ["-dump", "-strlen", "-type", "-pexpiretime -time"] {
        let server = Server::holding(&[
            ("idem:long", long.as_str(), 3_600_000),
            ("idem:short", DONE, 3_600_000),
        ]);
        // Redis 6.2 has no PEXPIRETIME, and refuses a rule about a command that it does not know.
        let commands: Vec<Option<redis::Value>> =
            server.send(&[b"COMMAND", b"INFO", b"PEXPIRETIME"]);
        let rules =
            if commands == [None] { rules.replace("-pexpiretime ", "") } else { rules.to_owned() };
        server.add_user("some", &format!("~* +@all {rules}"));
        let purge = run(&server, "some", &["purge", "--all", "--schema", "express", "--yes"]);
        if server.size() == 0 {
            assert_eq!(purge.code, 0, "{rules}: {}", purge.all());
            continue;
        }
        assert!([3, 4].contains(&purge.code), "{rules}: {}", purge.all());
        assert!(purge.stderr.contains("denied permission"), "{rules}: {}", purge.all());
        assert!(!purge.stderr.contains("changed since"), "{rules}: {}", purge.all());
    }
}
