//! The page of `idemctl doctor`: the verdict, and what is worst first.

use super::{checks, server};
use crate::support::{LOCK, Runs as _, Server};

#[test]
fn the_verdict_is_the_first_line_and_the_worst_comes_first() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    // Without ACL DRYRUN, Redis 6.2 cannot say which rights the user has.
    let words =
        ["doctor", "--schema", "express", "--skip", "schema-violations,capacity,user-rights"];
    let run = server.idemctl(&words).exits(1);
    let text = run.text();
    let first = text.lines().next().unwrap();
    assert_eq!(first, "2 problems, 3 notes, 0 not checked, 9 fine");
    run.shows("schemas in use: express");
    let fine = text.lines().find(|line| line.starts_with("ok  ")).unwrap();
    assert_eq!(fine.split(", ").count(), 9, "{text}");
    let explained = server.idemctl(&[&words[..], &["-v"]].concat()).exits(1);
    assert_eq!(explained.text().matches("\nok  ").count(), 9, "{}", explained.all());
    assert_eq!(explained.text().matches("  Remedy ").count(), 5, "{}", explained.all());
    let position = |start: &str| text.find(start).unwrap_or_else(|| panic!("{start}: {text}"));
    assert!(position("\nerror    eviction-policy") < position("\nwarning  persistence"));
    assert!(position("\nwarning  persistence") < position("\nnote     "));
    assert!(position("\nnote     ") < position("\nok  "));
    // Programs get every statement.
    let json = server.idemctl(&[&words[..], &["-o", "json"]].concat());
    assert_eq!(checks(&json).len(), 14, "{}", json.all());
    json.says("2 problems, 3 notes, 0 not checked, 9 fine");
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
    let fine = "0 problems, 0 notes, 0 not checked, 1 fine";
    assert_eq!(of(&[], "evictions"), fine);
    let note = "0 problems, 1 note, 0 not checked, 0 fine";
    assert_eq!(of(&[], "replication"), note);
    server.add_user("blind", "+hello +ping");
    let blind = "0 problems, 0 notes, 2 not checked, 0 fine";
    assert_eq!(of(&["--user", "blind"], "evictions,replication"), blind);
    server.send::<()>(&[b"SET", b"idem:held", LOCK.as_bytes()]);
    let locks = of(&[], "endless-locks,replication");
    assert_eq!(locks, "1 problem, 1 note, 0 not checked, 0 fine");
}

/// Rule: a setting can be changed now, and a schema cannot.
#[test]
fn the_first_row_is_what_is_worst_and_can_be_changed() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    let first_row = |only: &str| {
        let run = server.idemctl(&["doctor", "--schema", "express", "--only", only]).exits(1);
        let row = run.text().lines().nth(3).unwrap().to_owned();
        row.split_whitespace().nth(1).unwrap().to_owned()
    };
    let schemas = "schema-violations";
    assert_eq!(first_row(schemas), schemas);
    // Both are errors.
    assert_eq!(first_row(&format!("{schemas},eviction-policy")), "eviction-policy");
    // An error before a warning.
    assert_eq!(first_row(&format!("{schemas},persistence")), schemas);
}

/// Rule: a setting belongs to each server, and a password is never printed.
#[test]
fn advice_to_change_a_setting_is_for_each_server() {
    let server = server(&["maxmemory 100mb", "maxmemory-policy allkeys-lru"]);
    let mut command = server.command();
    command.env("REDISCLI_AUTH", "pw");
    server.add_user("ops", "~* +@all");
    let words = ["doctor", "-o", "json", "--only", "eviction-policy", "--schema", "express"];
    let run = command.args([&["--user", "ops"], &words[..]].concat()).run();
    assert!(run.all().split([' ', '`', '"']).all(|word| word != "pw"), "{}", run.all());
    let found = checks(&run)[0].clone();
    let remedy = found["remedy"].as_str().unwrap();
    let setting = "on each server and replica: `CONFIG SET maxmemory-policy noeviction`";
    assert!(remedy.contains(setting) && remedy.contains("on a managed service"), "{remedy}");
}

/// A check that fails on one server or schema is not fine.
#[test]
fn a_check_that_is_partly_in_order_is_not_counted_as_fine() {
    let server = Server::start();
    server.set("idem:a", LOCK, 7_200_000);
    let only = "observed-ttls,evictions,writes,clock-local,commands";
    let run = server.idemctl(&["doctor", "--only", only, "--schema", "express,go-middleware-v1"]);
    server.set("idem:b", super::DONE, 3_600_000);
    let both = server.idemctl(&["doctor", "--only", only, "--schema", "express"]);
    run.shows("0 problems, 1 note, 0 not checked, 4 fine");
    both.shows("0 problems, 1 note, 0 not checked, 4 fine");
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
