//! Values that something was put around, and values that idemctl shows and never decodes.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::described::{are, describe, inspected, listed};
use crate::support::Server;

/// Powertools for AWS Lambda in Python keeps the response as JSON in a string.
const POWERTOOLS: &str = r#"
[[value]]
name = "in-progress"
where = { "/status" = "INPROGRESS" }
required = ["/expiration"]
optional = ["/in_progress_expiration"]
state = "in-progress"
[[value]]
name = "completed"
at = "record"
encoding = "json"
decode_at = { "/data" = ["json"] }
where = { "/status" = "COMPLETED" }
required = ["/expiration", "/data"]
state = "completed"
fields = { status = "/data/statusCode", body = "/data/message" }
"#;

/// What is compressed, and holds `["status", {headers}, ["body"]]` or the like.
fn wrapped(decode: &str) -> String {
    format!(
        "[[value]]\nname = \"completed\"\nat = \"record\"\ndecode = [{decode}]\nrequired = [\"/status\", \"/code\", \"/body\"]\n\
         where = {{ \"/status\" = \"DONE\" }}\nstate = \"completed\"\nfields = {{ status = \"/code\", body = \"/body\" }}\n\
         [[value]]\nname = \"held\"\nat = \"record\"\nencoding = \"text\"\nequals = \"held\"\nstate = \"in-progress\"\n"
    )
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A text that hardly compresses.
fn noise(length: usize) -> String {
    let mut state = 7_u64;
    let mut letter = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 33) as u8 % 26)
    };
    (0..length).map(|_| letter()).collect()
}

