//! `idemctl diff` from the outside.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::terminal::{plain, shown_on};
use crate::support::{DONE, PENDING, Run, Runs, Server, idemctl, until};

/// Writes what is there now into a file of the server's folder.
fn moment(server: &Server, name: &str) -> String {
    let file = server.folder().join(name);
    fs::write(&file, server.idemctl(&["list", "-o", "json"]).exits(0).stdout).unwrap();
    file.display().to_string()
}

/// Two moments between which everything happened that can.
fn two_moments(server: &Server) -> [String; 2] {
    for key in ["same", "gone", "done", "anew", "longer"] {
        server.set(&format!("idempotency:{key}"), PENDING, 50_000_000);
    }
    server.put("idempotency:stuck", PENDING);
    server.set("idem:started:owned", "worker-1", 50_000_000);
    let before = moment(server, "before");
    server.send::<()>(&[b"DEL", b"idempotency:gone"]);
    server.send::<()>(&[b"SET", b"idempotency:done", DONE.as_bytes(), b"KEEPTTL"]);
    server.send::<()>(&[b"SET", b"idempotency:anew", br#"{"status": "PENDING"}"#, b"KEEPTTL"]);
    server.send::<()>(&[b"PEXPIRE", b"idempotency:longer", b"60000000"]);
    server.send::<()>(&[b"SET", b"idem:started:owned", b"worker-2", b"KEEPTTL"]);
    server.set("idempotency:new", DONE, 50_000_000);
    [before, moment(server, "after")]
}

/// What happened to each key, in the order of the keys.
fn happened(run: &Run) -> Vec<[String; 2]> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let what =
        |line: &Value| line["how"].as_str().map_or_else(|| text(line, "what"), str::to_owned);
    let mut found: Vec<_> =
        run.json_lines().iter().map(|line| [text(line, "key"), what(line)]).collect();
    found.sort();
    found
}

const HAPPENED: [[&str; 2]; 6] = [
    ["anew", "retaken"],
    ["done", "state"],
    ["gone", "removed"],
    ["longer", "renewed"],
    ["new", "came"],
    ["owned", "retaken"],
];

/// Rule: two values that are equal as far as they were read are not called unchanged. Revert: if such a pair counts as the same,
/// three changed amounts are "3 unchanged", exit 0.
#[test]
fn a_pair_that_was_compared_in_part_is_not_unchanged() {
    let server = Server::start();
    let charge = |amount: u32| {
        for key in ["a", "b", "c"] {
            let body = format!("{}{amount}", "QUJD".repeat(80));
            let value =
                format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{body}"}}"#);
            let redis_key = format!("idempotency:{key}");
            match amount {
                100 => server.set(&redis_key, &value, 50_000_000),
                _ => server.send(&[b"SET", redis_key.as_bytes(), value.as_bytes(), b"KEEPTTL"]),
            }
        }
    };
    charge(100);
    let heads = moment(&server, "heads");
    let whole = server.folder().join("whole").display().to_string();
    fs::write(&whole, server.idemctl(&["list", "--full", "-o", "json"]).exits(0).stdout).unwrap();
    let heads_again = moment(&server, "heads-again");
    server.idemctl(&["diff", &heads, &heads_again]).exits(3).says("3 not compared to the end");
    server.idemctl(&["diff", &whole]).exits(0).says("3 unchanged, 0 not compared");
    charge(999);
    for words in
        [&["diff", &heads][..], &["diff", &whole, &heads_again], &["diff", &heads, &heads_again]]
    {
        let run = server.idemctl(words).exits(3);
        run.says("0 unchanged, 3 not compared to the end.");
    }
    // What remains is read as deep as the file was.
    server.idemctl(&["diff", &whole]).exits(1).says("3 with another value");
}

/// Rule: a filter by age leaves out what nothing proves, and counts it, as in every command.
#[test]
fn a_filter_by_age_leaves_out_ages_that_nothing_proves() {
    let server = Server::holding(&[("idempotency:a", DONE, 50_000_000)]);
    let before = moment(&server, "before");
    server.set("idempotency:b", DONE, 50_000_000);
    let run = server.idemctl(&["diff", &before, "--older-than", "1h"]).exits(0);
    run.says("Skipped because their age is only estimated or unknown: 1 before, 2 after.");
    server.states(&[("go-middleware", "result_ttl = \"24h\"")]);
    let before = moment(&server, "before");
    server.set("idempotency:c", DONE, 50_000_000);
    let run = server.idemctl(&["diff", &before, "--older-than", "1h"]).exits(1);
    run.says("1 added");
    assert!(!run.stderr.contains("Skipped"), "{}", run.all());
}

#[test]
fn two_moments_tell_what_came_went_changed_and_was_taken_anew() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    // Without a server.
    let run =
        idemctl(server.folder()).args(["diff", &before, &after, "-o", "jsonl"]).run().exits(1);
    assert_eq!(happened(&run), HAPPENED);
    run.says(
        "1 added, 1 gone (0 expired, 1 before their expiry), 1 with another state, 2 with another value, 1 with another expiry, 2 \
        unchanged, 0 not compared to the end.",
    );
    let now = server.idemctl(&["diff", &before, "-o", "jsonl"]).exits(1);
    assert_eq!(happened(&now), HAPPENED);
    let json = idemctl(server.folder())
        .args(["diff", &before, &after, "-o", "json"])
        .run()
        .exits(1)
        .json();
    assert_eq!(
        (&json["same"], &json["retaken"], &json["format"]),
        (&2.into(), &2.into(), &1.into())
    );
    let table = idemctl(server.folder()).args(["diff", &before, &after]).run().exits(1);
    let text = table.text();
    assert!(
        text.starts_with("WHAT     STATE                     SCHEMA            KEY\n"),
        "{text}"
    );
    table.shows("\n\nSCHEMA         BY       RECORDS      BEFORE  AFTER  CHANGE\n");
    table.shows("go-middleware  state    completed         0      2      +2\n");
    table.shows("go-middleware  status   2xx               0      2      +2\n");
    table.shows("go-middleware  finding  no-expiry         1      1       -\n");
    table.shows("state    in-progress -> completed  go-middleware     done\n");
    // The other way round.
    let back =
        idemctl(server.folder()).args(["diff", &after, &before, "-o", "jsonl"]).run().exits(1);
    assert!(happened(&back).contains(&["new".to_owned(), "removed".to_owned()]));
}

