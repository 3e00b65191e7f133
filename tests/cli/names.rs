//! A name means one record: what `list -o name` prints, what other commands take, and what is ambiguous.

use crate::support::{FOREVER, LOCK, PENDING, Run, Runs as _, Server, binary};

const BAD: &str = r#"{"status":"COMPLETED","statusCode":500,"headers":{},"body":"bad"}"#;

const GOOD: &str = r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":"precious"}"#;

const HOUR: u64 = 3_600_000;

/// Keys that clients chose so that they look like something else.
fn chosen_by_strangers() -> Vec<Vec<u8>> {
    let texts = [
        "idem:victim",
        "idem:idem:victim",
        "victim\r",
        "victim\n",
        "x\nvictim",
        "x\0victim",
        " victim",
        "victim ",
        "\"victim\"",
        "express/victim",
        "express/\"victim\"",
        "0/express/victim",
        "../express/victim",
        "--all",
        "--yes",
        "-",
        "-0",
        "*",
        "v?ctim\\",
        "\u{202e}mitciv",
    ];
    let mut keys: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    keys.push(b"\xff\x1b[2Jvictim".to_vec());
    keys
}

fn redis_key(key: &[u8]) -> Vec<u8> {
    [b"idem:", key].concat()
}

fn names(server: &Server, words: &[&str]) -> Vec<u8> {
    server.idemctl(&[&["list", "-o", "name"], words].concat()).exits(0).stdout
}

fn has(server: &Server, redis_key: &[u8]) -> bool {
    server.send::<usize>(&[b"EXISTS", redis_key]) == 1
}

/// Rule: what is listed goes, and nothing else, whatever the keys look like.
#[test]
fn a_purge_of_listed_names_removes_exactly_the_listed_records() {
    for (listed, read) in [(&[][..], &[][..]), (&["-0"], &["-0"]), (&[], &["--schema", "express"])]
    {
        let server = Server::start();
        let records = chosen_by_strangers().into_iter().map(|key| (redis_key(&key), BAD));
        server.fill(records.chain([(redis_key(b"victim"), GOOD)]), HOUR);
        let list = names(&server, &[&["--schema", "express", "--status", "500"], listed].concat());
        let words = [&["purge", "-", "--yes"], read].concat();
        let run = server.idemctl_fed(&words, &list).exits(0);
        run.says(format!("{0} of {0} records purged", chosen_by_strangers().len()));
        assert_eq!(server.keys(), ["idem:victim"]);
    }
}

/// Rule: the same for one key at a time, for then no other line of the list can stand in for a lost one.
#[test]
fn a_purge_of_one_listed_name_removes_that_record() {
    let server = Server::start();
    server.fill([(redis_key(b"victim"), GOOD)], HOUR);
    for key in chosen_by_strangers().into_iter().take(10) {
        server.fill([(redis_key(&key), BAD)], HOUR);
        let list = names(&server, &["--status", "500"]);
        server.idemctl_fed(&["purge", "-", "--yes"], &list).exits(0).says("1 of 1 record purged");
        assert_eq!(server.keys(), ["idem:victim"], "{}", key.escape_ascii());
    }
}

/// Rule: what -0 writes, -0 reads: no byte of a key is lost.
#[test]
fn names_come_back_from_both_kinds_of_lists() {
    let server = Server::start();
    server.fill(chosen_by_strangers().iter().map(|key| (redis_key(key), BAD)), HOUR);
    for ends in [&[][..], &["-0"]] {
        let list = names(&server, &[&["--schema", "express"], ends].concat());
        let read =
            server.idemctl_fed(&[&["inspect", "-", "-o", "jsonl"], ends].concat(), &list).exits(0);
        assert_eq!(read.json_lines().len(), chosen_by_strangers().len(), "{ends:?}");
    }
    let raw = names(&server, &["--match", "*2J*", "-0"]);
    assert_eq!(raw, b"express/\xff\x1b[2Jvictim\0");
    assert_eq!(names(&server, &["--match", "*2J*"]), b"express/\"\\xff\\x1b[2Jvictim\"\n");
    server.idemctl(&["list", "-0"]).exits(2).says("add `-o name`");
}

