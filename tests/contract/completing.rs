//! `idemctl complete` for libraries whose results are packed: what stands in Redis then is what the library itself would have
//! stored, as the library's own decoder reads it.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::support::{Run, Server};

const RESPONSE: [&str; 7] = [
    "--status",
    "201",
    "--header",
    "Content-Type: application/json",
    "--body",
    r#"{"id":1}"#,
    "--yes",
];

fn complete(server: &Server, key: &str, schema: &str, more: &[&str]) -> Run {
    server.idemctl(&[&["complete", key, "--schema", schema], more, &RESPONSE].concat())
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut inflated = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut inflated).unwrap();
    inflated
}

/// The lock's 32 random bytes, which no terminal takes.
const TOKEN: &[u8] = b"\x3e\xbe\x88\x16gQ\xd6\x7f\x98|^:{\xc9\xb1\x89\x81'\xc0G\xeap\x82P\xb4h\x08\xad\x81\xdf\x18\xbf";

/// Rule: an owner that is no text is named by what `inspect` shows of it, and by no other text.
#[test]
fn idempo_finds_its_own_message_pack_compressed_with_its_version_behind() {
    let server = Server::start();
    server.set("idempo:lock:k", TOKEN, 200_000);
    complete(&server, "k", "idempo", &[])
        .exits(2)
        .says("idempo lets only the lock's owner do this");
    complete(&server, "k", "idempo", &["--owner", "somebody"])
        .exits(1)
        .says("idempo answers stale: refused");
    let record = server.idemctl(&["inspect", "k", "--schema", "idempo"]).exits(0);
    let line = record.text();
    let owner =
        line.lines().find_map(|line| line.trim().strip_prefix("Owner")).unwrap().trim().to_owned();
    complete(&server, "k", "idempo", &["--owner", &owner])
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.")
        .says("If the original worker is still running, its result will be rejected.");
    let stored = server.get("idempo:response:k").unwrap();
    let packed = stored.strip_suffix(b":1").expect("the version that idempo asks for");
    // As Ruby's MessagePack packs [201, {…}, ["…"]].
    assert_eq!(
        inflated(packed),
        b"\x93\xcc\xc9\x81\xaccontent-type\xb0application/json\x91\xa8{\"id\":1}"
    );
    assert_eq!(server.keys(), ["idempo:response:k"], "the lock is released");
}

#[test]
fn fiber_finds_its_own_message_pack_and_a_body_of_any_bytes() {
    let server = Server::start();
    let key = "00000000-0000-0000-0000-000000000003";
    complete(&server, key, "gofiber", &["--create"]).exits(0).shows("absent");
    let stored = b"\x83\xa2hs\x81\xacContent-Type\x91\xb0application/json\xa1b\xc4\x08{\"id\":1}\xa2sc\xcc\xc9";
    assert_eq!(server.get(key).unwrap(), stored);

    let body = server.folder().join("body");
    std::fs::write(&body, b"a\xff\0").unwrap();
    let body = format!("@{}", body.display());
    let words = [
        "complete",
        key,
        "--schema",
        "gofiber",
        "--status",
        "200",
        "--body",
        &body,
        "--replace",
        "--yes",
    ];
    server.idemctl(&words).exits(0);
    assert_eq!(server.get(key).unwrap(), b"\x83\xa2hs\x80\xa1b\xc4\x03a\xff\0\xa2sc\xcc\xc8");
}

/// What PHP 8.2 serializes of the object that the library stores.
const OBJECT: &str = r#"O:56:"Square1\LaravelIdempotency\Providers\CachedResponseValue":5:{s:4:"body";s:8:"{"id":1}";s:6:"status";i:201;s:7:"headers";a:1:{s:12:"content-type";a:1:{i:0;s:16:"application/json";}}s:4:"path";s:7:"api/pay";s:11:"originalKey";s:5:"key-1";}"#;

/// Rule: without the path that the library compares no retry would get the response, and a path that breaks the result is refused.
#[test]
fn laravel_finds_its_own_object_with_the_path_that_it_compares() {
    let server = Server::start();
    let (lock, result) = (
        "laravel_database_laravel_cache_:lock:idempotency:42:key-1",
        "laravel_database_laravel_cache_:idempotency:42:key-1",
    );
    server.put(lock, "Zk3uJ9aQw1XyBv7T");
    let complete = |more: &[&str]| complete(&server, "42:key-1", "laravel-square1", more);
    complete(&[]).exits(2).says("needed as --fingerprint").says("the request's path");
    complete(&["--fingerprint", "a\"b"])
        .exits(2)
        .says("what is written is not JSON")
        .says("nothing was changed");
    assert_eq!(server.keys(), [lock]);
    complete(&["--fingerprint", "api/pay"])
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    assert_eq!(String::from_utf8(server.get(result).unwrap()).unwrap(), OBJECT);
    assert_eq!(server.keys(), [result], "the lock is released");
}