/// Rule: the columns are aligned in every locale, and each key is whole.
#[test]
fn rows_are_aligned() {
    let server = Server::start();
    let key = |number: u8| format!("6e3ca9a3-5d9d-48c6-b6ed-1a88aa7864f{number}");
    for number in [1, 2] {
        server.set(&format!("idempotency:{}", key(number)), PENDING, 50_000_000);
    }
    let before = moment(&server, "before");
    server.set(&format!("idempotency:{}", key(1)), DONE, 50_000_000);
    server.set(&format!("idempotency:{}", key(3)), DONE, 50_000_000);
    for locale in ["C", "C.UTF-8"] {
        let mut command = server.command();
        command.env("LC_ALL", locale);
        let text = plain(&shown_on(120, &command, &["diff", &before]).exits(1));
        let heading = text.lines().find(|line| line.contains("WHAT")).unwrap();
        for number in [1, 3] {
            let of_key = text.lines().find(|line| line.contains(&key(number))).unwrap();
            assert_eq!(of_key.find(&key(number)), heading.find("KEY"), "{locale}: {text}");
        }
        assert!(text.contains("in-progress -> completed"), "{locale}: {text}");
    }
}

#[test]
fn nothing_that_differs_is_exit_status_0() {
    let server = Server::start();
    two_moments(&server);
    let now = moment(&server, "now");
    server.idemctl(&["diff", &now]).exits(0).says("0 added, 0 gone");
    server.idemctl(&["diff", &now, &now]).exits(0).says("7 unchanged");
    let text = server.idemctl(&["list", "-o", "jsonl"]).exits(0).stdout;
    // A key that a list shows twice is one record.
    let twice = [&text[..], &text].concat();
    let run = server.idemctl_fed(&["diff", &now, "-", "-o", "json"], &twice).exits(0);
    assert_eq!(run.json()["same"], 7);
}

#[test]
fn what_was_read_whole_is_compared_with_what_was_read_in_part() {
    let long = format!(
        r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"}}"#,
        "QUJD".repeat(2_000)
    );
    let server = Server::holding(&[("idempotency:long", long, 50_000_000)]);
    let part = moment(&server, "part");
    let whole = server.idemctl(&["list", "--full", "-o", "jsonl"]).exits(0).stdout;
    server.idemctl_fed(&["diff", &part, "-"], &whole).exits(3);
}

/// Rule: a scan of now has every finding that a list has, also those that the length of a value tells.
#[test]
fn now_has_the_findings_of_a_list() {
    let large = format!(
        r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"}}"#,
        "QUJD".repeat(500_000)
    );
    let server = Server::holding(&[("idempotency:large", large, 50_000_000)]);
    let before = moment(&server, "before");
    let run = server.idemctl(&["diff", &before, "-o", "json"]).exits(3);
    let summary = run.json()["summary"].as_array().unwrap().clone();
    let oversized = summary.iter().find(|kind| kind["name"] == "oversized").unwrap();
    assert_eq!(
        (&oversized["before"], &oversized["after"]),
        (&1.into(), &1.into()),
        "{}",
        run.all()
    );
}

