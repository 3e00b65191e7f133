//! `idemctl check` from the outside: the monitoring plugin.

use crate::support::cluster::Cluster;
use crate::support::{self, FOREVER, LOCK, PENDING, Run, Server, alone};

fn check(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["check"], words].concat())
}

fn stuck(server: &Server, count: usize) {
    server.fill((0..count).map(|index| (format!("idem:k{index}"), LOCK)), FOREVER);
}

/// One line of a status, with the exit code of plugins.
#[track_caller]
fn says(run: Run, code: i32, status: &str) -> String {
    let run = run.exits(code);
    let line = run.text();
    assert!(line.starts_with(&format!("IDEMCTL {status} - ")), "{}", run.all());
    // Behind the status line stand the next commands, and what may be wrong or not.
    let is_more = |more: &str| {
        ["idemctl ", "locks of ", " from express only by "].iter().any(|part| more.contains(part))
    };
    assert!(line.lines().skip(1).all(is_more), "{line}");
    line
}

#[test]
fn one_orphaned_lock_is_critical_and_limits_say_from_how_many_on() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000)]);
    let line = says(check(&server, &[]), 0, "OK");
    assert_eq!(
        line,
        "IDEMCTL OK - no stuck locks among 1 record in 1 key | orphaned=0;;0 records=1 foreign=0 keys=1 unrecognised_no_expiry=0 no_expiry=0;;0\n"
    );
    stuck(&server, 3);
    let line = says(check(&server, &[]), 2, "CRITICAL");
    assert!(
        line.contains("3 stuck locks (express 3), e.g. k")
            && line.contains("orphaned=3;;0 records=4"),
        "{line}"
    );
    let line = says(check(&server, &["--warning", "2", "--critical", "9"]), 1, "WARNING");
    assert!(line.contains("orphaned=3;1;8"), "{line}");
    says(check(&server, &["--warning", "4", "--critical", "9"]), 0, "OK");
    assert_eq!(server.size(), 4, "a check changes nothing");
}

/// Rule: before a schema describes them, locks that never expire are seen at least as keys. Revert:
/// without the sum over the masters, the cluster has fewer.
#[test]
fn keys_without_expiry_that_no_schema_reads_are_measured() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000), ("mutex:a", "worker-1", FOREVER)]);
    // Two schemas have a pattern for this key, and it is subtracted once.
    server.put("idem:lock:order-1", "1");
    server.set("mutex:b", "worker-2", 60_000);
    stuck(&server, 2);
    let line = says(check(&server, &[]), 2, "CRITICAL");
    assert!(line.contains(" unrecognised_no_expiry=1 "), "{line}");
    assert!(line.contains("no schema reads 1 Redis key without expiry: idemctl "), "{line}");
    let json = check(&server, &["-o", "json"]).exits(2).json();
    assert_eq!(json["unrecognised_no_expiry"], 1, "{json}");
    // What other schemas read is not unrecognised.
    let line = says(check(&server, &["--schema", "express"]), 2, "CRITICAL");
    assert!(!line.contains("unrecognised_no_expiry"), "{line}");
    server.add_user("blind", "~* +@read +@connection +@scripting +time +dbsize");
    let line = says(server.idemctl(&["--user", "blind", "-a", "pw", "check"]), 2, "CRITICAL");
    assert!(!line.contains("unrecognised_no_expiry"), "{line}");
    let cluster = Cluster::start(3);
    cluster.fill((0..10).map(|index| (format!("mutex:{index}"), "w")), FOREVER);
    cluster.fill([("idem:held", LOCK)], 60_000);
    let line = says(cluster.idemctl(&["check"]), 0, "OK");
    assert!(line.contains(" unrecognised_no_expiry=10 "), "{line}");
}