/// A document of this form IdempotentAPI 2.6.0 on .NET Core 3.1 read in place of its own, and replayed: status, header and body.
const DOCUMENT: &str = r#"{"$type":"System.Collections.Generic.Dictionary`2[[System.String, System.Private.CoreLib],[System.Object, System.Private.CoreLib]], System.Private.CoreLib","Request.DataHash":"1c80075d","Response.StatusCode":201,"Response.ContentType":"application/json","Response.Headers":{"$type":"System.Collections.Generic.Dictionary`2[[System.String, System.Private.CoreLib],[System.Collections.Generic.List`1[[System.String, System.Private.CoreLib]], System.Private.CoreLib]], System.Private.CoreLib","Content-Type":{"$type":"System.Collections.Generic.List`1[[System.String, System.Private.CoreLib]], System.Private.CoreLib","$values":["application/json"]}},"Context.Result":{"$type":"System.Collections.Generic.Dictionary`2[[System.String, System.Private.CoreLib],[System.Object, System.Private.CoreLib]], System.Private.CoreLib","ResultType":"Microsoft.AspNetCore.Mvc.ObjectResult, Microsoft.AspNetCore.Mvc.Core","ResultValue":{"$type":"System.Collections.Generic.Dictionary`2[[System.String, System.Private.CoreLib],[System.Object, System.Private.CoreLib]], System.Private.CoreLib","id":1}}}"#;