/// Rule: a list that lacks records says so, and so does what is compared with it. Lines do not say it.
#[test]
fn a_list_that_is_not_complete_is_compared_and_told() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    let text = fs::read_to_string(&before).unwrap();
    let partial = server.folder().join("partial");
    // Another program may have laid the document out anew.
    let laid_out =
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
    fs::write(&partial, laid_out.replace("\"complete\": true", "\"complete\": false")).unwrap();
    let partial = partial.to_str().unwrap();
    for files in [[partial, &after], [&before, partial]] {
        let run = server.idemctl(&["diff", files[0], files[1], "-o", "jsonl"]).exits(3);
        run.says("partial is not complete");
    }
    let run = server.idemctl(&["diff", partial, &after, "-o", "jsonl"]).exits(3);
    assert_eq!(happened(&run), HAPPENED);
    // What the second list lacks may still exist.
    let run = server.idemctl(&["diff", &before, partial, "-o", "jsonl"]).exits(3);
    run.says("It is unknown which records are gone");
    assert!(happened(&run).iter().all(|[_, what]| what != "removed"), "{}", run.all());
    let lines = server.folder().join("lines");
    fs::write(&lines, server.idemctl(&["list", "-o", "jsonl"]).exits(0).stdout).unwrap();
    let lines = lines.to_str().unwrap();
    server
        .idemctl(&["diff", lines])
        .exits(0)
        .says("JSON lines do not show whether a list is complete");
}

/// Rule: a list that is not whole is no moment: what is missing would count as gone.
#[test]
fn what_is_no_whole_list_is_refused() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    let bad = server.folder().join("bad");
    let text = fs::read_to_string(&after).unwrap();
    let lines =
        String::from_utf8(server.idemctl(&["list", "-o", "jsonl"]).exits(0).stdout).unwrap();
    let old = text.replace("\"identity\"", "\"other\"");
    for (content, says) in [
        (&text[..text.len() - 20], "the list is not complete"),
        (&lines[..lines.len() - 20], "the list is not complete"),
        (&text[..text.find("\"spared\"").unwrap()], "the list is not complete"),
        ("{\"format\":1,\"records\":[\n", "the list is not complete"),
        ("{\"format\":1,\"rows\":[],\"complete\":true}\n", "this is not a line of a list"),
        ("{\"format\":1,\"records\":[]}\n", "this is not a line of a list"),
        ("hello\n", "this is not a line of a list"),
        (&old, "this is not a line of a list"),
    ] {
        fs::write(&bad, content).unwrap();
        let bad = bad.to_str().unwrap();
        for files in [[bad, &before], [&before, bad]] {
            server.idemctl(&["diff", files[0], files[1]]).exits(2).says("bad:").says(says);
        }
    }
    server
        .idemctl(&["diff", "/nowhere", &before])
        .exits(2)
        .says("cannot read the snapshot /nowhere");
    assert!(Command::new("mkfifo").arg(server.folder().join("pipe")).status().unwrap().success());
    let pipe = server.folder().join("pipe").display().to_string();
    // Nobody writes to the pipe: it is refused without waiting for a writer.
    server.idemctl(&["diff", &pipe, &before]).exits(2).says("must be a regular file");
}

#[test]
fn what_expired_is_told_from_what_was_removed_before() {
    let server = Server::holding(&[
        ("idempotency:ends", PENDING, 1_500),
        ("idempotency:removed", PENDING, 50_000_000),
        ("idempotency:stays", PENDING, 60_000_000),
    ]);
    server.put("idempotency:stuck", PENDING);
    let before = moment(&server, "before");
    server.send::<()>(&[b"DEL", b"idempotency:removed", b"idempotency:stuck"]);
    until("the record expires", || server.get("idempotency:ends").is_none());
    let after = moment(&server, "after");
    let wanted = [["ends", "expired"], ["removed", "removed"], ["stuck", "removed"]];
    for words in [&["diff", &before, "-o", "jsonl"][..], &["diff", &before, &after, "-o", "jsonl"]]
    {
        assert_eq!(happened(&server.idemctl(words).exits(1)), wanted, "{words:?}");
    }
    let json = server.idemctl(&["diff", &before, "-o", "json"]).exits(1).json();
    assert_eq!(
        (&json["went"], &json["expired"], &json["removed"]),
        (&3.into(), &1.into(), &2.into())
    );
    // Where nothing tells the time of the second moment, nobody knows.
    let nothing = server.folder().join("nothing");
    fs::write(&nothing, "{\"format\":1,\"records\":[],\"complete\":true}\n").unwrap();
    let run = server.idemctl(&["diff", &before, nothing.to_str().unwrap(), "-o", "jsonl"]).exits(1);
    assert!(happened(&run).contains(&["ends".to_owned(), "went".to_owned()]), "{}", run.all());
}