/// Rule: what was not looked at is never OK: there is a line with UNKNOWN in every case.
#[test]
fn nobody_knows_without_a_server_a_right_or_a_command_line() {
    let closed = support::free_port().to_string();
    says(alone(&["-p", &closed, "check"]), 3, "UNKNOWN");
    says(alone(&["-p", &closed, "check", "--no-such-option"]), 3, "UNKNOWN");
    says(alone(&["-p", &closed, "check", "--critical", "0"]), 3, "UNKNOWN");
    says(alone(&["--context", "nosuch", "check"]), 3, "UNKNOWN");
    // The error is said once, in the line.
    let run = alone(&["--context", "nosuch", "check"]);
    assert!(!run.stderr.contains("error:"), "{}", run.all());
    says(alone(&["-p", &closed, "check", "--schema", "nosuch"]), 3, "UNKNOWN");
    alone(&["check", "--help"]).exits(0);
    alone(&["schema", "check", "--no-such-option"]).exits(2);
    let server = Server::start();
    server.send::<()>(&[b"CONFIG", b"SET", b"requirepass", b"secret"]);
    says(server.idemctl(&["-a", "wrong", "check"]), 3, "UNKNOWN");
}

/// Rule: a database without a key of any schema is not OK.
#[test]
fn nothing_covered_is_unknown_and_named_schemas_without_records_are_ok() {
    let server = Server::start();
    let line = says(check(&server, &[]), 3, "UNKNOWN");
    assert!(line.contains("none of the 0 Redis keys"), "{line}");
    server.fill((0..40).map(|index| (format!("bare-{index}"), r#"{"status":0}"#)), 20_000);
    let line = says(check(&server, &[]), 3, "UNKNOWN");
    assert!(line.contains("none of the 40 Redis keys"), "{line}");
    let line = says(check(&server, &["--schema", "express"]), 0, "OK");
    assert!(line.contains("records=0"), "{line}");
    let line = says(check(&server, &["--schema", "go-chi"]), 0, "OK");
    assert!(line.contains("records=40"), "{line}");
}

/// Rule: more foreign records than a schema's own under its prefix are not OK.
#[test]
fn more_foreign_than_claimed_records_are_a_warning() {
    let server = Server::holding(&[("idem:ours", LOCK, 20_000)]);
    let foreign = r#"{"status":"IN_PROGRESS","fingerPrint":"fd56"}"#;
    server.set("idem:theirs-1", foreign, 20_000);
    says(check(&server, &[]), 0, "OK");
    server.set("idem:theirs-2", foreign, 20_000);
    let line = says(check(&server, &[]), 1, "WARNING");
    assert!(
        line.contains("under express's prefix that do not match schema express: 2, that do: 1"),
        "{line}"
    );
    assert!(line.contains("foreign=2"), "{line}");
}

/// Rule: records that the user may not read are a gap.
#[test]
fn what_may_not_be_read_is_a_gap_that_hides_nothing_critical() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000)]);
    server.set("idempotency:hidden", PENDING, 20_000);
    server.add_user("narrow", "~idem:* +@read +@connection +@scripting +time");
    let narrow = ["--user", "narrow", "-a", "pw", "check"];
    let line = says(server.idemctl(&narrow), 3, "UNKNOWN");
    assert!(line.contains("1 record was skipped") && line.contains("records=1"), "{line}");
    stuck(&server, 1);
    says(server.idemctl(&narrow), 2, "CRITICAL");
}

#[test]
fn a_master_that_is_down_is_a_gap() {
    let mut cluster = Cluster::start(3);
    cluster.fill((0..30).map(|index| (format!("idem:k{index}"), LOCK)), 60_000);
    says(cluster.idemctl(&["check"]), 0, "OK");
    cluster.kill(1);
    let line = says(cluster.idemctl(&["check"]), 3, "UNKNOWN");
    assert!(line.contains("1 of 3 masters"), "{line}");
}

/// The context says which lock TTL the service has.
fn stating(ttl: &str, more: &str) -> Server {
    let server = Server::start();
    server.states(&[("express", &format!("lock_ttl = \"{ttl}\"\n{more}"))]);
    server
}

