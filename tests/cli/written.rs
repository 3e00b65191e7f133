//! Value formats that the templates of `[write]` describe, and the further options of protocols.

use crate::support::Server;

const SHORT: &str = r#"format = 2
name = "pay"
protocol = "set-nx-get"
client = { mismatch = "422", conflict = "409" }
keys = { record = "pay:{key}" }
ttl = { lock = "60s", result = "24h" }

[write]
lock_value = '{"hash":"{fingerprint}","st":"busy","code":null,"body":null,"at":"{now_rfc3339}"}'
result_value = '{"hash":"{fingerprint}","st":"done","code":{status},"body":"{body_base64}","at":"{now_rfc3339}"}'
"#;

/// What the formats of `SHORT` are, written out.
const LONG_FORMATS: &str = r#"
[[value]]
name = "in-progress"
where = { "/st" = "busy" }
required = ["/hash", "/code", "/body", "/at"]
null = ["/code", "/body"]
state = "in-progress"
timestamp = "rfc3339"
fields = { fingerprint = "/hash", created_at = "/at" }

[[value]]
name = "completed"
where = { "/st" = "done" }
required = ["/hash", "/code", "/body", "/at"]
state = "completed"
timestamp = "rfc3339"
body_encoding = "base64"
fields = { fingerprint = "/hash", completed_at = "/at", status = "/code", body = "/body" }
"#;

fn shown(server: &Server) -> serde_json::Value {
    server.idemctl(&["schema", "show", "pay", "-o", "json"]).exits(0).json()
}

fn expanded(server: &Server) -> String {
    let shown = server.idemctl(&["schema", "show", "pay", "--expanded"]).exits(0);
    String::from_utf8(shown.stdout.clone()).unwrap()
}

