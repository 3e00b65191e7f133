//! What idemctl says of states that a service seldom leaves: a value without one of its fields, an
//! empty fingerprint, a lock that is meant to have no TTL.

use crate::support::Server;

/// A client that compares the hash of the payload first, as drf-idempotency does.
const COMPARED: &str = r#"format = 2
name = "compared"
keys = { record = "compared:{key}" }
ttl = { lock = "1m", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "running" }
required = ["/hash"]
state = "in-progress"
fields = { fingerprint = "/hash" }

[[value]]
name = "done"
where = { "/status" = "done" }
required = ["/hash", "/body"]
state = "completed"
fields = { fingerprint = "/hash", body = "/body" }
body_encoding = "json"

[write]
lock_value = '{"status":"running","hash":"{fingerprint}"}'
result_value = '{"status":"done","hash":"{fingerprint}","body":{body_json}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "absent" } }, { nil = true, means = "next" }]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "running", means = "mismatch", when = { record = "running", fingerprint = "other" } },
  { value = "done", means = "mismatch", when = { record = "done", fingerprint = "other" } },
  { value = "running", means = "conflict" },
  { value = "done", means = "replay" },
  { text = true, means = "fail", when = { record = "unreadable" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Rule: of a value that lacks a field which every value of its format has, nothing is promised.
/// Services take it for another value, fail, or ignore it. Revert: without `lacking_field`,
/// `inspect` says that it is replayed.
#[test]
fn a_value_that_lacks_a_field_promises_nothing() {
    let server = Server::start();
    server.describe("compared", &[("schema.toml", COMPARED)]);
    server.put("compared:a", r#"{"status":"done","body":1}"#);
    let inspect = ["inspect", "a", "--schema", "compared"];
    let shown = server.idemctl(&inspect).exits(0);
    shown.shows("unknown, because the value is incomplete (`/hash` is missing)");
    assert!(!shown.all().contains("replayed"), "{}", shown.all());
    let json = server.idemctl(&[&inspect[..], &["-o", "json"]].concat()).exits(0).json();
    let next = &json["records"][0]["next_request"];
    assert_eq!(next["answer"], "unknown", "{json}");
    assert_eq!(next["unknown_because"], "`/hash` is missing", "{json}");
    // A whole value and a field too many change nothing.
    server.put("compared:b", r#"{"status":"done","hash":"h","body":1}"#);
    server.idemctl(&["inspect", "b", "--schema", "compared"]).exits(0).shows("replay");
    server.put("compared:c", r#"{"status":"done","hash":"h","body":1,"more":1}"#);
    server.idemctl(&["inspect", "c", "--schema", "compared"]).exits(0).shows("replay");
}

/// Rule: what a stored empty fingerprint promises, it promises to requests with an empty one. Revert:
/// without `only_without_fingerprint`, a retry is promised the response that it does not get.
#[test]
fn an_empty_fingerprint_promises_nothing_to_requests_that_have_one() {
    let server = Server::start();
    server.describe("compared", &[("schema.toml", COMPARED)]);
    let warning = "this is for a request without a fingerprint, and others may be rejected";
    server.set("compared:a", r#"{"status":"done","hash":"","body":1}"#, 60_000);
    let inspect = ["inspect", "a", "--schema", "compared"];
    server.idemctl(&inspect).exits(0).shows(warning);
    let json = server.idemctl(&[&inspect[..], &["-o", "json"]].concat()).exits(0).json();
    assert_eq!(json["records"][0]["next_request"]["only_without_fingerprint"], true, "{json}");
    let begin = ["begin", "b", "--schema", "compared", "--yes"];
    server.idemctl(&begin).exits(0).says(warning);
    server.set("compared:c", r#"{"status":"done","hash":"h","body":1}"#, 60_000);
    let shown = server.idemctl(&["inspect", "c", "--schema", "compared"]).exits(0);
    assert!(!shown.all().contains("empty fingerprint"), "{}", shown.all());
}

/// Rule: idemctl tries a schema with the body that `sample_body` gives, because the service may read
/// no other one. Revert: with a made-up body, `schema check` refuses the true description.
#[test]
fn a_schema_is_tried_with_its_sample_body() {
    let server = Server::start();
    let toml = COMPARED
        .replace("required = [\"/hash\", \"/body\"]", "has = [\"/hash\", \"/body/booking\"]")
        + "\n[service]\nsample_body = '{\"booking\": \"{worker}\"}'\n";
    server.describe("compared", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "compared"]).exits(0).shows("compared: ok");
    server.set("compared:a", r#"{"status":"running","hash":"h"}"#, 60_000);
    let complete = ["complete", "a", "--schema", "compared", "--yes", "--body"];
    server.idemctl(&[&complete[..], &[r#"{"booking":"b"}"#]].concat()).exits(0);
}

/// The lock is also a member of a set, so only the service knows what the next request gets.
const QUEUED: &str = r#"format = 2
name = "queued"
keys = { record = "queued:{key}" }
ttl = { lock = "none", result = "10m" }

[[value]]
name = "running"
where = { "/st" = "running" }
state = "in-progress"

[[value]]
name = "done"
where = { "/st" = "done" }
state = "completed"
"#;

/// Rule: without a begin step, nothing is said about the next request: neither after `force-unlock`,
/// nor in the advice about a value that cannot be read, nor by `undo`.
#[test]
fn without_a_begin_step_no_command_speaks_of_the_next_request() {
    let server = Server::start();
    server.describe("queued", &[("schema.toml", QUEUED)]);
    server.put("queued:a", r#"{"st":"running"}"#);
    let unlock = ["force-unlock", "a", "--schema", "queued", "--yes"];
    let unlocked = server.idemctl(&unlock).exits(0);
    unlocked.says("Read back: the lock is gone.");
    // The service gives its locks no TTL, so its lock is no finding after the undo either.
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(!undone.all().contains("without expiry"), "{}", undone.all());
    server.put("queued:b", "{broken");
    let shown = server.idemctl(&["inspect", "b", "--schema", "queued"]).exits(0);
    shown.shows("the value cannot be read");
    assert!(!shown.all().contains("next request executes"), "{}", shown.all());
}

/// Rule: a lock that ends by an expiry of its own blocks nothing for ever, with or without a TTL.
#[test]
fn undo_does_not_warn_of_a_lock_with_an_expiry_of_its_own() {
    let server = Server::start();
    let toml = COMPARED.replace(
        "state = \"in-progress\"",
        "state = \"in-progress\"\nexpires_at = { field = \"/at\", unit = \"s\", plus = \"1h\" }",
    );
    server.describe("compared", &[("schema.toml", &toml)]);
    let now = crate::support::backup::now_ms(&server) / 1_000;
    server.put("compared:a", format!(r#"{{"status":"running","hash":"h","at":{now}}}"#));
    server.idemctl(&["force-unlock", "a", "--schema", "compared", "--yes"]).exits(0);
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(!undone.all().contains("without expiry"), "{}", undone.all());
    // Without that expiry, somebody has to remove it.
    server.describe("compared", &[("schema.toml", COMPARED)]);
    server.put("compared:b", r#"{"status":"running","hash":"h"}"#);
    server.idemctl(&["force-unlock", "b", "--schema", "compared", "--yes"]).exits(0);
    server.idemctl(&["undo", "--yes"]).exits(0).says("without expiry");
}

/// Rule: `undo` names what the step changed beside the record, before and after, because it cannot
/// put it back.
#[test]
fn undo_names_what_it_does_not_put_back() {
    let server = Server::start();
    let toml = COMPARED.replace(
        "[[complete.call]]",
        "[[complete.call]]\ncommand = [\"LREM\", \"waiting\", \"0\", \"{key}\"]\n\
        replies = [{ integer = 1, means = \"next\" }, { integer = 0, means = \"next\" }]\n\
        [[complete.call]]",
    );
    server.describe("compared", &[("schema.toml", &toml)]);
    server.set("compared:a", r#"{"status":"running","hash":"h"}"#, 60_000);
    server.send::<()>(&[b"RPUSH", b"waiting", b"a"]);
    let complete = ["complete", "a", "--schema", "compared", "--yes", "--body", "1"];
    server.idemctl(&complete).exits(0);
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    undone.says("complete may also have changed waiting, which undo does not put back");
    // Where the schema is not known, the Redis keys are not either.
    server.send::<()>(&[b"DEL", b"compared:a"]);
    server.set("compared:a", r#"{"status":"running","hash":"h"}"#, 60_000);
    server.idemctl(&complete).exits(0);
    std::fs::remove_dir_all(server.folder().join(".config/idemctl/schemas/compared")).unwrap();
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    undone.says("because the schema compared is not known here");
    server.describe("compared", &[("schema.toml", &toml)]);
    // A lock that was removed by idemctl itself is all there was.
    server.idemctl(&["force-unlock", "a", "--schema", "compared", "--yes"]).exits(0);
    let undone = server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(!undone.all().contains("put back"), "{}", undone.all());
}

/// Rule: a schema can say that a value without fingerprint rejects every request, and a trial of a
/// script that does so asks for it. Revert: without `no_fingerprint`, a replay is predicted.
#[test]
fn a_missing_fingerprint_can_be_a_mismatch() {
    let server = Server::start();
    let unhashed = COMPARED.replace(
        "required = [\"/hash\", \"/body\"]",
        "required = [\"/body\"]\noptional = [\"/hash\"]",
    );
    let toml = unhashed.replace(
        "when = { record = \"done\", fingerprint = \"other\" }",
        "when = [{ record = \"done\", fingerprint = \"other\" }, { record = \"done\", fingerprint = \"none\" }]",
    );
    assert_ne!(toml, unhashed);
    server.describe("compared", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "compared"]).exits(0).shows("compared: ok");
    server.set("compared:a", r#"{"status":"done","body":1}"#, 60_000);
    server.set("compared:b", r#"{"status":"done","hash":"","body":1}"#, 60_000);
    server.set("compared:c", r#"{"status":"done","hash":"h","body":1}"#, 60_000);
    for (key, answer) in [("a", "fails"), ("b", "fails"), ("c", "replay")] {
        let shown = server.idemctl(&["inspect", key, "--schema", "compared"]).exits(0);
        shown.shows(format!("Next request  {answer}"));
    }
    // The client's own comparison is played like that, too.
    let begin = ["begin", "a", "--schema", "compared", "--fingerprint", "h", "--yes"];
    server.idemctl(&begin).exits(1).says("mismatch");
    let wrong = COMPARED.replace("fingerprint = \"other\"", "fingerprint = \"some\"");
    server.describe("compared", &[("schema.toml", &wrong)]);
    server.idemctl(&["schema", "check", "compared"]).exits(1).shows("must be `other`");
}

/// Rule: `complete` stores no response that has expired already, by a time that the result keeps.
#[test]
fn complete_stores_no_response_that_has_expired_already() {
    let server = Server::start();
    let toml = COMPARED
        .replace("\"status\":\"running\",", "\"status\":\"running\",\"at\":{now_s},")
        .replace("\"status\":\"done\",", "\"status\":\"done\",\"at\":{kept:/at},")
        .replace("required = [\"/hash\"", "required = [\"/at\", \"/hash\"")
        .replace(
            "state = \"",
            "expires_at = { field = \"/at\", unit = \"s\", plus = \"1h\" }\nstate = \"",
        );
    server.describe("compared", &[("schema.toml", &toml)]);
    let now = crate::support::backup::now_ms(&server) / 1_000;
    let complete = |key| {
        let words = ["complete", key, "--schema", "compared", "--create", "--body", "1"];
        server.idemctl(&[&words[..], &["--fingerprint", "h", "--yes"]].concat())
    };
    let old = format!(r#"{{"status":"running","at":{},"hash":"h"}}"#, now - 4_000);
    server.put("compared:a", &old);
    complete("a").exits(2).says("no retry would get this response");
    assert_eq!(server.send::<String>(&[b"GET", b"compared:a"]), old);
    let new = format!(r#"{{"status":"running","at":{now},"hash":"h"}}"#);
    server.put("compared:b", new);
    complete("b").exits(0);
}

/// Rule: `release` sends no fingerprint that it cannot send as it is stored.
#[test]
fn release_sends_no_binary_fingerprint() {
    let server = Server::start();
    let toml = r#"format = 2
name = "bytes"
keys = { record = "bytes:{key}" }
ttl = { lock = "1m" }

[[value]]
name = "running"
type = "hash"
required = ["/fp", "/by"]
state = "in-progress"
fields = { fingerprint = "/fp", owner = "/by" }

[release]
checks_owner = true

[[release.call]]
script = "give_up"
keys = ["{record}"]
args = ["{owner}", "{fingerprint}"]
replies = [
  { integer = 1, means = "released", when = { record = "running" } },
  { integer = 0, means = "refused" },
]
"#;
    let script = "if redis.call('HGET', KEYS[1], 'fp') ~= ARGV[2] then return 0 end\n\
        return redis.call('DEL', KEYS[1])\n";
    server.describe("bytes", &[("schema.toml", toml), ("give_up.lua", script)]);
    let release = ["release", "a", "--schema", "bytes", "--owner", "w", "--yes"];
    server.send::<()>(&[b"HSET", b"bytes:a", b"fp", b"\xff\x00", b"by", b"w"]);
    server.idemctl(&release).exits(2).says("is not text, so that idemctl cannot send it");
    server.send::<()>(&[b"HSET", b"bytes:a", b"fp", b"text"]);
    server.idemctl(&release).exits(0);
}

/// Rule: `schema check` names a call that is never sent.
#[test]
fn a_call_that_no_reply_leads_to_is_named() {
    let server = Server::start();
    let toml = COMPARED.to_owned()
        + "\n[[complete.call]]\ncommand = [\"DEL\", \"other:{key}\"]\n\
        replies = [{ integer = 1, means = \"stored\" }, { integer = 0, means = \"stored\" }]\n";
    server.describe("compared", &[("schema.toml", &toml)]);
    let checked = server.idemctl(&["schema", "check", "compared"]).exits(1);
    checked.shows("this call is never sent, because no reply of the call before it means `next`");
    server.describe("compared", &[("schema.toml", COMPARED)]);
    let checked = server.idemctl(&["schema", "check", "compared"]).exits(0);
    assert!(!checked.all().contains("never sent"), "{}", checked.all());
}