/// Rule: a lock that refuses clients longer than its stated TTL is never OK.
#[test]
fn a_lock_that_stays_longer_than_the_stated_lock_ttl_is_never_ok() {
    let server = Server::holding(&[("idem:stuck", LOCK, 29_800_000)]);
    says(check(&server, &[]), 0, "OK");
    server.states(&[("express", "lock_ttl = \"30s\"")]);
    let line = says(check(&server, &[]), 1, "WARNING");
    assert!(line.contains("1 excess-ttl lock (express 1), e.g. stuck"), "{line}");
    assert!(line.contains("orphaned=0;;0") && line.contains("excess_ttl=1;0;"), "{line}");
    let line = says(check(&server, &["--include", "excess-ttl=CRITICAL"]), 2, "CRITICAL");
    assert!(line.contains("excess_ttl=1;;0"), "{line}");
    let stated = ["--schema", "express", "--lock-ttl", "9h"];
    let line = says(check(&server, &stated), 0, "OK");
    assert!(
        line.contains("no stuck locks or excess-ttl") && line.contains("excess_ttl=0;0;"),
        "{line}"
    );
}

/// Rule: what is included compares with what the deployment states, and with nothing else.
#[test]
fn what_is_included_has_to_be_stated() {
    let server = Server::holding(&[("idem:held", LOCK, 29_000)]);
    let line = says(check(&server, &["--include", "excess-ttl=CRITICAL"]), 3, "UNKNOWN");
    assert!(line.contains("but none is configured"), "{line}");
    let line = says(check(&server, &["--include", "overdue=CRITICAL"]), 3, "UNKNOWN");
    assert!(line.contains("--include overdue needs the age"), "{line}");
    says(check(&server, &["--include", "excess-ttl=OK"]), 3, "UNKNOWN");
    let line = says(check(&server, &["--overdue", "5s"]), 3, "UNKNOWN");
    assert!(line.contains("1 lock of unknown age: set lock_ttl"), "{line}");
}

#[test]
fn a_lock_older_than_overdue_is_a_warning_or_what_the_context_says() {
    let server = stating("60s", "[contexts.here.check]\noverdue = \"20s\"");
    server.set("idem:slow", LOCK, 30_000);
    server.set("idem:quick", LOCK, 59_000);
    let line = says(check(&server, &[]), 1, "WARNING");
    assert!(
        line.contains("1 overdue lock (express 1), e.g. slow") && line.contains("overdue=1;0;"),
        "{line}"
    );
    says(check(&server, &["--overdue", "50s"]), 0, "OK");
    says(check(&server, &["--include", "overdue=CRITICAL"]), 2, "CRITICAL");
    let include = "overdue = \"20s\"\ninclude = [\"overdue=CRITICAL\"]";
    server.states(&[("express", &format!("lock_ttl = \"60s\"\n[contexts.here.check]\n{include}"))]);
    says(check(&server, &[]), 2, "CRITICAL");
    says(check(&server, &["--include", "overdue=WARNING"]), 1, "WARNING");
    let shown = server.idemctl(&["config", "show"]).exits(0).text();
    assert!(shown.contains("check.overdue") && shown.contains("overdue=CRITICAL"), "{shown}");
    server.states(&[(
        "express",
        "lock_ttl = \"60s\"\n[contexts.here.check]\ninclude = [\"no-expiry=WARNING\"]",
    )]);
    let line = says(check(&server, &[]), 3, "UNKNOWN");
    assert!(line.contains("config.toml:") && line.contains("excess-ttl=WARNING"), "{line}");
}

#[test]
fn json_has_the_same_status_and_each_finding() {
    let server = stating("30s", "");
    server.set("idem:stuck", LOCK, 29_800_000);
    stuck(&server, 2);
    let document = check(&server, &["-o", "json"]).exits(2).json();
    assert_eq!(
        (&document["status"], &document["sampled"]),
        (&"CRITICAL".into(), &false.into()),
        "{document}"
    );
    let finding = |index: usize, field: &str| document["findings"][index][field].clone();
    assert_eq!(
        (finding(0, "code"), finding(0, "count"), finding(0, "status")),
        ("no-expiry".into(), 2.into(), "CRITICAL".into())
    );
    assert_eq!(
        (finding(1, "code"), finding(1, "count"), finding(1, "status")),
        ("excess-ttl".into(), 1.into(), "WARNING".into())
    );
    assert_eq!(finding(1, "sample")[0]["key"], "stuck");
    let closed = support::free_port().to_string();
    let run = alone(&["-p", &closed, "check", "-o", "json"]).exits(3);
    assert_eq!(
        (&run.json()["status"], &run.json()["keys"]),
        (&"UNKNOWN".into(), &serde_json::Value::Null)
    );
}

