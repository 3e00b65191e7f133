//! `idemctl schema new` makes a folder to start from: a copy, or a draft that a person finishes.

use std::fs;
use std::path::PathBuf;

use crate::support::{FOREVER, Server};

const LOCK: &str = r#"{"status":"INPROGRESS","startedAt":1795223514263,"by":"w-1"}"#;
const RESULT: &str = r#"{"status":"COMPLETED","response":{"statusCode":201,"body":{"id":1},"headers":{}},"startedAt":1795223514263}"#;

fn seeded() -> Server {
    Server::holding(&[
        ("pay:v1:order-1", LOCK, 290_500),
        ("pay:v1:order-2", LOCK, 60_000),
        ("pay:v1:order-3", RESULT, 86_399_000),
        ("pay:v1:order-4", r#"{"status":"PARKED","startedAt":1795223514263,"note":null}"#, FOREVER),
    ])
}

fn folder(server: &Server, name: &str) -> PathBuf {
    server.folder().join(".config/idemctl/schemas").join(name)
}

fn drafted(server: &Server, name: &str, keys: &[&str]) -> String {
    server.idemctl(&[&["schema", "new", name, "--from"], keys].concat()).exits(0);
    fs::read_to_string(folder(server, name).join("schema.toml")).unwrap()
}

/// A draft with these states in place of the marks, and these TTLs; without a TTL if it is empty.
fn decided(draft: &str, states: &[&str], lock: &str, result: &str) -> String {
    let mut text = draft.to_owned();
    for state in states {
        text = text.replacen("state = \"DECIDE\"", &format!("state = \"{state}\""), 1);
    }
    for (name, ttl) in [("lock", lock), ("result", result)] {
        let line = if ttl.is_empty() { String::new() } else { format!("{name} = \"{ttl}\"") };
        text = text.replace(&format!("{name} = \"DECIDE\""), &line);
    }
    text
}

const PAYS: [&str; 4] = ["pay:v1:order-1", "pay:v1:order-2", "pay:v1:order-3", "pay:v1:order-4"];

#[test]
fn a_draft_says_what_the_keys_show_and_marks_what_a_person_has_to_know() {
    let server = seeded();
    // What is left of a TTL differs from run to run.
    let text = drafted(&server, "pays", &PAYS);
    let stable: Vec<_> = text.lines().filter(|line| !line.contains("longest time left")).collect();
    insta::assert_snapshot!(stable.join("\n"));
}

/// Rule: a draft is no schema until a person has decided. Revert: with `state = "completed"` in place of the mark the check
/// passes at once.
#[test]
fn a_draft_is_refused_until_what_is_marked_is_decided_and_then_reads_the_keys() {
    let server = seeded();
    let text = drafted(&server, "pays", &PAYS);
    let file = folder(&server, "pays").join("schema.toml");
    let check =
        || server.idemctl(&["schema", "check", &folder(&server, "pays").display().to_string()]);
    // Each of them at once, the TTLs and the states.
    let open = check().exits(1).text().matches("error: replace DECIDE: ").count();
    assert_eq!(open, text.matches("= \"DECIDE\"").count());
    let states = ["completed", "in-progress", "completed"];
    fs::write(&file, decided(&text, &states, "5m", "24h")).unwrap();
    check().exits(0).shows("pays: ok");
    let rows = server.idemctl(&["list", "--schema", "pays", "-o", "jsonl"]).exits(0).json_lines();
    let mut states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["completed", "completed", "in-progress", "in-progress"]);
    let found = server.idemctl(&["detect", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&found["groups"][0]["schema"], &found["groups"][0]["confidence"]),
        (&"pays".into(), &"is".into())
    );
}

#[test]
fn texts_that_say_nothing_are_opaque_and_words_are_forms() {
    let server = Server::start();
    server.fill(
        [
            ("lk:a", "token-a"),
            ("lk:b", "token-b"),
            ("word:a", "completed"),
            ("word:b", "processing"),
            ("word:c", "completed"),
            ("word:d", "processing"),
        ],
        9_000,
    );
    let locks = drafted(&server, "locks", &["lk:a", "lk:b"]);
    assert!(locks.contains("opaque = true "), "{locks}");
    let locks = decided(&locks, &["in-progress"], "10s", "");
    fs::write(folder(&server, "locks").join("schema.toml"), locks).unwrap();
    let words = drafted(&server, "words", &["word:a", "word:b", "word:c", "word:d"]);
    assert!(words.contains("equals = \"completed\"\nstate = \"DECIDE\""), "{words}");
    let words = decided(&words, &["completed", "in-progress"], "10s", "10s");
    fs::write(folder(&server, "words").join("schema.toml"), words).unwrap();
    for name in ["locks", "words"] {
        server.idemctl(&["schema", "check", &folder(&server, name).display().to_string()]).exits(0);
    }
}