/// Both a record and a key that is the Redis key of the record.
fn twins() -> Server {
    let server = Server::holding(&[
        ("idempotency:victim", PENDING, HOUR),
        ("idempotency:idempotency:victim", PENDING, HOUR),
    ]);
    server.set("idempotency:other", PENDING, HOUR);
    server
}

/// Every command that changes a record that is named.
const CHANGES: [&[&str]; 6] = [
    &["purge", "--state", "in-progress"],
    &["force-unlock"],
    &["extend", "--for", "2h"],
    &["complete", "--status", "200", "--body", ""],
    &["release"],
    &["begin"],
];

fn change(server: &Server, command: &[&str], keys: &[&str]) -> Run {
    server.idemctl(&[command, &["--yes"], keys].concat())
}

#[test]
fn a_key_that_names_two_records_changes_neither() {
    let server = twins();
    for command in CHANGES {
        let run = change(&server, command, &["idempotency:victim"]).exits(2);
        run.says("go-middleware/victim").says("go-middleware/idempotency:victim");
        change(
            &server,
            &[command, &["--schema", "go-middleware"]].concat(),
            &["idempotency:victim"],
        )
        .exits(2);
    }
    assert!(server.audited().is_empty());
    for command in &CHANGES[..3] {
        let server = twins();
        let run = change(&server, command, &["idempotency:victim", "other"]).exits(3);
        run.says("idempotency:victim is ambiguous: it names ");
        let changed: Vec<_> =
            server.audited().iter().map(|entry| entry["redis_key"].clone()).collect();
        assert_eq!(changed, ["idempotency:other"], "{command:?}");
    }
    let shown = server.idemctl(&["inspect", "idempotency:victim", "-o", "json"]).exits(0);
    assert_eq!(shown.json()["records"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_name_of_the_message_is_the_one_record() {
    // This schema has no release step.
    for command in &CHANGES[..4] {
        for (name, meant) in [
            ("go-middleware/victim", "idempotency:victim"),
            ("go-middleware/idempotency:victim", "idempotency:idempotency:victim"),
        ] {
            let server = twins();
            change(&server, command, &[name]).exits(0);
            let changed: Vec<_> =
                server.audited().iter().map(|entry| entry["redis_key"].clone()).collect();
            assert_eq!(changed, [meant], "{command:?}");
        }
    }
}

#[test]
fn a_key_of_several_schemas_changes_none() {
    let server = Server::holding(&[("idempotency:k", PENDING, HOUR), ("idem:k", BAD, HOUR)]);
    for command in [&["purge"][..], &["force-unlock"], &["extend", "--for", "2h"]] {
        let run = change(&server, command, &["k"]).exits(2);
        run.says("express/k").says("go-middleware/k");
    }
    assert_eq!(server.size(), 2);
    change(&server, &["purge"], &["express/k"]).exits(0);
    assert_eq!(server.keys(), ["idempotency:k"]);
}

/// Rule: a key may look like a name without quotes.
#[test]
fn a_key_that_looks_like_a_name_is_told_apart() {
    let server = Server::holding(&[("idem:abc", BAD, HOUR), ("idem:express/abc", BAD, HOUR)]);
    server.set("idem:payments/abc", BAD, HOUR);
    let run = change(&server, &["purge"], &["express/abc"]).exits(2);
    run.says(r#"'express/"abc"' and express/express/abc"#);
    assert_eq!(server.size(), 3);
    change(&server, &["purge"], &["express/abc", "--schema", "go-middleware"])
        .exits(3)
        .says("not found: express/abc");
    change(&server, &["purge"], &["payments/abc"]).exits(0);
    change(&server, &["purge"], &[r#"express/"abc""#]).exits(0);
    assert_eq!(server.keys(), ["idem:express/abc"]);
    change(&server, &["purge"], &["express/abc"]).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a CR before a line feed belongs to the key, because another record may have the key without it. Revert: if it is cut off,
/// the wrong record goes.
#[test]
fn a_carriage_return_at_the_end_of_a_line_belongs_to_the_key() {
    let server = Server::holding(&[("idem:victim", GOOD, HOUR), ("idem:victim\r", BAD, HOUR)]);
    server.idemctl_fed(&["purge", "-", "--yes"], b"victim\r\n").exits(0);
    assert_eq!(server.keys(), ["idem:victim"]);
    server.idemctl_fed(&["purge", "-", "--yes"], b"victim\r\n").exits(3).says("not found");
    assert_eq!(server.keys(), ["idem:victim"]);
}

#[test]
fn a_schema_without_a_prefix_is_named_by_the_name() {
    let server = Server::holding(&[("bare", r#"{"status":0}"#, HOUR)]);
    let list = names(&server, &["--schema", "go-chi"]);
    assert_eq!(list, b"go-chi/\"bare\"\n");
    change(&server, &["force-unlock"], &["bare"]).exits(2);
    change(&server, &["extend", "--for", "2h"], &["go-chi/bare"]).exits(0);
    server.idemctl_fed(&["purge", "-", "--state", "in-progress", "--yes"], &list).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a name of another database names nothing in this one.
#[test]
fn a_record_of_another_database_is_named_with_its_database() {
    let server = Server::holding(&[("idem:a", BAD, HOUR)]);
    server.send::<i64>(&[b"MOVE", b"idem:a", b"3"]);
    server.set("idem:a", GOOD, HOUR);
    server.set("idem:3/express/a", GOOD, HOUR);
    let list = names(&server, &["--all-dbs", "--status", "500"]);
    assert_eq!(list, b"3/express/\"a\"\n");
    server.idemctl_fed(&["purge", "-", "--yes"], &list).exits(3).says("not found: 3/express/\"a\"");
    server
        .idemctl_fed(&["purge", "-", "--yes", "-n", "3"], &list)
        .exits(0)
        .says("1 of 1 record purged");
    assert_eq!(server.size(), 2);
}

/// Rule: the same for what comes back.
#[test]
fn a_key_that_names_two_records_of_a_backup_brings_back_neither() {
    let server = Server::holding(&[("idem:victim", GOOD, HOUR), ("idem:idem:victim", BAD, HOUR)]);
    let backup =
        server.idemctl(&["purge", "--all", "--yes", "-o", "json"]).exits(0).json()["backup"]
            .clone();
    let restore = ["restore", backup.as_str().unwrap()];
    let op = server.audited()[0]["op"].clone();
    for command in [&restore[..], &["undo", op.as_str().unwrap()]] {
        let only = |keys: &[&str]| {
            let only = keys.iter().flat_map(|key| ["--only", *key]).collect::<Vec<_>>();
            server.idemctl(&[command, &["--yes"], &only].concat())
        };
        only(&["idem:victim"]).exits(2).says("express/victim").says("express/idem:victim");
        assert_eq!(server.size(), 0);
        only(&["idem:victim", "express/victim"]).exits(3);
        assert_eq!(server.keys(), ["idem:victim"]);
        assert!(has(&server, b"idem:victim"));
        server.send::<usize>(&[b"DEL", b"idem:victim"]);
    }
}

/// Rule: a listed name is one record's, also if a client's key looks like its short form.
#[test]
fn no_key_shields_a_listed_record() {
    let server =
        Server::holding(&[("idem:order-1", BAD, HOUR), ("idem:express/order-1", GOOD, HOUR)]);
    let list = names(&server, &["--schema", "express", "--status", "500"]);
    assert_eq!(list, b"express/\"order-1\"\n");
    server.idemctl_fed(&["purge", "-", "--yes"], &list).exits(0).says("1 of 1 record purged");
    assert_eq!(server.keys(), ["idem:express/order-1"]);
}

/// Rule: a name from which a shell took the quotes names no other record.
#[test]
fn a_name_without_its_quotes_names_nothing_else() {
    let server = Server::holding(&[("idem:x\n", BAD, HOUR), ("idem:x\\n", BAD, HOUR)]);
    let list = names(&server, &["--schema", "express"]);
    for line in String::from_utf8(list).unwrap().lines() {
        // As an argument of a shell, which takes the quotes away.
        let script = format!("exec \"$0\" -s \"$1\" purge --yes {line}");
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script]).arg(binary()).arg(server.socket());
        let run = shell.env("HOME", server.folder()).run();
        assert_eq!(server.size(), 2, "{line}: {}", run.all());
    }
}
/// Rule: what is limited is the key, not the line that names the key.
#[test]
fn a_large_key_is_named_by_a_longer_line() {
    let server = Server::start();
    let odd = [b"idem:".as_slice(), &[0xff; 300 << 10]].concat();
    let full = [b"idem:".as_slice(), &[b'k'; 1 << 20]].concat();
    for (key, more) in [(&odd, &[][..]), (&full, &[]), (&full, &["-0"])] {
        server.send::<()>(&[b"SET", key, BAD.as_bytes(), b"PX", b"3600000"]);
        let list = names(&server, &[&["--status", "500"], more].concat());
        assert!(list.len() > 1 << 20);
        server.idemctl_fed(&[&["inspect", "-", "-o", "json"], more].concat(), &list).exits(0);
        server
            .idemctl_fed(&[&["purge", "-", "--yes"], more].concat(), &list)
            .exits(0)
            .says("1 of 1 record purged");
        assert_eq!(server.size(), 0);
    }
    for key in [[b'k'; (1 << 20) + 1].to_vec(), b"\\xff".repeat((1 << 20) + 1)] {
        let quoted = [b"express/\"", key.as_slice(), b"\""].concat();
        server
            .idemctl_fed(&["purge", "-", "--yes"], &quoted)
            .exits(2)
            .says("a key is larger than 1 MiB");
    }
}

/// Rule: a record that is named in several ways is one.
#[test]
fn a_record_that_is_named_in_different_words_is_dealt_with_once() {
    let server = Server::start();
    let named = ["L", "idem:lock:L", "event-consumer/L"];
    for command in [&["force-unlock"][..], &["extend", "--for", "1h"]] {
        server.set("idem:lock:L", "1", 60_000);
        let run =
            server.idemctl(&[command, &["--yes", "-o", "json"], &named].concat()).exits(0).json();
        assert_eq!(run["locks"].as_array().map(Vec::len), Some(1), "{run}");
        assert_eq!(run["done"], 1);
    }
    let run = server.idemctl(&[&["inspect", "-o", "jsonl"][..], &named].concat()).exits(0);
    assert_eq!(run.json_lines().len(), 1, "{}", run.all());
    server.set("idem:c", BAD, HOUR);
    let run = server
        .idemctl(&["purge", "--yes", "-o", "json", "c", "idem:c", "express/c"])
        .exits(0)
        .json();
    assert_eq!((&run["total"], &run["done"]), (&1.into(), &1.into()), "{run}");
    // What names a record in two pages of a list names one, too.
    server.set("idem:c", BAD, HOUR);
    let others = (0..300).map(|number| format!("k{number}")).collect::<Vec<_>>().join("\n");
    server.fill((0..300).map(|number| (format!("idem:k{number}"), BAD)), HOUR);
    let list = format!("c\n{others}\nidem:c\n");
    let run =
        server.idemctl_fed(&["purge", "--yes", "-o", "json", "-"], list.as_bytes()).exits(0).json();
    assert_eq!((&run["total"], &run["done"]), (&301.into(), &301.into()), "{run}");
}

/// Rule: a record whose client sent an empty key is a record as any other, named with quotes. Nothing empty names it, because
/// that is what a variable without a value leaves.
#[test]
fn the_record_of_an_empty_key_is_counted_named_and_changed_by_its_name() {
    const NAME: &str = "express/\"\"";
    let result = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;
    let server = Server::holding(&[("idem:", LOCK, FOREVER), ("idem:a", result, 1_000_000)]);
    server.idemctl(&["check"]).exits(2).shows("1 stuck lock").shows("e.g. \"\"");
    let sweep = server.idemctl(&["sweep", "--orphaned", "--dry-run"]).exits(0);
    sweep.shows("\"\" (express)");
    let list = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    let keys: Vec<_> =
        list["records"].as_array().unwrap().iter().map(|record| &record["key"]).collect();
    assert!(keys.len() == 2 && keys.contains(&&"".into()), "{list:#}");
    server.idemctl(&["list"]).exits(0).shows("\"\" ");
    for name in [NAME, "idem:"] {
        let inspected = server.idemctl(&["inspect", name, "-o", "json"]).exits(0).json();
        assert_eq!(inspected["records"][0]["key"], "", "{inspected:#}");
    }
    for words in [["inspect", ""], ["purge", ""], ["force-unlock", ""], ["inspect", "express/"]] {
        assert_ne!(server.idemctl(&words).code, 0, "{words:?}");
    }
    server.idemctl(&["purge", "", "--yes"]).exits(2).says("SCHEMA/\"\"");
    assert_eq!(server.size(), 2);

    for end in [&[][..], &["-0"]] {
        let listed =
            names(&server, &[&["--schema", "express", "--state", "in-progress"], end].concat());
        let unlock = [&["force-unlock", "-", "--yes"], end].concat();
        server.idemctl_fed(&unlock, &listed).exits(0);
        assert!(!has(&server, b"idem:") && has(&server, b"idem:a"));
        server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1");
        assert!(has(&server, b"idem:"));
    }
    server.idemctl(&["purge", "--all", "--state", "any", "--yes"]);
    server.idemctl(&["force-unlock", NAME, "--yes"]);
    assert!(!has(&server, b"idem:"));
    // A schema with two Redis keys has two of them.
    server.put("idem:started:", "9cdf8104-2072-4119-abbc-c7ddc8386930");
    let list = server.idemctl(&["list", "-o", "name"]).exits(0).text();
    assert!(list.contains("event-driven/\"\""), "{list}");
}

/// Rule: an idempotency key that looks like the name of a record of another schema is not said to be
/// absent. Revert: without `excluded_because`.
#[test]
fn a_key_that_looks_like_a_name_of_an_excluded_schema_is_not_called_absent() {
    let server = Server::start();
    let key = "express/k1";
    let begin = ["begin", "reference/express/k1", "--schema", "reference", "--owner", "o", "--yes"];
    server.idemctl(&begin).exits(0);
    for words in [
        &["inspect", key][..],
        &["force-unlock", key, "--dry-run"],
        &["extend", key, "--for", "1h", "--dry-run"],
        &["begin", key, "--owner", "p", "--dry-run"],
        &["purge", key, "--state", "in-progress", "--dry-run"],
        &["reconcile", key, "--older-than", "1s", "--ask", "echo unknown", "--dry-run"],
    ] {
        let run = server.idemctl(&[words, &["--schema", "reference"]].concat());
        assert_ne!(run.code, 0, "{words:?}");
        run.says("it names a record of express, which --schema excludes");
        run.says("write reference/ before it");
    }
    let words = ["inspect", "reference/express/k1", "--schema", "reference"];
    server.idemctl(&words).exits(0).shows("in-progress");
}

/// A record under a prefix, and another tenant's record of the same key without it.
fn tenants() -> Server {
    Server::holding(&[("t1:idem:victim", LOCK, HOUR), ("idem:victim", LOCK, HOUR)])
}

fn changed(server: &Server) -> Vec<serde_json::Value> {
    server.audited().iter().map(|entry| entry["redis_key"].clone()).collect()
}

/// Rule: a name means the record that was listed, also without the option that set its prefix.
/// Revert: `is_own: true` in `parse/keys.rs`.
#[test]
fn a_name_listed_under_a_prefix_means_the_record_there() {
    for command in &CHANGES[..4] {
        let server = tenants();
        let list = names(&server, &["--schema", "express", "--prefix", "t1:"]);
        assert_eq!(list, b"express@\"t1:\"/\"victim\"\n");
        let name = r#"express@"t1:"/victim"#;
        change(&server, command, &[name]).exits(0);
        assert_eq!(changed(&server), ["t1:idem:victim"], "{command:?}");
        let op = server.audited()[0]["op"].as_str().unwrap().to_owned();
        let undo = |only: &str| server.idemctl(&["undo", &op, "--yes", "--only", only]);
        undo("express/victim").exits(1).says(r#"under another prefix: 'express@"t1:"/victim'"#);
        undo(name).exits(0);
    }
    let server = tenants();
    let shown = server.idemctl(&["inspect", r#"express@"t1:"/victim"#, "-o", "json"]).exits(0);
    assert!(shown.text().contains("\"t1:idem:victim\""), "{}", shown.all());
    let list = names(&server, &["--schema", "express", "--prefix", "t1:"]);
    server.idemctl_fed(&["force-unlock", "-", "--yes"], &list).exits(0);
    assert_eq!(server.keys(), ["idem:victim"]);
}

/// Rule: a name of another prefix than the deployment's changes nothing, neither there nor here.
/// Revert: without the check in `catalog_to_change`.
#[test]
fn a_name_under_another_prefix_than_the_deployment_changes_nothing() {
    let server = tenants();
    server.configure(
        "default_context = \"t1\"\n[contexts.t1.deployment.express]\nprefix = \"t1:\"\n",
    );
    for command in CHANGES {
        let run = change(&server, command, &["express/victim"]).exits(2);
        run.says("express/victim has another prefix than this deployment");
        run.says(r#"whose record is 'express@"t1:"/victim'"#);
    }
    assert!(server.audited().is_empty());
    assert_eq!(server.size(), 2);
    let shown = server.idemctl(&["inspect", "express/victim", "-o", "json"]).exits(0);
    assert!(shown.text().contains("\"idem:victim\""), "{}", shown.all());
    // As the hint says.
    let words = ["express/victim", "--schema", "express", "--prefix", ""];
    change(&server, &["purge", "--state", "in-progress"], &words).exits(0);
    assert_eq!(server.keys(), ["t1:idem:victim"]);
}

/// Rule: a backup is read by the full names, too. Revert: without the prefix in `Word::means`.
#[test]
fn a_name_under_another_prefix_restores_nothing() {
    let server = tenants();
    let words = ["--schema", "express", "--prefix", "t1:", "-o", "json"];
    let purge = change(&server, &["purge", "--state", "in-progress"], &words).exits(0).json();
    let restore = |only: &str| {
        let backup = purge["backup"].as_str().unwrap();
        server.idemctl(&["restore", backup, "--yes", "--only", only])
    };
    restore("express/victim").exits(1).says(r#"under another prefix: 'express@"t1:"/victim'"#);
    assert_eq!(server.keys(), ["idem:victim"]);
    restore(r#"express@"t1:"/victim"#).exits(0);
    assert!(has(&server, b"t1:idem:victim"));
}

/// Rule: a name has its schema, so the schema of a published library is read.
#[test]
fn the_name_of_a_record_of_a_published_library_is_read() {
    const REDIS_KEY: &str = "f#0123456789abcdef0123456789abcdef";
    const HELD: &str = r#"{"status": "INPROGRESS", "expiration": 4102444800, "in_progress_expiration": 4102444800000}"#;
    let server = Server::holding(&[(REDIS_KEY, HELD, HOUR)]);
    let list = names(&server, &["--schema", "powertools-python"]);
    let name = String::from_utf8(list.clone()).unwrap();
    assert!(name.starts_with("powertools-python/"), "{name}");
    let shown = server.idemctl(&["inspect", name.trim(), "-o", "json"]).exits(0).json();
    assert_eq!(shown["records"][0]["state"], "in-progress");
    server.idemctl_fed(&["force-unlock", "-", "--yes"], &list).exits(0);
    assert_eq!(server.size(), 0);
    change(&server, &["undo"], &["--only", name.trim()]).exits(0);
    assert_eq!(server.size(), 1);
    let run = change(&server, &["release", "--schema", "powertools-python"], &["odd"]).exits(2);
    run.says("odd is not a key of this schema; `idemctl schema show` describes");
}

/// Rule: a client's key may look like a quoted name. Then both records stay, unless the list ends
/// its names with NUL. Revert: `keys` in `GivenKey::meanings` without those of a quoted name.
#[test]
fn a_key_that_looks_like_a_quoted_name_is_ambiguous_unless_names_end_with_nul() {
    let server =
        Server::holding(&[("idem:victim", BAD, HOUR), ("idem:express/\"victim\"", GOOD, HOUR)]);
    let run = change(&server, &["purge"], &["express/\"victim\""]).exits(2);
    run.says("express/victim").says(r#""express/\"express/\\\"victim\\\"\"""#).says("-0");
    assert_eq!(server.size(), 2);
    let list = names(&server, &["--status", "500", "-0"]);
    server.idemctl_fed(&["purge", "-", "-0", "--yes"], &list).exits(0).says("1 of 1 record purged");
    assert_eq!(server.keys(), ["idem:express/\"victim\""]);
}