/// The Redis keys that nobody used for two seconds.
fn untouched(server: &Server, keys: &[String]) -> usize {
    let mut idle = redis::pipe();
    for key in keys {
        idle.cmd("OBJECT").arg("IDLETIME").arg(key);
    }
    let idle: Vec<u64> = idle.query(&mut server.connect()).unwrap();
    idle.into_iter().filter(|seconds| *seconds >= 2).count()
}

/// Rule: a check, which runs every minute, asks for deadlines, which touches no key. It reads the values of Redis keys without
/// expiry, and a sample of at most 1,000 records. Only a server that does not count reading as use is asked for more.
#[test]
fn a_check_touches_no_key_with_an_expiry_but_those_of_its_sample() {
    const COUNT: usize = 4_000;
    const SAMPLE: usize = 1_000;
    let keys: Vec<_> = (0..COUNT).map(|index| format!("idem:k{index}")).collect();
    let server = Server::filled(keys.iter().map(|key| (key, LOCK)), 600_000);
    server.fill([("idem:stuck", LOCK)], FOREVER);
    std::thread::sleep(std::time::Duration::from_millis(3_100));
    let line = says(check(&server, &[]), 2, "CRITICAL");
    assert!(
        line.contains("e.g. stuck") && line.contains(&format!("records={}", COUNT + 1)),
        "{line}"
    );
    // Where reading does not count as use, the values of what may be a lock are read, too.
    let no_touch =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("ON").query::<()>(&mut server.connect());
    let expected = if no_touch.is_ok() { COUNT + SAMPLE + 1 } else { SAMPLE + 1 };
    assert_eq!(server.calls("getrange"), expected);
    let deadlines = server.calls("pttl") + server.calls("pexpiretime");
    assert!(deadlines > COUNT, "{deadlines}");
    let untouched = untouched(&server, &keys);
    assert!(untouched >= COUNT - SAMPLE, "{untouched} of {COUNT} keys are as they were");
    let document = check(&server, &["-o", "json"]).exits(2).json();
    assert_eq!(
        (&document["sampled"], &document["sample"]),
        (&true.into(), &SAMPLE.into()),
        "{document}"
    );
    server.send::<()>(&[b"DEL", b"idem:stuck"]);
    let line = says(check(&server, &[]), 0, "OK");
    assert!(line.contains("among about 4000 records in 4000 keys"), "{line}");
}

/// A service that keeps its records in hashes, and the moment at which a lock was taken in the lock.
const HASHES: &str = r#"format = 2
name = "payhash"
keys = { record = "pay:{key}" }
ttl = { lock = "1m", result = "1h" }

[[value]]
name = "held"
type = "hash"
where = { "/st" = "held" }
required = ["/st"]
optional = ["/at"]
state = "in-progress"
timestamp = "ms"
fields = { created_at = "/at" }

[[value]]
name = "done"
type = "hash"
where = { "/st" = "done" }
required = ["/st"]
state = "completed"
"#;

#[test]
fn hashes_are_checked_and_a_time_in_the_value_tells_the_age() {
    let server = Server::start();
    server.describe("payhash", &[("schema.toml", HASHES)]);
    let now: Vec<u64> = server.send(&[b"TIME"]);
    let hour_ago = ((now[0] - 3_600) * 1_000).to_string();
    for (key, state) in [("pay:slow", "held"), ("pay:done", "done")] {
        server.send::<()>(&[b"HSET", key.as_bytes(), b"st", state.as_bytes()]);
        server.send::<()>(&[b"PEXPIRE", key.as_bytes(), b"600000"]);
    }
    server.send::<()>(&[b"HSET", b"pay:slow", b"at", hour_ago.as_bytes()]);
    let words = ["--schema", "payhash"];
    let line = says(check(&server, &words), 0, "OK");
    assert!(line.contains("records=2 foreign=0 keys=2"), "{line}");
    let line = says(check(&server, &[&words[..], &["--overdue", "5m"]].concat()), 1, "WARNING");
    assert!(line.contains("1 overdue lock (payhash 1), e.g. slow"), "{line}");
    server.send::<()>(&[b"PERSIST", b"pay:slow"]);
    says(check(&server, &words), 2, "CRITICAL");
}
