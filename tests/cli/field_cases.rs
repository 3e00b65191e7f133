//! Locks and keys of other teams, rebuilt from public reports, each without a schema and with one.

use crate::support::{Run, Server, alone};

/// A folder of schemas, and its path.
fn schemas(all: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in all {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("format = 2\nname = \"{name}\"\n{text}");
        std::fs::write(folder.path().join(name).join("schema.toml"), text).unwrap();
    }
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

/// The groups that detect does not recognise, in its order: pattern, keys without expiry.
fn unrecognised(server: &Server) -> Vec<(String, u64)> {
    let mut groups = Vec::new();
    let shown = server.idemctl(&["detect"]).exits(0).text();
    let (_, table) = shown.split_once("NOTE\n").unwrap();
    for line in table.lines().take_while(|line| !line.contains("idemctl ")) {
        let words: Vec<_> = line.split_whitespace().collect();
        groups.push((words[0].to_owned(), words[3].parse().unwrap()));
    }
    groups
}

fn has_lines(run: &Run, lines: &[&str]) {
    for line in lines {
        assert!(run.all().contains(line), "{line:?} in {}", run.all());
    }
}

/// C1: a record without a response lives as long as a result, and every retry gets 409 for days.
#[test]
fn express_idempotency_after_an_unhandled_rejection() {
    let request = |order: u32, more: &str| {
        let headers = r#"{"content-type":"application/json","authorization":"Bearer x"}"#;
        let request = format!(
            r#""request":{{"headers":{headers},"method":"POST","query":{{}},"url":"/captures","body":{{"order":{order}}}}}"#
        );
        format!("{{{request}{more}}}")
    };
    let response = r#","response":{"statusCode":201,"headers":{"content-type":"application/json"},"body":{"id":"cap_117"}}"#;
    let server = Server::holding(&[
        ("cap-2026-118", request(118, ""), 171_000_000),
        ("cap-2026-119", request(119, r#","createdAt":1779980000000"#), 171_000_000),
        ("cap-2026-117", request(117, response), 250_000_000),
    ]);
    has_lines(
        &server.idemctl(&["detect"]).exits(0),
        &["express-idempotency", "1 completed, 2 in-progress"],
    );
    let of = ["--schema", "express-idempotency", "--prefix", "cap-2026-", "--lock-ttl", "72h"];
    let run = server.idemctl(&[&["inspect", "118"], &of[..]].concat()).exits(0);
    has_lines(&run, &["conflict (409", "for another 1d 23h", "Age           1d"]);
    assert!(!run.all().contains("Bearer"), "{}", run.all());
    // The age of the other is known from its own time.
    let run = server.idemctl(&[&["inspect", "119"], &of[..]].concat()).exits(0);
    has_lines(&run, &["conflict (409", "(by the time in the record)"]);
}

/// C3: the key of a repetition by hand was always the same, so each later one was skipped in silence.
#[test]
fn outpost_skips_a_repeated_delivery() {
    let server = Server::holding(&[
        ("idempotency:deliverymq:evt_91:des_4:manual", "processed", 80_000_000),
        ("idempotency:deliverymq:evt_92:des_4:0", "processed", 3_600_000),
        ("idempotency:publishmq:evt_93", "processing", 500_000),
    ]);
    // The prefix is that of another library: what shows the keys themselves stands below.
    let checked = server.idemctl(&["check"]).exits(1);
    has_lines(&checked, &["do not match schema go-middleware: 3, that do: 0", " detect\n"]);
    let (_folder, path) = schemas(&[(
        "delivery",
        r#"
keys = { record = "{prefix}idempotency:{key}", prefix = "", key = "(publishmq|deliverymq):.+" }
ttl = { lock = "5s", result = "24h" }
[[value]]
name = "processing"
equals = "processing"
state = "in-progress"
[[value]]
name = "processed"
equals = "processed"
state = "completed"
[[begin.call]]
command = ["SET", "{record}", "processing", "NX", "PX", "{lock_ttl_ms}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "next" }]
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { word = "processed", means = "replay", when = { record = "processed" }, client = "skipped in silence" },
  { word = "processing", means = "conflict", when = { record = "processing" }, client = "nacked" },
]
"#,
    )]);
    let key = "deliverymq:evt_91:des_4:manual";
    let of = ["--schema", "delivery", "--schema-dir", &path];
    let run = server.idemctl(&[&["inspect", key], &of[..]].concat()).exits(0);
    has_lines(&run, &["completed", "skipped in silence", "22h 13m", "~1h 46m"]);
    let run = server.idemctl(&[&["purge", key, "--dry-run"], &of[..]].concat()).exits(0);
    has_lines(&run, &["1", key]);
}

/// C7: two releases write here at once; the old one compares nothing, so its late DEL removes the claim
/// of the new one.
#[test]
fn trigger_dev_claims_with_and_without_an_owner() {
    let server = Server::holding(&[
        ("mollifier:claim:env_1:refund:order-118", "pending", 30_000),
        ("mollifier:claim:env_1:refund:order-119", "pending:6e0c2b1a", 30_000),
        ("mollifier:claim:env_1:refund:order-120", "run_cm9x", 60_000),
    ]);
    assert_eq!(unrecognised(&server)[0].0, "mollifier:claim:env_1:refund:order-{n}");
    let resolved = r#"
[[value]]
name = "resolved"
decode = ["prefix=run_", "text"]
opaque = true
state = "completed"
fields = { body = "" }
"#;
    let keys = r#"keys = { record = "mollifier:claim:{env}:{task}:{key}" }
ttl = { lock = "30s", result = "60s" }"#;
    let old = format!(
        r#"{keys}
protocol = "set-nx-get"
[[value]]
name = "pending"
equals = "pending"
state = "in-progress"
{resolved}
[write]
lock_value = "pending"
result_value = "{{body}}"
"#
    );
    let new = format!(
        r#"{keys}
protocol = "fenced-script"
[[value]]
name = "pending-owned"
decode = ["prefix=pending:", "text"]
opaque = true
state = "in-progress"
fields = {{ owner = "" }}
{resolved}
[write]
lock_value = "{{owner}}"
result_value = "{{body}}"
"#
    );
    let (_folder, path) = schemas(&[("old", &old), ("new", &new)]);
    let listed = server.idemctl(&["list", "--schema", "new,old", "--schema-dir", &path]).exits(0);
    for line in ["order-118", "order-119", "order-120"] {
        assert!(listed.text().contains(line), "{}", listed.all());
    }
    let inspect = ["inspect", "env_1:refund:order-119", "--schema", "new", "--schema-dir", &path];
    has_lines(&server.idemctl(&inspect).exits(0), &["in-progress", "6e0c2b1a"]);
    let explore =
        |words: &[&str]| alone(&[&["explore", "--sandbox", "--schema-dir", &path], words].concat());
    let run = explore(&["old"]).exits(1);
    has_lines(&run, &["one-effect", "owner-only", "1 expiry"]);
    explore(&["new"]).exits(0).shows("owner-only");
    explore(&["--mix", "old,new"]).exits(1).shows("owner-only");
}

/// C9: a stored failure comes back as another status.
#[test]
fn novu_stores_failures() {
    let failure = r#"{"status":"error","bodyHash":"ab12","data":{"response":{"statusCode":422,"message":"bad"},"status":422,"options":{},"message":"bad","name":"UnprocessableEntityException"}}"#;
    let success =
        r#"{"status":"success","bodyHash":"ab14","statusCode":201,"data":{"acknowledged":true}}"#;
    let server = Server::holding(&[
        ("production-64aa01-send-118", failure, 80_000_000),
        ("production-64aa01-send-119", r#"{"status":"in-progress","bodyHash":"ab13"}"#, 280_000),
        ("production-64aa01-send-120", success, 86_000_000),
    ]);
    assert_eq!(unrecognised(&server).len(), 1);
    let drafted = server.idemctl(&["schema", "new", "drafted", "--match", "production-*"]).exits(0);
    has_lines(&drafted, &["DECIDE (5)"]);
    let (_folder, path) = schemas(&[(
        "novu",
        r#"
keys = { record = "production-{org}-{key}" }
ttl = { lock = "5m", result = "24h" }
[[value]]
name = "running"
where = { "/status" = "in-progress" }
state = "in-progress"
fields = { fingerprint = "/bodyHash" }
[[value]]
name = "done"
where = { "/status" = "success" }
state = "completed"
body_encoding = "json"
fields = { status = "/statusCode", body = "/data", fingerprint = "/bodyHash" }
[[value]]
name = "failed"
where = { "/status" = "error" }
state = "failed"
fields = { status = "/data/status", error = "/data/message", fingerprint = "/bodyHash" }
"#,
    )]);
    let of = ["--schema", "novu", "--schema-dir", &path];
    let run = |words: &[&str]| server.idemctl(&[words, &of[..]].concat()).exits(0);
    has_lines(&run(&["inspect", "64aa01-send-118"]), &["failed", "422", "bad", "22h 13m"]);
    has_lines(&run(&["inspect", "64aa01-send-120"]), &["completed", "201", "acknowledged"]);
    let selected =
        run(&["purge", "--state", "failed", "--status", "422", "--dry-run", "-o", "json"]);
    assert_eq!(selected.json()["total"], 1, "{}", selected.all());
    let left = ["--state", "failed", "--status", "422", "--reason", "deploy", "--yes"];
    run(&[&["purge"], &left[..]].concat());
    assert_eq!(server.size(), 2);
}

/// C10: a payments router's locks; release compares in the client, and one path does not reach it.
#[test]
fn hyperswitch_holds_a_lock_for_good() {
    let server = Server::holding(&[
        ("API_LOCK_merchant_77_Payments_pay_118", "req-0198c1", 180_000),
        ("WEBHOOK_LOCK_merchant_77_evt_5", "req-0198c3", 900_000),
    ]);
    server.put("API_LOCK_merchant_77_Payments_pay_119", "req-0198c2");
    assert_eq!(unrecognised(&server)[0], ("API_LOCK_merchant_{n}_Payments_pay_{n}".to_owned(), 1));
    server.idemctl(&["check"]).shows("unrecognised_no_expiry=1");
    let (_folder, path) = schemas(&[(
        "api-lock",
        r#"
keys = { lock = "API_LOCK_{key}" }
ttl = { lock = "180s" }
[[value]]
name = "held"
opaque = true
state = "in-progress"
fields = { owner = "" }
[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "held" } },
]
[[release.call]]
command = ["GET", "{lock}"]
replies = [{ word = "{owner}", means = "next" }, { text = true, means = "refused" }, { nil = true, means = "refused" }]
[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released" }, { integer = 0, means = "refused" }]
"#,
    )]);
    let of = ["--schema", "api-lock", "--schema-dir", &path];
    let key = "merchant_77_Payments_pay_119";
    let run = server.idemctl(&[&["inspect", key], &of[..]].concat()).exits(0);
    has_lines(&run, &["req-0198c2", "never expires", "conflict indefinitely"]);
    server.idemctl(&[&["check"], &of[..]].concat()).exits(2).shows("1 stuck lock");
    let run = server.idemctl(&[&["stats", "--by", "owner"], &of[..]].concat()).exits(0);
    has_lines(&run, &["req-0198c1", "req-0198c2"]);
    let explored = alone(&[&["explore", "--sandbox"], &of[2..], &["api-lock"]].concat()).exits(1);
    has_lines(&explored, &["owner-only  1 call sent again", "1 expiry", "releases (GET): next"]);
}

/// C13: an id cannot be enqueued while its result is kept.
#[test]
fn arq_keeps_results() {
    let pickle: &[u8] = b"\x80\x05}\x94.";
    let server = Server::holding(&[
        ("arq:result:charge-118", pickle, 3_500_000),
        ("arq:in-progress:charge-119", b"1", 310_000),
        ("arq:job:charge-120", pickle, 86_000_000),
        ("arq:retry:charge-119", b"2", 88_400_000),
    ]);
    let patterns: Vec<_> = unrecognised(&server).into_iter().map(|(pattern, _)| pattern).collect();
    assert_eq!(patterns[0], "arq:in-progress:charge-{n}", "it looks like locks");
    let (_folder, path) = schemas(&[
        (
            "arq",
            r#"
keys = { lock = "arq:in-progress:{key}", result = "arq:result:{key}" }
ttl = { lock = "310s", result = "1h" }
[[value]]
name = "running"
at = "lock"
equals = "1"
state = "in-progress"
[[value]]
name = "kept"
at = "result"
encoding = "pickle"
state = "completed"
"#,
        ),
        (
            // What is queued and not started has a Redis key of its own, and a schema of its own.
            "arq-queued",
            r#"
keys = { lock = "arq:job:{key}" }
ttl = { lock = "24h" }
[[value]]
name = "queued"
encoding = "pickle"
state = "in-progress"
"#,
        ),
    ]);
    let run = server.idemctl(&["list", "--schema", "arq-queued", "--schema-dir", &path]).exits(0);
    has_lines(&run, &["charge-120  in-progress  arq-queued"]);
    let of = ["--schema", "arq", "--schema-dir", &path];
    let run = server.idemctl(&[&["list"], &of[..]].concat()).exits(0);
    has_lines(&run, &["charge-118  completed", "58m", "charge-119  in-progress", "5m"]);
    let run = server.idemctl(&[&["inspect", "charge-118"], &of[..]].concat()).exits(0);
    has_lines(&run, &["58m", "Python pickle, shown as bytes"]);
}

/// C4: a start marker has the TTL of results, and bodies and headers are arrays of byte numbers.
#[test]
fn svix_stores_bytes() {
    let finished = r#"{"Finished":{"code":202,"headers":{"content-type":[97,112,112]},"body":[123,34,105,100,34,58,49,125]}}"#;
    let old = r#"{"code":202,"headers":{"content-type":"application/json"},"body":{"id":1}}"#;
    let server = Server::holding(&[
        ("SVIX_IDEMPOTENCY_CACHE_tq2eV0aS9w==", "\"Start\"", 41_000_000),
        ("SVIX_IDEMPOTENCY_CACHE_9mPZ1kQ7xA==", finished, 30_000_000),
        ("SVIX_IDEMPOTENCY_CACHE_old0ldOld0==", old, 20_000_000),
    ]);
    assert!(unrecognised(&server)[0].0.starts_with("SVIX_IDEMPOTENCY_CACHE_"));
    let (_folder, path) = schemas(&[(
        "svix",
        r#"
keys = { record = "SVIX_IDEMPOTENCY_CACHE_{key}" }
ttl = { lock = "20s", result = "12h" }
[[value]]
name = "start"
equals = '"Start"'
state = "in-progress"
[[value]]
name = "finished"
has = ["/Finished/code"]
state = "completed"
body_encoding = "bytes"
fields = { status = "/Finished/code", headers = "/Finished/headers", body = "/Finished/body" }
[[value]]
name = "finished-2022"
has = ["/code", "/body"]
state = "completed"
body_encoding = "json"
fields = { status = "/code", headers = "/headers", body = "/body" }
"#,
    )]);
    let of = ["--schema", "svix", "--schema-dir", &path];
    let run = |words: &[&str]| server.idemctl(&[words, &of[..]].concat()).exits(0);
    let shown = run(&["inspect", "tq2eV0aS9w==", "--lock-ttl", "20s"]);
    has_lines(
        &shown,
        &["in-progress", "11h 23m", "excess-ttl", "was the lock given the result TTL"],
    );
    has_lines(&run(&["inspect", "9mPZ1kQ7xA=="]), &["202", "content-type: app", "\"id\": 1"]);
    has_lines(&run(&["inspect", "old0ldOld0=="]), &["202", "application/json", "\"id\": 1"]);
}

/// C11: two releases keep a lock in different types, and the lock's own TTL wins over the store's.
#[test]
fn symfony_keeps_locks_in_two_types() {
    let server = Server::holding(&[(
        "pdf-invoice-118",
        "2odGKUWQ/cq2WMmjZOcfWL9mVTdOkwicnMIsPlbk0hs=",
        295_000,
    )]);
    let set: &[&[u8]] =
        &[b"ZADD", b"pdf-invoice-119", b"1", b"mX1yqS4b0lU7Vn3c2kQe9w==", b"1", b"__write__"];
    server.send::<()>(set);
    server.send::<()>(&[b"PEXPIRE", b"pdf-invoice-119", b"280000"]);
    let patterns: Vec<_> = unrecognised(&server).into_iter().map(|(pattern, _)| pattern).collect();
    assert_eq!(patterns, ["pdf-invoice-{n}", "pdf-invoice-{n}"], "one group for each type");
    let (_folder, path) = schemas(&[(
        "invoices",
        r#"
keys = { lock = "pdf-invoice-{key}" }
ttl = { lock = "300s" }
[[value]]
name = "held-zset"
type = "zset"
state = "in-progress"
[[value]]
name = "held-string"
opaque = true
state = "in-progress"
fields = { owner = "" }
"#,
    )]);
    let of = ["--schema", "invoices", "--schema-dir", &path];
    let run = |words: &[&str]| server.idemctl(&[words, &of[..]].concat()).exits(0);
    has_lines(&run(&["list"]), &["118  in-progress", "119  in-progress", "4m "]);
    has_lines(&run(&["inspect", "118"]), &["2odGKUWQ/cq2WMmjZOcfWL9mVTdOkwicnMIsPlbk0hs="]);
    // How much of the TTL is left shows how old a lock is, and not that it is too short.
    has_lines(
        &run(&["inspect", "118", "--lock-ttl", "20m"]),
        &["configured 20m", "Age           15m"],
    );
}

/// C15: a contact's lock holds the time at which it was taken, months away from what its TTL says, and
/// is deleted without a look.
#[test]
fn chatwoot_deletes_a_lock_that_may_be_anothers() {
    let key = "alfred:WHATSAPP_MESSAGE_CREATE_LOCK::7::4915112345";
    let server = Server::holding(&[
        (key, "1781000000.4471", 28_000),
        ("alfred:MESSAGE_SOURCE_KEY::wamid.HBgL", "true", 86_000_000),
        ("module:billing:entitlement-state:ws_9", "lock", 60_000),
    ]);
    assert!(unrecognised(&server)[0].0.contains("LOCK"), "{:?}", unrecognised(&server));
    let (_folder, path) = schemas(&[(
        "contacts",
        r#"
keys = { lock = "alfred:WHATSAPP_MESSAGE_CREATE_LOCK::{inbox}::{key}" }
ttl = { lock = "30s" }
[[value]]
name = "held"
encoding = "text"
opaque = true
state = "in-progress"
timestamp = "s"
fields = { created_at = "" }
[write]
lock_value = "{now_s}"
[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "held" } },
]
[[release.call]]
command = ["DEL", "{lock}"]
replies = [{ integer = 1, means = "released" }, { integer = 0, means = "refused" }]
"#,
    )]);
    let of = ["--schema", "contacts", "--schema-dir", &path];
    let run = server.idemctl(&[&["inspect", "7::4915112345"], &of[..]].concat()).exits(0);
    has_lines(&run, &["in-progress", "s left", "this time, or the lock TTL of 30s, is wrong"]);
    let raced = [&["race", "--sandbox", "--rounds", "5"], &of[..]].concat();
    alone(&raced).exits(0).shows("At most one of 50 simultaneous requests got the lock");
    let explored = alone(&[&["explore", "--sandbox"], &of[2..], &["contacts"]].concat()).exits(1);
    has_lines(&explored, &["one-holder", "owner-only", "store an owner token"]);
}
