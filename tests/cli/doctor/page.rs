//! The page of `idemctl doctor`: the verdict, what is worst first, and nothing twice.

use super::{checks, server, set};
use crate::support::{LOCK, Runs as _, Server};

#[test]
fn the_verdict_is_the_first_line_and_what_is_fine_is_one_line() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    // Without ACL DRYRUN, Redis 6.2 cannot say which rights the user has.
    let words =
        ["doctor", "--schema", "express", "--skip", "schema-violations,capacity,user-rights"];
    let run = server.idemctl(&words).exits(1);
    let text = run.text();
    let first = text.lines().next().unwrap();
    assert_eq!(first, "2 problems, 2 notes, 0 not checked, 10 fine. Begin with eviction-policy.");
    run.shows("Schema in use, as named: express.");
    let fine = "ok       10 checks found no problem: server-version, memory-headroom, evictions, ";
    run.shows(fine).shows("(-v shows each)");
    assert_eq!(text.matches("\nok  ").count(), 1, "{text}");
    let position = |start: &str| text.find(start).unwrap_or_else(|| panic!("{start}: {text}"));
    assert!(position("\nerror    eviction-policy") < position("\nwarning  persistence"));
    assert!(position("\nwarning  persistence") < position("\nnote     replication"));
    assert!(position("\nnote     replication") < position("\nok  "));
    let each = server.idemctl(&[&words[..], &["-v"]].concat());
    each.shows("ok       evictions: no key was evicted since the server started (measured)");
    assert_eq!(each.text().matches("\nok  ").count(), 11, "{}", each.all());
    // Programs get every statement.
    let json = server.idemctl(&[&words[..], &["-o", "json"]].concat());
    assert_eq!(checks(&json).len(), 15, "{}", json.all());
    json.says("2 problems, 2 notes, 0 not checked, 10 fine.");
}

#[test]
fn the_verdict_says_what_to_do_first() {
    let server = server(&["maxmemory 100mb"]);
    let of = |user: &[&str], only: &str| {
        let words = [user, &["doctor", "--only", only]].concat();
        let mut command = server.command();
        if !user.is_empty() {
            command.env("REDISCLI_AUTH", "pw");
        }
        let run = command.args(words).run();
        run.text().lines().next().unwrap().to_owned()
    };
    let fine = "0 problems, 0 notes, 0 not checked, 1 fine.";
    assert_eq!(of(&[], "evictions"), fine);
    let note = "0 problems, 1 note, 0 not checked, 0 fine. Read the notes.";
    assert_eq!(of(&[], "replication"), note);
    server.add_user("blind", "+hello +ping");
    let blind = "0 problems, 0 notes, 2 not checked, 0 fine. Begin with the rights that this user \
                 lacks.";
    assert_eq!(of(&["--user", "blind"], "evictions,replication"), blind);
    server.send::<()>(&[b"SET", b"idem:held", LOCK.as_bytes()]);
    let locks = of(&[], "endless-locks,replication");
    assert_eq!(locks, "1 problem, 1 note, 0 not checked, 0 fine. Begin with endless-locks.");
}

#[test]
fn statements_with_the_same_advice_are_one_paragraph() {
    let server = Server::start();
    for name in ["express", "go-middleware-v1"] {
        let words = ["begin", "order-1", "--schema", name, "--yes"];
        server.idemctl(&words).exits(0);
    }
    let keys: Vec<String> = server.send(&[b"KEYS", b"*"]);
    for key in &keys {
        server.send::<i64>(&[b"PEXPIRE", key.as_bytes(), b"7200000"]);
    }
    let only = ["doctor", "--only", "observed-ttls", "--schema", "express,go-middleware-v1"];
    let run = server.idemctl(&only).exits(0);
    let text = run.text();
    assert_eq!(text.matches("\nnote     observed-ttls: ").count(), 2, "{text}");
    assert_eq!(text.matches("Consequence").count(), 1, "{text}");
    run.shows("--lock-ttl express=DURATION").shows("Likewise for go-middleware-v1.");
    // JSON has each for itself.
    let json = server.idemctl(&[&only[..], &["-o", "json"]].concat());
    let found = checks(&json);
    assert!(found[1]["remedy"].as_str().unwrap().contains("go-middleware-v1=DURATION"));
}

#[test]
fn capacity_does_not_repeat_the_advice_of_memory_headroom() {
    let server = server(&[]);
    let only = ["doctor", "--only", "memory-headroom,capacity,replication"];
    let text = server.idemctl(&only).exits(0).text();
    assert_eq!(text.matches("Set maxmemory with `CONFIG SET").count(), 1, "{text}");
    assert_eq!(text.matches("as for memory-headroom").count(), 2, "{text}");
    // Directly below, the name is not needed.
    let only = ["doctor", "--only", "memory-headroom,capacity"];
    let text = server.idemctl(&only).exits(0).text();
    assert_eq!(text.matches("as above").count(), 2, "{text}");
    set(&server, "maxmemory", "1gb");
    let text = server.idemctl(&only).text();
    assert!(!text.contains("as above"), "{text}");
}

#[test]
fn what_one_right_allows_is_one_paragraph() {
    let server = server(&[]);
    server.add_user("blind", "+hello +ping");
    let only = "eviction-policy,memory-headroom,persistence,evictions";
    let words = ["--user", "blind", "doctor", "--only", only, "--schema", "express"];
    let run = server.command().env("REDISCLI_AUTH", "pw").args(words).run().exits(3);
    run.shows("unknown  eviction-policy, memory-headroom, persistence: CONFIG GET ")
        .shows("--skip eviction-policy,memory-headroom,persistence.")
        .shows("unknown  evictions: INFO was refused");
    assert_eq!(run.text().matches("Remedy").count(), 2, "{}", run.all());
}

/// A check that fails on one server or schema is not fine.
#[test]
fn a_check_that_is_partly_in_order_is_not_counted_as_fine() {
    let server = Server::start();
    server.set("idem:a", LOCK, 7_200_000);
    let only = "observed-ttls,evictions,persistence-status,clock-local,commands";
    let run = server.idemctl(&["doctor", "--only", only, "--schema", "express,go-middleware-v1"]);
    server.set("idem:b", super::DONE, 3_600_000);
    let both = server.idemctl(&["doctor", "--only", only, "--schema", "express"]);
    run.shows("0 problems, 1 note, 0 not checked, 4 fine.");
    both.shows("0 problems, 1 note, 0 not checked, 4 fine.")
        .shows("4 checks found no problem: ")
        .shows("; for other schemas or servers also observed-ttls (-v shows each)");
}

/// Rule: one right at a time would take several runs.
#[test]
fn the_rule_for_the_sample_allows_all_of_its_reads() {
    let server = server(&[]);
    server.add_user("blind", "~idem:* +hello +ping");
    let of = |user: &str| {
        let words = ["--user", user, "doctor", "--only", "endless-locks", "-o", "json"];
        let run = server.command().env("REDISCLI_AUTH", "pw").args(words).run();
        checks(&run)[0].clone()
    };
    let refused = of("blind");
    assert_eq!(refused["refused"]["rule"], "+@read +eval", "{refused:#}");
    server.add_user("reader", "~idem:* +hello +ping +@read +eval");
    let read = of("reader");
    assert_eq!(read["severity"], "ok", "{read:#}");
}
