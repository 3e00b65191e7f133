//! Servers that serve, in odd ways: huge values, another clock, scripts forgotten, keys evicted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::stage::bounded;
use crate::support::fault;
use crate::support::{PENDING, Server};

#[test]
#[allow(
    clippy::print_stderr,
    reason = "whoever runs the tests is to know that this one did nothing"
)]
fn a_value_of_512_mb_is_not_read_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    let written: redis::RedisResult<i64> = redis::cmd("SETRANGE")
        .arg("idempotency:huge")
        .arg(536_870_000)
        .arg("x")
        .query(&mut connection);
    if let Err(error) = written {
        eprintln!("skipped: no room for such a value here: {error}");
        return;
    }
    // It begins as a value of the schema does.
    server.send::<()>(&[b"SETRANGE", b"idempotency:huge", b"0", b"{"]);
    for words in [&["inspect", "huge"][..], &["list"], &["list", "--sort", "size"]] {
        let mut command = server.command();
        command.args(words);
        let began = Instant::now();
        bounded(&command).exits(0).shows("512.0 MiB");
        assert!(began.elapsed() < Duration::from_secs(60), "{words:?}: {:?}", began.elapsed());
    }
}

#[test]
fn keys_that_are_evicted_during_a_list_leave_the_others_in_it() {
    let server = Server::start();
    let mut pipeline = redis::pipe();
    for index in 0..20_000 {
        let set = pipeline.cmd("SET").arg(format!("idempotency:{index}")).arg(PENDING);
        // Only those that expire are evicted.
        if index % 2 == 0 {
            set.arg("EX").arg(9_000).ignore()
        } else {
            set.ignore()
        };
    }
    pipeline.exec(&mut server.connect()).unwrap();
    server.send::<()>(&[b"CONFIG", b"SET", b"maxmemory-policy", b"volatile-random"]);
    let (mut connection, over) = (server.connect(), AtomicBool::new(false));
    let run = thread::scope(|scope| {
        scope.spawn(|| {
            let used: String = redis::cmd("INFO").arg("memory").query(&mut connection).unwrap();
            let used =
                used.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().trim();
            let used: u64 = used.parse().unwrap();
            for step in 0.. {
                if over.load(Ordering::Relaxed) || step > 60 {
                    break;
                }
                let limit = used - 20_000 * step;
                redis::cmd("CONFIG")
                    .arg("SET")
                    .arg("maxmemory")
                    .arg(limit)
                    .exec(&mut connection)
                    .unwrap();
                let _ = redis::cmd("SET").arg("other").arg("x").exec(&mut connection);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let run = server.idemctl(&["list", "--schema", "go-middleware", "-o", "jsonl"]);
        over.store(true, Ordering::Relaxed);
        run
    });
    let run = run.exits(0);
    let lines = run.json_lines();
    let listed: BTreeSet<_> =
        lines.iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    let left: BTreeSet<String> = server.send::<BTreeSet<String>>(&[b"KEYS", b"idempotency:*"]);
    assert!(left.len() < 20_000, "nothing was evicted");
    assert_eq!(listed.len(), lines.len());
    assert!(left.iter().all(|key| listed.contains(key.trim_start_matches("idempotency:"))));
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

#[test]
fn times_go_by_the_clock_of_the_server() {
    for by_ms in [3_600_000, -3_600_000] {
        let server = Server::start();
        let (port, _) = fault::way(&server, fault::skewed(by_ms));
        let began_at = now_ms() + by_ms - 20_000;
        let record = format!(
            r#"{{"state":"in-progress","owner":"w","fingerprint":"","created_at":{began_at}}}"#
        );
        server.set("idemkey:k", &record, 25_000);
        let run = |words: &[&str]| server.at(port, words).exits(0);
        let seen = run(&["inspect", "k", "--schema", "reference", "-o", "json"]);
        let age = seen.json()["records"][0]["age_ms"]
            .as_i64()
            .unwrap_or_else(|| panic!("{}", seen.all()));
        assert!((20_000..30_000).contains(&age), "{}", seen.all());
        let listed = run(&["list", "--older-than", "15s", "-o", "jsonl"]);
        assert_eq!(listed.json_lines().len(), 1, "{}", listed.all());
        run(&["force-unlock", "k", "--schema", "reference", "--yes", "--backup", "b"]);
        assert_eq!(server.get("idemkey:k"), None);
    }
}

#[test]
fn a_race_stays_atomic_while_the_server_is_made_to_forget_its_scripts() {
    let server = Server::start();
    let (mut connection, over) = (server.connect(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let words = [
            "race",
            "--strategy",
            "schema",
            "--rounds",
            "20",
            "--concurrency",
            "10",
            "-o",
            "jsonl",
        ];
        let run = server.idemctl(&words);
        over.store(true, Ordering::Relaxed);
        let run = run.exits(0);
        assert!(run.json_lines().iter().all(|line| line["verdict"] == "atomic"), "{}", run.all());
    });
    assert_eq!(server.size(), 0);
}
