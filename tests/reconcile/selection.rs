//! Which locks are taken: without expiry, or known to be old. An estimate takes none, and a lock that
//! was renewed has a live worker.

use crate::provider::{BY_KEY, LOCK, lock, program, pttl, reference, run, words};
use crate::support::{FOREVER, Server};

const HOUR: u64 = 3_600_000;

/// The keys that were taken, and those that were named and left.
fn found(server: &Server, more: &[&str]) -> (Vec<String>, Vec<String>) {
    let report = run(server, &[more, &["--dry-run", "-o", "json"]].concat()).json();
    let keys = |name: &str| {
        let mut keys: Vec<_> = report[name]
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| lock["key"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    };
    (keys("locks"), keys("left_out"))
}

#[test]
fn a_lock_without_expiry_is_taken_and_one_of_an_estimated_age_is_named() {
    let server = Server::holding(&[
        ("idem:stuck", LOCK, FOREVER),
        // The default TTL is 30 s, so its age is estimated to be 25 s or more.
        ("idem:guessed", LOCK, 5_000),
        ("idem:longer", LOCK, 7_200_000),
    ]);
    let ask = program(server.folder(), BY_KEY);
    let all = ["reconcile", "--ask", &ask, "--older-than", "10s", "--schema", "express", "--yes"];
    let ran = server.idemctl(&[&all[..], &["--confirm-after", "0s"]].concat()).exits(3);
    ran.says("guessed (express)")
        .says("longer (express)")
        .says(": the lock TTL of this deployment is not stated")
        .says("--lock-ttl");
    assert!(pttl(&server, "idem:guessed") <= 5_000);
    assert!(server.audited().is_empty());
    let (taken, named) = found(&server, &[]);
    assert_eq!((taken, named.len()), (vec!["stuck".to_owned()], 2));
}

/// Rule: a stated TTL tells the age. A lock with more time left was extended or renewed.
#[test]
fn a_stated_ttl_tells_the_age_and_more_time_than_it_is_a_live_worker() {
    let server = Server::holding(&[
        ("idem:old", LOCK, 60_000),
        ("idem:young", LOCK, 295_000),
        ("idem:renewed", LOCK, 400_000),
    ]);
    let (taken, named) = found(&server, &["--lock-ttl", "5m"]);
    assert_eq!(taken, ["old"]);
    assert_eq!(named, ["renewed"]);
    let ran = run(&server, &["--lock-ttl", "5m"]).exits(3);
    ran.says("Not reconciled: renewed (express): it ends later than a lock TTL of 5m allows");
    assert!(pttl(&server, "idem:renewed") > 390_000);
    assert_eq!(server.get("idem:renewed").unwrap(), LOCK.as_bytes());
}

/// Rule: the time in the value tells the age, unless the lock ends later than that time and the TTL
/// allow: then its worker renewed it.
#[test]
fn a_time_in_the_value_tells_the_age_unless_the_lock_was_renewed() {
    let server = Server::start();
    server.set("idemkey:old", reference(HOUR), HOUR);
    server.set("idemkey:young", reference(5_000), 2 * HOUR - 6_000);
    server.set("idemkey:renewed", reference(2 * HOUR), 600_000);
    let of = |more: &[&str]| found(&server, &[&["--schema", "reference"], more].concat());
    let (taken, named) = of(&["--lock-ttl", "2h"]);
    assert_eq!((taken, named), (vec!["old".to_owned()], vec!["renewed".to_owned()]));
    // Without a stated TTL, each of them may have been renewed.
    let (taken, named) = of(&[]);
    assert_eq!((taken.len(), named.len()), (0, 3));
    let ran = run(&server, &["--schema", "reference", "--dry-run"]).exits(3);
    ran.says("so it is unknown whether a worker renewed it").says("--lock-ttl");
}

/// Rule: a lock without expiry whose value says that it is young may be about to get its expiry.
#[test]
fn a_young_lock_without_expiry_stays() {
    let server = Server::start();
    server.put("idemkey:young", reference(5_000));
    server.put("idemkey:old", reference(HOUR));
    let (taken, named) = found(&server, &["--schema", "reference"]);
    assert_eq!((taken, named.len()), (vec!["old".to_owned()], 0));
}

/// Rule: the service decides when a lock with an expiry in its value ends, and idemctl leaves that
/// expiry alone.
#[test]
fn a_lock_whose_own_expiry_has_passed_or_ends_soon_is_named_and_left() {
    let server = Server::start();
    server.describe("leased", &[("schema.toml", LEASED)]);
    let value = |millis: i64| {
        let until = i64::try_from(crate::provider::now_ms()).unwrap() + millis;
        format!(r#"{{"s":"P","at":1000,"until":{until}}}"#)
    };
    server.put("leased:not-passed", value(-5_000));
    server.put("leased:not-soon", value(60_000));
    server.put("leased:not-far", value(7_200_000));
    let before = server.get("leased:not-soon").unwrap();
    let report =
        run(&server, &["--schema", "leased", "--lock-ttl", "3h", "-o", "json"]).exits(3).json();
    assert_eq!(lock(&report, "not-far")["outcome"], "released", "{report}");
    assert_eq!(lock(&report, "not-soon")["outcome"], "left");
    assert!(lock(&report, "not-soon")["message"].as_str().unwrap().contains("expiry in its value"));
    assert_eq!(report["left_out"][0]["key"], "not-passed", "{report}");
    assert!(report["left_out"][0]["message"].as_str().unwrap().contains("passed its own expiry"));
    assert_eq!(server.get("leased:not-soon").unwrap(), before);
    assert_eq!(server.get("leased:not-far"), None);
}

const LEASED: &str = r#"
format = 2
name = "leased"
summary = "locks with an expiry of their own"

[keys]
record = "leased:{key}"

[ttl]
lock = "3h"
result = "1h"

[[value]]
name = "lock"
where = { "/s" = "P" }
required = ["/s", "/at", "/until"]
state = "in-progress"
fields = { created_at = "/at" }
expires_at = { field = "/until", unit = "ms", past = "reclaimable" }

[[value]]
name = "done"
where = { "/s" = "D" }
required = ["/s"]
state = "completed"
"#;

/// Rule: filters narrow the selection, and a schema without a prefix needs one.
#[test]
fn filters_narrow_and_a_bare_schema_needs_a_name() {
    let server = Server::holding(&[("idem:a-1", LOCK, FOREVER), ("idem:b-1", LOCK, FOREVER)]);
    let (taken, _) = found(&server, &["--match", "a-*"]);
    assert_eq!(taken, ["a-1"]);
    let ran = run(&server, &["--schema", "go-chi", "--dry-run"]).exits(2);
    ran.says("go-chi has no fixed prefix");
    let ask = program(server.folder(), BY_KEY);
    server.idemctl(&["reconcile", "--older-than", "1m", "--yes"]).exits(2);
    let both = ["--from", "x.csv"];
    server.idemctl(&words(&ask, &both)).exits(2);
}

/// Rule: a dead owner makes a lock old, a living one keeps it, and no result leaves it.
#[test]
fn the_owner_decides_where_it_is_asked_for() {
    let server = Server::start();
    let lock = |owner: &str, ago: u64| reference(ago).replace("w-1", owner);
    server.set("idemkey:young-dead", lock("dead-1", 5_000), 20_000);
    server.put("idemkey:stuck-alive", lock("alive-1", HOUR));
    server.put("idemkey:stuck-odd", lock("odd-1", HOUR));
    server.set("idemkey:young-odd", lock("odd-1", 5_000), 20_000);
    let check = "case $1 in dead*) exit 1 ;; alive*) exit 0 ;; *) exit 7 ;; esac";
    let more = ["--schema", "reference", "--lock-ttl", "30s", "--owner-alive", check];
    let (taken, named) = found(&server, &more);
    let odd = ["stuck-odd", "young-odd"].map(str::to_owned).to_vec();
    assert_eq!((taken, named), (vec!["young-dead".to_owned()], odd));
    let ran = run(&server, &[&more[..], &["--dry-run"]].concat()).exits(3);
    ran.says("1 lock whose owner is alive").says("gave no result (exit status 7 for owner odd-1");
    // The report names each key that the operator named.
    let ran = run(&server, &[&more[..], &["stuck-alive"]].concat()).exits(3);
    ran.says("Not reconciled: stuck-alive (reference): its owner is alive");
}

/// Rule: an expiry in the value that passes while the program is asked ends the lock for its service.
#[test]
fn an_own_expiry_that_passes_meanwhile_is_told_as_that() {
    let server = Server::start();
    server.describe("leased", &[("schema.toml", LEASED)]);
    let until = crate::provider::now_ms() + 3_000;
    server.put("leased:not-1", format!(r#"{{"s":"P","at":1000,"until":{until}}}"#));
    let ask = program(server.folder(), &format!("sleep 4\n{BY_KEY}"));
    let all = words(&ask, &["--schema", "leased", "--lock-ttl", "3h", "--hold", "2s"]);
    let ran = server.idemctl(&all).exits(3);
    ran.says("expiry in its value");
    assert!(!ran.stderr.contains("no longer a lock"), "{}", ran.all());
    assert!(server.get("leased:not-1").is_some());
}