#[test]
fn filters_choose_what_passes_at_either_moment() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    let told = |filter: &[&str]| {
        let words = [&["diff", &before, &after, "-o", "jsonl"][..], filter].concat();
        let from_files = happened(&server.idemctl(&words).exits(1));
        let now = [&["diff", &before, "-o", "jsonl"][..], filter].concat();
        assert_eq!(happened(&server.idemctl(&now).exits(1)), from_files, "{filter:?}");
        from_files.into_iter().map(|[key, _]| key).collect::<Vec<_>>()
    };
    assert_eq!(told(&["--match", "d*"]), ["done"]);
    assert_eq!(told(&["--state", "completed"]), ["done", "new"]);
    assert_eq!(told(&["--status", "2xx"]), ["done", "new"]);
    assert_eq!(told(&["--owner", "worker-?"]), ["owned"]);
    let none = server.idemctl(&["diff", &before, &after, "--finding", "no-expiry"]).exits(0);
    none.shows("go-middleware  finding  no-expiry         1      1       -").says("1 unchanged");
    server
        .idemctl(&["diff", &before, "--body-contains", "x"])
        .exits(2)
        .says("does not contain bodies");
}

/// Rule: moments that were to hold different records are not compared: what one of them was not to hold would seem to have
/// come or gone.
#[test]
fn moments_of_different_records_are_not_compared() {
    let server = Server::start();
    for index in 0..4 {
        server.set(&format!("idempotency:k{index}"), DONE, 50_000_000);
    }
    let list = |name: &str, words: &[&str]| {
        let file = server.folder().join(name);
        fs::write(&file, server.idemctl(words).exits(0).stdout).unwrap();
        file.display().to_string()
    };
    let all = list("all", &["list", "-o", "json"]);
    server.idemctl(&["diff", &all]).exits(0);
    let limited = list("limited", &["list", "--limit", "2", "-o", "json"]);
    server.idemctl(&["diff", &limited]).exits(3).says("limited is not complete");
    let sorted = list("sorted", &["list", "--sort", "key", "-o", "json"]);
    server.idemctl(&["diff", &sorted]).exits(0);
    let filtered = list("filtered", &["list", "--status", "2xx", "-o", "json"]);
    let of_schema = list("of_schema", &["list", "--schema", "express", "-o", "json"]);
    server.send::<()>(&[b"COPY", b"idempotency:k0", b"idempotency:k0", b"DB", b"1"]);
    let other_db = list("other_db", &["-n", "1", "list", "-o", "json"]);
    let inspected = list("inspected", &["inspect", "k1", "-o", "json"]);
    for (other, says) in [
        (&filtered, "one was listed with --status 2xx, the other with no filter"),
        (&of_schema, "one holds the records of express, the other those of "),
        (&other_db, "one was read from "),
        (&inspected, "this is not a line of a list"),
    ] {
        server.idemctl(&["diff", other]).exits(2).says(says);
        server.idemctl(&["diff", other, &all]).exits(2);
        server.idemctl(&["diff", &all, other]).exits(2);
    }
    server.idemctl(&["diff", &filtered, "--status", "2xx"]).exits(0);
    server.idemctl(&["diff", &filtered, &filtered]).exits(0);
    server.idemctl(&["diff", &of_schema, "--schema", "express"]).exits(0);
    let elsewhere = Server::start();
    elsewhere.idemctl(&["diff", &all]).exits(2).says("one was read from ");
    let empty = list("empty", &["list", "--schema", "reference", "-o", "jsonl"]);
    server.idemctl(&["diff", &empty]).exits(3).says("empty is not complete");
}

/// Rule: --schema restricts both snapshots, whatever schemas the first one has.
#[test]
fn a_schema_restricts_both_snapshots() {
    let server = Server::start();
    server.set("idempotency:a", DONE, 50_000_000);
    server.set("idem:kept", r#"{"status":"IN_PROGRESS"}"#, 50_000_000);
    server.set("idem:b", r#"{"status":"IN_PROGRESS"}"#, 50_000_000);
    let before = moment(&server, "before");
    server.send::<()>(&[b"DEL", b"idempotency:a", b"idem:b"]);
    let after = moment(&server, "after");
    for second in [&[][..], &[after.as_str()]] {
        let words = [&["diff", &before], second, &["--schema", "express", "-o", "jsonl"]].concat();
        let run = server.idemctl(&words).exits(1);
        assert_eq!(happened(&run), [["b".to_owned(), "removed".to_owned()]], "{}", run.all());
    }
    let alone = server.idemctl(&["list", "--schema", "express", "-o", "json"]).exits(0);
    let only = server.folder().join("only.json");
    fs::write(&only, &alone.stdout).unwrap();
    let only = only.display().to_string();
    server.idemctl(&["diff", &only, "--schema", "express,go-middleware"]).exits(2);
}