fn done(body: &str) -> String {
    format!(r#"{{"status":"DONE","code":201,"body":"{body}"}}"#)
}

#[test]
fn a_pointer_goes_on_into_json_that_stands_in_a_string() {
    let server = Server::start();
    describe(&server, "powertools", "record = \"pay.main#{key}\"", POWERTOOLS);
    let data = r#"{\"message\": \"success\", \"payment_id\": \"done-5\", \"statusCode\": 200}"#;
    server.set(
        "pay.main#a",
        format!(r#"{{"data": "{data}", "status": "COMPLETED", "expiration": 1795227099}}"#),
        3_000_000,
    );
    server.set("pay.main#b", r#"{"status": "INPROGRESS", "expiration": 1795227099}"#, 30_000);
    server.set(
        "pay.main#c",
        r#"{"data": "{broken", "status": "COMPLETED", "expiration": 1}"#,
        3_000_000,
    );
    assert_eq!(
        listed(&server, "powertools"),
        are(&[("a", "completed"), ("b", "in-progress"), ("c", "unreadable")])
    );
    let record = inspected(&server, "powertools", "a");
    assert_eq!(
        (&record["response"]["status"], &record["response"]["body"]),
        (&200.into(), &"success".into())
    );
    // json.loads of the library fails with it.
    assert_eq!(inspected(&server, "powertools", "c")["response"], serde_json::Value::Null);
}

#[test]
fn codecs_are_undone_in_their_order() {
    use base64::Engine as _;
    let server = Server::start();
    let text = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes).into_bytes();
    // {"status":"DONE","code":201,"body":"ok"} as MessagePack.
    let msgpack = b"\x83\xa6status\xa4DONE\xa4code\xcc\xc9\xa4body\xa2ok".to_vec();
    let stored = [
        ("gzip", "\"gzip\", \"json\"", gzip(done("ok").as_bytes())),
        ("zlib-msgpack", "\"zlib\", \"msgpack\"", zlib(&msgpack)),
        ("base64-gzip", "\"base64\", \"gzip\", \"json\"", text(&gzip(done("ok").as_bytes()))),
        (
            "hex-msgpack",
            "\"hex\", \"msgpack\"",
            b"83a6737461747573a4444f4e45a4636f6465ccc9a4626f6479a26f6b".to_vec(),
        ),
    ];
    for (name, decode, value) in stored {
        describe(&server, name, &format!("record = \"{name}:{{key}}\""), &wrapped(decode));
        server.set(&format!("{name}:a"), value, 3_000_000);
        server.set(&format!("{name}:b"), "held", 30_000);
        assert_eq!(
            listed(&server, name),
            are(&[("a", "completed"), ("b", "in-progress")]),
            "{name}"
        );
        let record = inspected(&server, name, "a");
        assert_eq!(
            (&record["response"]["status"], &record["response"]["body"]),
            (&201.into(), &"ok".into()),
            "{name}"
        );
    }
    server
        .idemctl(&["schema", "show", "base64-gzip"])
        .exits(0)
        .shows("JSON with")
        .shows("in gzip in base64");
}

#[test]
fn a_walk_tells_what_is_compressed_by_its_beginning() {
    let server = Server::start();
    describe(&server, "zipped", "record = \"zipped:{key}\"", &wrapped("\"gzip\", \"json\""));
    for length in [2_000, 60_000] {
        server.set(&format!("zipped:{length}"), gzip(done(&noise(length)).as_bytes()), 3_000_000);
    }
    assert_eq!(listed(&server, "zipped"), are(&[("2000", "completed"), ("60000", "completed")]));
    let record = inspected(&server, "zipped", "2000");
    assert_eq!(record["response"]["body"], noise(2_000));
    server.idemctl(&["purge", "--all", "--schema", "zipped", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["zipped:2000", "zipped:60000"]);
}

/// Rule: a value that comes to more than 16 MiB is not opened, is nobody's result, and is not changed in bulk.
#[test]
fn a_bomb_is_unreadable_and_left_alone() {
    let server = Server::start();
    describe(&server, "zipped", "record = \"zipped:{key}\"", &wrapped("\"gzip\", \"json\""));
    let spaces = " ".repeat((16 << 20) + 1);
    server.set("zipped:bomb", gzip(format!("{spaces}{}", done("ok")).as_bytes()), 3_000_000);
    let record = inspected(&server, "zipped", "bomb");
    assert_eq!(record["state"], "unreadable", "{record}");
    server.idemctl(&["inspect", "bomb", "--schema", "zipped"]).exits(0).shows("16 MiB");
    server.idemctl(&["purge", "--all", "--schema", "zipped", "--yes"]).exits(0);
    assert_eq!(server.size(), 1);
}

#[test]
fn what_another_language_pickled_is_shown_and_never_decoded() {
    let server = Server::start();
    for (encoding, value) in
        [("pickle", &b"\x80\x04\x95\x0b\x00\x1b[31m."[..]), ("marshal", b"\x04\x08[\x07i")]
    {
        let form = format!(
            "[[value]]\nname = \"stored\"\nat = \"record\"\nencoding = \"{encoding}\"\nstate = \"completed\"\nfields = {{ body = \"\" }}\n"
        );
        describe(&server, encoding, &format!("record = \"{encoding}:{{key}}\""), &form);
        server.set(&format!("{encoding}:a"), value, 3_000_000);
        server.set(&format!("{encoding}:b"), "other", 3_000_000);
        assert_eq!(listed(&server, encoding), are(&[("a", "completed")]), "{encoding}");
    }
    let shown = server.idemctl(&["inspect", "a", "--schema", "pickle"]).exits(0);
    let shown = shown.shows("Python pickle, shown as bytes").shows("80 04 95 0b");
    assert!(!shown.text().contains('\u{1b}'), "{}", shown.all());
}

/// Rule: an object that PHP serialized is its properties, and its class is told as a field.
#[test]
fn what_php_serialized_is_read() {
    let server = Server::start();
    let form = r#"
[[value]]
name = "stored"
at = "record"
encoding = "php"
where = { "/__class" = 'App\\Reply' }
state = "completed"
fields = { status = "/code", body = "/body" }
"#;
    describe(&server, "php", "record = \"php:{key}\"", &form.replace("\\\\", "\\"));
    server.set(
        "php:a",
        r#"O:9:"App\Reply":2:{s:4:"body";s:2:"{}";s:7:"%*%code";i:201;}"#.replace('%', "\0"),
        3_000_000,
    );
    server.set("php:other-class", r#"O:9:"App\Other":1:{s:4:"body";s:2:"{}";}"#, 3_000_000);
    server.set("php:cut", r#"O:9:"App\Reply":2:{s:4:"body";s:2:"{}";"#, 3_000_000);
    assert_eq!(listed(&server, "php"), are(&[("a", "completed"), ("cut", "unreadable")]));
    let record = inspected(&server, "php", "a");
    assert_eq!(
        (&record["response"]["status"], &record["response"]["body"]),
        (&201.into(), &"{}".into())
    );
}

/// Rule: an object is stored wherever its class is in `[write]`, and no response chooses a class.
#[test]
fn a_php_object_is_written_wherever_its_class_is() {
    let server = Server::start();
    let values = r#"
keys = { record = "php:{key}" }
ttl = { lock = "1m", result = "1h" }
[[value]]
name = "held"
equals = "held"
state = "in-progress"
[[value]]
name = "done"
encoding = "php"
required = ["/__class", "/headers/__class"]
state = "completed"
fields = { status = "/code", headers = "/headers/all", body = "/body" }
[write]
lock_value = "held"
result_value = '{"headers":{"all":{headers},"__class":"Bag"},"code":{status},"body":{body_json},"__class":"App\\Reply"}'
[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;
    let schema = format!("format = 2\nname = \"php\"\n{values}");
    server.describe("php", &[("schema.toml", &schema)]);
    server.idemctl(&["schema", "check", "php"]).exits(0);
    server.set("php:a", "held", 60_000);
    let complete = |body: &str, header: &str| {
        let given = ["--status", "201", "--header", header, "--body", body, "--yes"];
        server.idemctl(&[&["complete", "a", "--schema", "php"][..], &given].concat())
    };
    let json = "Content-Type: application/json";
    complete(r#"{"a":[{"__class":"Evil"}]}"#, json)
        .exits(2)
        .says("a member of the body has the name `__class`");
    complete("{}", "__Class: Evil").exits(2).says("a header has the name `__class`");
    complete(r#"{"a":1}"#, json).exits(0);
    let stored = r#"O:9:"App\Reply":3:{s:7:"headers";O:3:"Bag":1:{s:3:"all";a:1:{s:12:"Content-Type";s:16:"application/json";}}s:4:"code";i:201;s:4:"body";a:1:{s:1:"a";i:1;}}"#;
    assert_eq!(
        server.get("php:a").map(|bytes| bytes.escape_ascii().to_string()),
        Some(stored.as_bytes().escape_ascii().to_string())
    );
}