/// Rule: what .NET would make something else of is refused, above all a type that a body names.
#[test]
fn dotnet_finds_lists_and_dictionaries_of_its_own() {
    let server = Server::start();
    let named = ["--schema", "idempotent-api", "--yes"];
    let begin_with = |more: &[&str]| server.idemctl(&[&["begin", "k"], &named[..], more].concat());
    let begin = || begin_with(&[]);
    begin().exits(0).says("idempotent-api answers 1: acquired");
    begin().exits(1).says("conflict; nothing was changed");
    complete(&server, "k", "idempotent-api", &[])
        .exits(2)
        .says("the SHA-256, in hex, of a JSON list");
    for (body, why) in [
        (
            r#"{"a":[{"$type":"System.Diagnostics.Process, System"}]}"#,
            "takes a member named `$type` for its own",
        ),
        (r#"{"a":12345678901234567890}"#, "is no number of 64 bits"),
    ] {
        let words =
            ["complete", "k", "--status", "201", "--body", body, "--fingerprint", "1c80075d"];
        server
            .idemctl(&[&words[..], &named].concat())
            .exits(2)
            .says(why)
            .says("nothing was changed");
    }
    complete(&server, "k", "idempotent-api", &["--fingerprint", "1c80075d"])
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    let document = |key: &str| {
        let data: Vec<u8> =
            redis::cmd("HGET").arg(key).arg("data").query(&mut server.connect()).unwrap();
        let mut document = String::new();
        flate2::read::GzDecoder::new(&data[..]).read_to_string(&mut document).unwrap();
        document
    };
    assert_eq!(document("IdempAPI_k"), DOCUMENT);
    begin().exits(1).says("replay; nothing was changed");
    begin_with(&["--fingerprint", "other"]).exits(1).says("mismatch; nothing was changed");
    server.idemctl(&["undo", "--yes"]).exits(0);
    begin().exits(1).says("conflict; nothing was changed");
    // A response of 204 must have no body, not even an empty text.
    let words =
        ["complete", "no-content", "--status", "204", "--fingerprint", "1c80075d", "--create"];
    server.idemctl(&[&words[..], &named].concat()).exits(0);
    assert!(document("IdempAPI_no-content").ends_with(r#""ResultValue":null}}"#));
}

/// Rule: the payload's hash of the lock stays, and where there is none the result has none: the libraries, which were asked, replay
/// the result then, and refuse another payload.
#[test]
fn the_hash_of_a_payload_is_kept_where_there_is_one() {
    let server = Server::start();
    let (node, python) =
        ("node-idempotency:DELETE:/payments:a", "app.pay#fe22012653e45bf38eea6c11bd767aa2");
    server.set(node, r#"{"status":"IN_PROGRESS"}"#, 200_000);
    let lock = r#"{"status":"INPROGRESS","expiration":4102444800,"validation":"c4ca4238a0b923820dcc509a6f75849b"}"#;
    server.set(python, lock, 200_000);
    complete(&server, "DELETE:/payments:a", "node-idempotency", &[]).exits(0);
    let stored = String::from_utf8(server.get(node).unwrap()).unwrap();
    assert!(stored.starts_with(r#"{"status":"COMPLETE","response""#), "{stored}");
    server
        .idemctl(&["complete", python, "--schema", "powertools-python", "--body", "[1]", "--yes"])
        .exits(0);
    let stored: Value = serde_json::from_slice(&server.get(python).unwrap()).unwrap();
    assert_eq!(
        (&stored["data"], &stored["validation"]),
        (&json!("[1]"), &json!("c4ca4238a0b923820dcc509a6f75849b"))
    );
    let replayed =
        server.idemctl(&["begin", python, "--schema", "powertools-python", "--yes"]).exits(1);
    replayed.says("replay; nothing was changed");
}

/// Rule: an entity that the service encrypts is never written in clear.
#[test]
fn midaz_finds_the_entity_where_its_release_stores_entities_in_clear() {
    let server = Server::start();
    let (one, other) = ("idempotency:crm:holder:org:key-1", "idempotency:crm:holder:org:key-2");
    server.set(one, "", 200_000);
    server.set(other, "", 200_000);
    let entity = r#"{"id":"01912f4a-0000-7000-8000-000000000001","name":"Ada","createdAt":"2026-11-22T19:50:00Z","updatedAt":"2026-11-22T19:50:00Z","deletedAt":null}"#;
    let complete = |key, schema| {
        server.idemctl(&["complete", key, "--schema", schema, "--body", entity, "--yes"])
    };
    complete(one, "midaz")
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    assert_eq!(server.get(one).unwrap(), entity.as_bytes());
    complete(other, "midaz-sealed").exits(2).says("the schema does not describe the complete step");
    assert_eq!(server.get(other).unwrap(), b"");
}

/// A record of one's own: MessagePack in gzip, with a text in front, a field in base64, and fields that no form names.
const OWN: &str = r#"format = 2
name = "own"
keys = { record = "own:{tenant}:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "running"
decode = ["prefix=v1|", "gzip", "msgpack"]
where = { "/s" = 0 }
state = "in-progress"

[[value]]
name = "done"
decode = ["prefix=v1|", "gzip", "msgpack"]
decode_at = { "/r" = ["base64", "json"] }
where = { "/s" = 1 }
has = ["/r"]
state = "completed"
fields = { status = "/r/status", body = "/r/body" }

[write]
lock_value = '{"s":0,"k":"{client_key}"}'
result_value = '{"s":1,"k":"{client_key}","raw":"{body_base64}","r":{"status":{status},"body":{body_text}}{kept}}'
bytes_at = ["/raw"]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay", when = { record = "done" } },
  { value = "running", means = "conflict", when = { record = "running" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

#[test]
fn a_form_of_ones_own_is_packed_as_it_is_opened_and_keeps_what_it_does_not_name() {
    let server = Server::start();
    server.describe("own", &[("schema.toml", OWN)]);
    server.idemctl(&["begin", "shop:a", "--schema", "own", "--yes"]).exits(0);
    let inspected = || -> Value {
        server.idemctl(&["inspect", "shop:a", "--schema", "own", "-o", "json"]).exits(0).json()["records"][0].clone()
    };
    assert_eq!(inspected()["state"], "in-progress");
    let lock = server.get("own:shop:a").unwrap();
    assert!(lock.starts_with(b"v1|\x1f\x8b"), "{}", lock.escape_ascii());

    // {"s":0,"k":"a","trace":7}, as another release of the service may write it.
    let mut longer = flate2::write::GzEncoder::new(b"v1|".to_vec(), flate2::Compression::default());
    std::io::Write::write_all(&mut longer, b"\x83\xa1s\x00\xa1k\xa1a\xa5trace\x07").unwrap();
    server.set("own:shop:a", longer.finish().unwrap(), 200_000);
    server
        .idemctl(&[
            "complete", "shop:a", "--schema", "own", "--status", "201", "--body", "hi", "--yes",
        ])
        .exits(0);
    let stored = server.get("own:shop:a").unwrap();
    let mut packed = Vec::new();
    flate2::read::GzDecoder::new(&stored[3..]).read_to_end(&mut packed).unwrap();
    let r = br#"eyJzdGF0dXMiOjIwMSwiYm9keSI6ImhpIn0="#;
    let wanted =
        [b"\x85\xa1s\x01\xa1k\xa1a\xa3raw\xc4\x02hi\xa1r\xd9\x24", &r[..], b"\xa5trace\x07"]
            .concat();
    assert_eq!(packed, wanted, "{}", packed.escape_ascii());
    let record = inspected();
    assert_eq!(
        (&record["state"], &record["response"]["status"]),
        (&json!("completed"), &json!(201))
    );
    assert_eq!(record["response"]["body"], "hi");
}

/// Rule: what idemctl cannot write is refused by its name, and nothing is done.
#[test]
fn what_is_read_and_not_written_is_refused() {
    let server = Server::start();
    let (before, done) = OWN.split_once("name = \"done\"").unwrap();
    let (_, after) = done
        .split_once(
            "state = \"completed\"\nfields = { status = \"/r/status\", body = \"/r/body\" }",
        )
        .unwrap();
    let done = "name = \"done\"\ndecode = [\"gzip\", \"pickle\"]\nstate = \"completed\"";
    let toml = [before, done, after].concat();
    server.describe("own", &[("schema.toml", &toml)]);
    let words = [
        "complete", "shop:a", "--schema", "own", "--status", "201", "--body", "", "--create",
        "--yes",
    ];
    server.idemctl(&words).exits(2).says("in a format that idemctl reads but does not write");
    assert_eq!(server.size(), 0);
}