/// Rule: the formats that `[write]` describes are those that a person would write, and `--expanded`
/// prints them.
#[test]
fn a_template_describes_the_format() {
    let server = Server::start();
    server.describe("pay", &[("schema.toml", SHORT)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let short = shown(&server);
    let printed = expanded(&server);
    assert!(printed.contains("[[value]]"), "{printed}");
    let long = SHORT.replace("\n[write]", &format!("{LONG_FORMATS}\n[write]"));
    server.describe("pay", &[("schema.toml", &long)]);
    assert_eq!(shown(&server), short);
    server.describe("pay", &[("schema.toml", &printed)]);
    assert_eq!(shown(&server), short, "{printed}");
}

/// Rule: `get-set-nx` reads first.
#[test]
fn get_set_nx_reads_first() {
    let server = Server::start();
    let toml = SHORT.replace("\"set-nx-get\"", "\"get-set-nx\"");
    server.describe("pay", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let printed = expanded(&server);
    let get = printed.find("\"GET\"").unwrap();
    assert!(get < printed.find("\"NX\"").unwrap(), "{printed}");
    server.idemctl(&["explore", "--schema", "pay", "--workers", "2"]);
}

/// Rule: what a table with `written` states itself stays, and what no template says is asked for.
#[test]
fn a_table_completes_its_template() {
    let server = Server::start();
    let lock = "\n[[value]]\nname = \"busy\"\nwritten = \"lock_value\"\nstrict = true\n";
    let toml = SHORT.replace("\n[write]", &format!("{lock}\n[write]"));
    server.describe("pay", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let printed = expanded(&server);
    assert!(printed.contains("name = \"busy\"") && printed.contains("strict = true"), "{printed}");
    assert!(!printed.contains("written"), "{printed}");

    let several =
        SHORT.replace("\"at\":\"{now_rfc3339}\"}'\nr", "\"at\":{now_s},\"beat\":{now_s}}'\nr");
    server.describe("pay", &[("schema.toml", &several)]);
    server.idemctl(&["schema", "check", "pay"]).exits(1).shows("it has several times");
    let told = "\n[[value]]\nname = \"busy\"\nwritten = \"lock_value\"\nfields = { created_at = \"/at\" }\n";
    let told = several.replace("\n[write]", &format!("{told}\n[write]"));
    server.describe("pay", &[("schema.toml", &told)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0);
    assert!(expanded(&server).contains("fingerprint = \"/hash\""));
}

/// Rule: if nothing in another template differs, the constants are part of the format, so that it
/// takes no other value for its own.
#[test]
fn constants_belong_to_the_format() {
    let server = Server::start();
    let toml = r#"format = 2
name = "pay"
keys = { lock = "pay:l:{key}", result = "pay:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "failed"
at = "result"
where = { "/st" = "failed" }
required = ["/body"]
state = "failed"

[write]
lock_value = "1"
result_value = '{"st":"done","body":{body_json}}'
"#;
    server.describe("pay", &[("schema.toml", toml)]);
    server.set("pay:a", r#"{"st":"done","body":1}"#, 60_000);
    server.set("pay:b", r#"{"st":"failed","body":1}"#, 60_000);
    server.set("pay:c", r#"{"st":"halted","body":1}"#, 60_000);
    for (key, state) in [("a", "completed"), ("b", "failed"), ("c", "unreadable")] {
        let json = server.idemctl(&["inspect", key, "--schema", "pay", "-o", "json"]).json();
        assert_eq!(json["records"][0]["state"], state, "{json}");
    }
}

/// Rule: a failure has a format of its own, unless a table says what results are.
#[test]
fn failures_are_described_as_well() {
    let server = Server::start();
    let failed =
        "failed_value = '{\"hash\":\"{fingerprint}\",\"st\":\"bad\",\"why\":{error_text}}'\n";
    let toml = format!("{SHORT}{failed}");
    server.describe("pay", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    server.set("pay:a", r#"{"hash":"h","st":"bad","why":null}"#, 60_000);
    let json = server.idemctl(&["inspect", "a", "--schema", "pay", "-o", "json"]).exits(0).json();
    assert_eq!(json["records"][0]["state"], "failed", "{json}");
    let tables = toml.replace("\n[write]", &format!("{LONG_FORMATS}\n[write]"));
    server.describe("pay", &[("schema.toml", &tables)]);
    assert!(!expanded(&server).contains("/why\"]"));
}

/// Rule: a template whose members have changing names describes nothing.
#[test]
fn changing_names_describe_nothing() {
    let server = Server::start();
    let toml = SHORT.replace("\"code\":null", "\"{key}\":null");
    server.describe("pay", &[("schema.toml", &toml)]);
    let told = server.idemctl(&["schema", "check", "pay"]).exits(1);
    told.shows("a member's name differs from value to value");
}

/// Rule: text values are described as well, and a hash by its fields.
#[test]
fn texts_and_hashes_are_described() {
    let server = Server::start();
    let toml = r#"format = 2
name = "pay"
keys = { lock = "pay:l:{key}", result = "pay:{key}" }
ttl = { lock = "30s", result = "24h" }

[write]
lock_value = "{owner}"
result_value = '{"code":{status},"body":{body_json}}'
"#;
    server.describe("pay", &[("schema.toml", toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let printed = expanded(&server);
    assert!(printed.contains("opaque = true") && printed.contains("owner = \"\""), "{printed}");
    server.describe("pay", &[("schema.toml", &toml.replace("\"{owner}\"", "\"1\""))]);
    assert!(expanded(&server).contains("equals = \"1\""));
    let hash = r#"format = 2
name = "pay"
keys = { record = "pay:{key}" }
ttl = { lock = "30s", result = "1h" }

[[value]]
name = "held"
written = "lock_value"
type = "hash"

[[value]]
name = "stored"
written = "result_value"
type = "hash"

[write]
lock_value = '{"st":"1","by":"{owner}"}'
result_value = '{"st":"2","by":"{owner}","code":"{status}","body":{body_json}}'
response = '{"code":"{status}","body":{body_json}}'
"#;
    server.describe("pay", &[("schema.toml", hash)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let printed = expanded(&server);
    assert!(printed.contains("type = \"hash\"") && printed.contains("decode_at"), "{printed}");
}