#[test]
fn a_copy_has_the_scripts_and_the_new_name() {
    let server = Server::start();
    server.unnamed(&["schema", "new", "shop", "--from", "express"]).exits(0).says("and 2 scripts");
    let show = |name: &str, script: &str| {
        server.unnamed(&["schema", "show", name, "--script", script]).exits(0).stdout
    };
    for script in ["start_processing", "complete_processing"] {
        assert_eq!(show("shop", script), show("express", script));
    }
    server
        .unnamed(&["schema", "check", &folder(&server, "shop").display().to_string()])
        .exits(0)
        .shows("shop: ok");
    server.unnamed(&["schema", "new", "shop2", "--from", "shop"]).exits(0);
    assert!(
        fs::read_to_string(folder(&server, "shop2").join("schema.toml"))
            .unwrap()
            .contains("\nname = \"shop2\"\n")
    );
}

/// Rule: nothing is overwritten. Revert: without the look at the folder the second run fails with another message, or writes.
#[test]
fn nothing_is_overwritten_and_no_name_leads_out_of_the_folder() {
    let server = Server::start();
    fs::create_dir_all(folder(&server, "shop")).unwrap();
    server
        .unnamed(&["schema", "new", "shop", "--from", "express"])
        .exits(2)
        .says("was not overwritten");
    assert_eq!(fs::read_dir(folder(&server, "shop")).unwrap().count(), 0);
    server
        .unnamed(&["schema", "new", "../shop", "--from", "express"])
        .exits(2)
        .says("cannot be a schema's name");
    server
        .idemctl(&["schema", "new", "x", "--from", "nokey"])
        .exits(1)
        .says("neither the name of a schema nor a Redis key");
    server.send::<()>(&[b"SADD", b"h", b"v"]);
    server.idemctl(&["schema", "new", "x", "--from", "h"]).exits(2).says("`h` is neither a string");
    assert!(!folder(&server, "x").exists());
}

/// Keys whose values are packed: an array with a version behind, objects of PHP, and hashes.
fn packed() -> Server {
    let server = Server::start();
    let versioned = |document: &[u8]| {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, document).unwrap();
        [&encoder.finish().unwrap()[..], b":1"].concat()
    };
    server.set("rack:a", versioned(b"\x93\xcc\xc9\x80\x91\xa2hi"), 400_000);
    server.set("rack:b", versioned(b"\x93\xcc\xc8\x80\x91\xa2ho"), 500_000);
    server.set("php:a", r#"O:5:"Reply":2:{s:6:"status";i:201;s:4:"body";s:2:"hi";}"#, 400_000);
    server.set("php:b", r#"O:5:"Reply":2:{s:6:"status";i:200;s:4:"body";s:2:"ho";}"#, 400_000);
    let reply = br#"{"status":201,"body":"hi"}"#;
    server.send::<()>(&[
        b"HSET",
        b"hash:a",
        b"state",
        b"done",
        b"reply",
        reply,
        b"at",
        b"1795223514263",
    ]);
    server.send::<()>(&[b"HSET", b"hash:b", b"state", b"running", b"owner", b"w-1"]);
    server
}

/// Rule: what is packed is opened, a hash is its fields, and a draft whose marks are decided reads the keys that the draft is of.
#[test]
fn a_draft_tells_what_values_are_packed_in() {
    let server = packed();
    let rack = (
        &[r#"decode = ["suffix=:1", "zlib", "msgpack"]"#, r#"has = ["/0", "/1", "/2"]"#][..],
        r#"body = "/2/0", headers = "/1", status = "/0""#,
    );
    let php = (&[r#"encoding = "php""#][..], r#"body = "/body", status = "/status""#);
    let hash = (
        &[r#"type = "hash""#, r#"decode_at = { "/reply" = ["json"] }"#][..],
        r#"body = "/reply/body", status = "/reply/status""#,
    );
    for (name, (words, fields)) in [("rack", rack), ("php", php), ("hash", hash)] {
        let text = drafted(&server, name, &[&format!("{name}:a"), &format!("{name}:b")]);
        assert!(words.iter().all(|word| text.contains(word)), "{words:?} in\n{text}");
        let lock = if name == "hash" { "5m" } else { "" };
        let text = decided(&text, &["completed", "in-progress"], lock, "1h");
        // The first format is that of the result.
        let (before, after) = text.split_once("state = ").unwrap();
        let text = format!("{before}fields = {{ {fields} }}\nstate = {after}");
        fs::write(folder(&server, name).join("schema.toml"), text).unwrap();
        let shown =
            server.idemctl(&["inspect", "a", "--schema", name, "-o", "json"]).exits(0).json();
        let record = &shown["records"][0];
        assert_eq!(
            (&record["state"], &record["response"]["status"]),
            (&"completed".into(), &201.into()),
            "{name}"
        );
        assert_eq!(record["response"]["body"], "hi", "{name}");
    }
    server.send::<()>(&[b"SADD", b"set:a", b"x"]);
    server
        .idemctl(&["schema", "new", "sets", "--from", "set:a"])
        .exits(2)
        .says("is neither a string nor a hash");
}

/// Records as hashes under three tenants, in two states; the first of each tenant is stuck.
fn tenants() -> Server {
    let server = Server::start();
    let now: Vec<String> = server.send(&[b"TIME"]);
    let at = now[0].as_bytes();
    for tenant in ["acme", "globex", "initech"] {
        for number in 0..40 {
            let key = format!("pay:idem:{tenant}:{number:08x}a");
            let key = key.as_bytes();
            if number % 10 == 0 {
                server.send::<i64>(&[
                    b"HSET",
                    key,
                    b"phase",
                    b"P",
                    b"owner",
                    b"w-1",
                    b"created_at",
                    at,
                ]);
            } else {
                server.send::<i64>(&[
                    b"HSET",
                    key,
                    b"phase",
                    b"D",
                    b"created_at",
                    at,
                    b"resp",
                    br#"{"id":1}"#,
                ]);
            }
            if number > 0 {
                server.send::<i64>(&[
                    b"EXPIRE",
                    key,
                    if number % 10 == 0 { b"25" } else { b"80000" },
                ]);
            }
        }
    }
    server.fill((0..30).map(|number| (format!("cache:{number}"), "x")), 60_000);
    server
}

/// Rule: the line that `detect` ends with makes a schema that reads the keys, once a person has decided what the words mean.
#[test]
fn what_detect_prints_drafts_a_schema_of_keys_that_nobody_knows() {
    let server = tenants();
    let run = server.idemctl(&["detect"]).exits(0);
    let text = run.text();
    let printed = text.lines().last().unwrap();
    let (_, command) = printed.split_once("idemctl ").unwrap();
    assert!(command.ends_with("schema new NAME --match 'pay:idem:acme:*'"), "{text}");
    let groups = server.idemctl(&["detect", "-o", "json"]).exits(0).json()["groups"].clone();
    assert_eq!(
        (&groups[0]["pattern"], &groups[0]["keys"]),
        (&"pay:idem:acme:{hex}".into(), &40.into()),
        "{groups:#}"
    );
    assert!(
        groups[0]["describe"].as_str().unwrap().ends_with(command.split_once("schema ").unwrap().1)
    );
    let words = ["schema", "new", "payidem", "--match", "pay:idem:acme:*"];
    server.idemctl(&words).exits(0).says("Drafted from 40 of 40 Redis keys that match");
    let file = folder(&server, "payidem").join("schema.toml");
    let draft = fs::read_to_string(&file).unwrap();
    has_lines(
        &draft,
        &[
            r#"keys = { record = "pay:idem:acme:{key}" }"#,
            r#"where = { "/phase" = "P" }"#,
            r#"where = { "/phase" = "D" }"#,
        ],
    );
    fs::write(&file, decided(&draft, &["completed", "in-progress"], "30s", "24h")).unwrap();
    let check = server.idemctl(&["schema", "check", "payidem"]).exits(0);
    check.shows("payidem: ok, 40 keys: 36 completed, 4 in progress");
    let stuck = server
        .idemctl(&["list", "--schema", "payidem", "--finding", "no-expiry", "-o", "jsonl"])
        .exits(0);
    assert_eq!(stuck.json_lines().len(), 1);
}

#[test]
fn a_glob_that_matches_nothing_drafts_nothing() {
    let server = tenants();
    server
        .idemctl(&["schema", "new", "x", "--match", "nowhere:*"])
        .exits(1)
        .says("no string or hash of");
    server.send::<()>(&[b"SADD", b"set:a", b"v"]);
    server
        .idemctl(&["schema", "new", "x", "--match", "set:*"])
        .exits(1)
        .says("no string or hash of");
    server.idemctl(&["schema", "new", "x"]).exits(2).says("--from");
    server.idemctl(&["schema", "new", "x", "--match", "a", "--from", "b"]).exits(2);
    assert!(!folder(&server, "x").exists());
}

/// Rule: the draft reads every key that was asked for, not only those of the sample. Revert: with the
/// common text of the sample, the locks of other merchants are outside.
#[test]
fn the_draft_has_the_pattern_that_was_asked_for() {
    let server = Server::holding(&[
        ("API_LOCK_merchant_77_Payments_pay_118", "req-1", 60_000),
        ("API_LOCK_merchant_77_Payments_pay_119", "req-2", 60_000),
    ]);
    let draft = drafted_from(&server, "locks", "API_LOCK_*");
    has_lines(&draft, &[r#"keys = { record = "API_LOCK_{key}" }"#]);
    // Few words are states although one of them is there once.
    server.fill([("job:a", "processed"), ("job:b", "processed"), ("job:c", "processing")], 9_000);
    let draft = drafted_from(&server, "jobs", "job:*");
    has_lines(&draft, &[r#"equals = "processed""#, r#"equals = "processing""#]);
    assert!(draft.lines().count() <= 25, "{draft}");
}

/// Rule: what stands beside a lock after its release is no lock.
#[test]
fn a_marker_beside_a_lock_is_no_record() {
    let server = Server::start();
    server.put("lease:1", "w-1");
    for marker in ["1:released:6f1c2a6e-63a4", "2:released:0b7f3a3f-6f11"] {
        server.set(&format!("lease:{marker}"), "1", 60_000);
    }
    server.set("lease:2", "w-2", 60_000);
    let draft = drafted_from(&server, "leases", "lease:*");
    has_lines(
        &draft,
        &[r#"keys = { record = "lease:{key}", ignore = ["lease:{key}:released:{id}"] }"#],
    );
    let leases = decided(&draft, &["in-progress"], "30s", "");
    fs::write(folder(&server, "leases").join("schema.toml"), leases).unwrap();
    // What is decided is no draft any more, so that every command reads it.
    server.idemctl(&["check"]).exits(2).shows("1 stuck lock (leases 1)");
    let listed = server.idemctl(&["list", "--sort", "key", "-o", "name"]).exits(0);
    assert_eq!(listed.text(), "leases/\"1\"\nleases/\"2\"\n");
    let groups = server.idemctl(&["detect", "-o", "json"]).json();
    for group in groups["groups"].as_array().unwrap() {
        let is_marker = group["pattern"].as_str().unwrap().contains("released");
        assert!(!is_marker || group["evidence"] == serde_json::json!([]), "{group}");
    }
}

/// Rule: a copy claims the same Redis keys as its original, so that it is read only where somebody names it. Revert: without the line
/// that has the word DECIDE, each record is two.
#[test]
fn a_copy_and_a_draft_change_nothing_until_they_are_named() {
    let server = Server::holding(&[("idempotency:a", r#"{"status":"PENDING"}"#, 60_000)]);
    let before = server.idemctl(&["list", "-o", "jsonl"]).exits(0).json_lines();
    let run = server.idemctl(&["schema", "new", "bar", "--from", "go-middleware"]).exits(0);
    run.says("It is a draft, which is read only if --schema or a context names it.");
    server.idemctl(&["schema", "new", "pays", "--from", "idempotency:a"]).exits(0);
    let after = server.idemctl(&["list", "-o", "jsonl"]).exits(0);
    assert_eq!(
        (before.len(), after.json_lines().len(), after.stderr.as_str()),
        (1, 1, ""),
        "{}",
        after.all()
    );
    server.idemctl(&["schema", "check", "bar"]).exits(0).shows("the word DECIDE keeps it a draft");
    let run = server.idemctl(&["inspect", "a"]).exits(0);
    assert!(!run.stderr.contains("bar") && !run.stderr.contains("pays"), "{}", run.all());
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    let list = server.idemctl(&["schema", "list"]).exits(0);
    list.says("Drafts, which are read only if --schema or a context names them: bar, pays");
    server.idemctl(&["inspect", "a", "--schema", "bar"]).exits(0).shows("bar");
    // Without the line it is a schema as any other.
    let file = folder(&server, "bar").join("schema.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.lines()
            .filter(|line| !line.contains("DECIDE"))
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
    server.idemctl(&["inspect", "a"]).exits(0).says("2 records, under ");
}

/// The draft from the Redis keys that match a glob.
fn drafted_from(server: &Server, name: &str, glob: &str) -> String {
    server.idemctl(&["schema", "new", name, "--match", glob]).exits(0);
    fs::read_to_string(folder(server, name).join("schema.toml")).unwrap()
}

#[track_caller]
fn has_lines(draft: &str, lines: &[&str]) {
    for line in lines {
        assert!(draft.lines().any(|drafted| drafted == *line), "{line}\n{draft}");
    }
}

/// Rule: a state word in a nested object that every value has splits the formats, and the `ok` of a body does not.
#[test]
fn nested_words_of_states_make_formats() {
    let server = Server::start();
    for number in 0..5 {
        let value = |word: &str| format!(r#"{{"payload":{{"status":"{word}"}},"at":1790000000}}"#);
        server.set(&format!("nest:{number}a"), value("PENDING"), 28_000);
        server.set(&format!("nest:{number}b"), value("DONE"), 80_000);
        server.set(&format!("flat:{number}"), r#"{"status":200,"body":"ok"}"#, 80_000);
    }
    let draft = drafted_from(&server, "nested", "nest:*");
    let tests = [
        r#"where = { "/payload/status" = "DONE" }"#,
        r#"where = { "/payload/status" = "PENDING" }"#,
    ];
    has_lines(&draft, &tests);
    let file = folder(&server, "nested").join("schema.toml");
    fs::write(&file, decided(&draft, &["completed", "in-progress"], "30s", "90s")).unwrap();
    let checked = server.idemctl(&["schema", "check", "nested"]).exits(0);
    checked.shows("10 keys: 5 completed, 5 in progress");
    let draft = drafted_from(&server, "flat", "flat:*");
    assert!(!draft.contains("where"), "{draft}");
}

/// Rule: a draft recognises its own sample, also if the object around the state has other fields.
/// Revert: without the levels in `write_field_lists`.
#[test]
fn a_nested_state_leaves_its_neighbours_in_the_draft() {
    let server = Server::start();
    for number in 0..3 {
        let done = format!(r#"{{"meta":{{"status":"DONE","code":20{number}}},"body":"x"}}"#);
        server.set(&format!("meta:{number}a"), done, 80_000);
        let note = if number == 0 { r#","note":"n""# } else { "" };
        let running = format!(r#"{{"meta":{{"status":"RUNNING","by":"w{number}"{note}}}}}"#);
        server.set(&format!("meta:{number}b"), running, 28_000);
        let hash = format!("hash:{number}");
        let done = format!(r#"{{"status":"DONE","at":179000000{number}}}"#);
        server.send::<()>(&[b"HSET", hash.as_bytes(), b"payload", done.as_bytes(), b"t", b"w"]);
        server.send::<()>(&[b"EXPIRE", hash.as_bytes(), b"80"]);
        let hash = format!("hash:{number}b");
        let running = br#"{"status":"RUNNING","by":"w"}"#;
        server.send::<()>(&[b"HSET", hash.as_bytes(), b"payload", running, b"t", b"w"]);
        server.send::<()>(&[b"EXPIRE", hash.as_bytes(), b"28"]);
    }
    let draft = drafted_from(&server, "meta", "meta:*");
    has_lines(&draft, &[r#"optional = ["/meta/note"]"#]);
    for name in ["meta", "hash"] {
        let draft = match name {
            "meta" => draft.clone(),
            _ => drafted_from(&server, "hash", "hash:*"),
        };
        let file = folder(&server, name).join("schema.toml");
        fs::write(&file, decided(&draft, &["completed", "in-progress"], "30s", "90s")).unwrap();
        let checked = server.idemctl(&["schema", "check", name]);
        checked.shows("6 keys: 3 completed, 3 in progress");
    }
}
