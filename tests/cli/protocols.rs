//! Schemas that name a protocol instead of describing each call.

use crate::support::Server;

/// One Redis key, no owner: `SET NX`, then `GET`.
const SET_NX_GET: &str = r#"format = 2
name = "pay"
protocol = "set-nx-get"
client = { conflict = "409 Conflict", mismatch = "422" }
keys = { record = "pay:{key}" }
ttl = { lock = "1500ms", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "RUNNING" }
required = ["/status", "/hash"]
state = "in-progress"
fields = { fingerprint = "/hash" }

[[value]]
name = "done"
where = { "/status" = "DONE" }
required = ["/status", "/hash", "/code", "/body"]
state = "completed"
fields = { status = "/code", body = "/body", fingerprint = "/hash" }
body_encoding = "json"

[write]
lock_value = '{"status":"RUNNING","hash":"{fingerprint}"}'
result_value = '{"status":"DONE","hash":{kept:/hash},"code":{status},"body":{body_json}}'
"#;

/// Two Redis keys and an owner.
const TWO_KEYS: &str = r#"format = 2
name = "pay"
protocol = "PROTOCOL"
keys = { lock = "pay:lock:{key}", result = "pay:done:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "held"
at = "lock"
opaque = true
state = "in-progress"
fields = { owner = "" }

[[value]]
name = "stored"
at = "result"
required = ["/code", "/body"]
state = "completed"
fields = { status = "/code", body = "/body" }

[write]
lock_value = "{owner}"
result_value = '{"code":{status},"body":{body_text}}'
"#;

/// One Redis key and an owner inside the value.
const FENCED_RECORD: &str = r#"format = 2
name = "pay"
protocol = "fenced-script"
keys = { record = "pay:{key}" }
ttl = { lock = "none", result = "none" }

[[value]]
name = "running"
where = { "/st" = "P" }
required = ["/st", "/by/id"]
state = "in-progress"
fields = { owner = "/by/id" }

[[value]]
name = "done"
where = { "/st" = "D" }
required = ["/st", "/code", "/body"]
state = "completed"
fields = { status = "/code", body = "/body" }

[write]
lock_value = '{"st":"P","by":{"id":"{owner}"}}'
result_value = '{"st":"D","code":{status},"body":{body_text}}'
"#;

fn two_keys(protocol: &str) -> String {
    TWO_KEYS.replace("PROTOCOL", protocol)
}

/// Each protocol with a schema.
fn all() -> Vec<(&'static str, String)> {
    vec![
        ("set-nx-get", SET_NX_GET.to_owned()),
        ("fenced-script, two keys", two_keys("fenced-script")),
        ("fenced-script, one key", FENCED_RECORD.to_owned()),
    ]
}

/// Rule: the steps of a protocol give the replies that they list, on a real server, and what
/// `--expanded` prints is the same schema.
#[test]
fn a_protocol_does_what_its_expanded_file_does() {
    for (name, toml) in all() {
        let server = Server::start();
        server.describe("pay", &[("schema.toml", &toml)]);
        server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
        let shown = server.idemctl(&["schema", "show", "pay", "--expanded"]).exits(0).stdout;
        let expanded = String::from_utf8(shown).unwrap();
        assert!(!expanded.contains("protocol") && expanded.contains("[[begin.call]]"), "{name}");
        let explore = ["explore", "--schema", "pay", "--workers", "2", "-o", "json"];
        let named = server.idemctl(&explore).json();

        // The same with every call and script in the folder.
        let mut files = vec![("schema.toml".to_owned(), expanded.clone())];
        for line in expanded.lines() {
            let Some(script) = line.strip_prefix("script = ") else { continue };
            let script = script.trim_matches('"');
            let text = server.idemctl(&["schema", "show", "pay", "--script", script]).exits(0);
            let text = String::from_utf8(text.stdout).unwrap();
            files.push((format!("{script}.lua"), text));
        }
        let files: Vec<_> =
            files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        server.describe("pay", &files);
        let described = server.idemctl(&explore).json();
        assert_eq!(frontier(&described), frontier(&named), "{name}");
    }
}

/// What is broken by what, and in how many states.
fn frontier(explored: &serde_json::Value) -> serde_json::Value {
    let first = &explored["schemas"][0];
    let mut broken = Vec::new();
    for violation in first["harms"].as_array().unwrap() {
        broken.push(serde_json::json!([violation["invariant"], violation["minimal_faults"]]));
    }
    assert!(!broken.is_empty(), "{explored}");
    serde_json::json!([broken, first["states"], first["server_calls"]])
}

/// Rule: steps that compare the owner break nothing in the critical section.
#[test]
fn a_protocol_that_compares_the_owner_is_sound_under_the_assumptions() {
    for toml in [two_keys("fenced-script"), FENCED_RECORD.to_owned()] {
        // A lock without TTL never ends after a crash.
        let toml = toml.replace("lock = \"none\"", "lock = \"30s\"");
        let server = Server::start();
        server.describe("pay", &[("schema.toml", &toml)]);
        let assume = ["--assume", "critical-section,results-outlive-retries"];
        let explore = [&["explore", "--schema", "pay"][..], &assume[..]].concat();
        server.idemctl(&explore).exits(0).shows("no violation");
        let race = ["race", "--schema", "pay", "--strategy", "schema", "--rounds", "3"];
        server.idemctl(&race).exits(0);
    }
}

/// Rule: `complete` and `release` work for the owner alone, and the next request is predicted.
#[test]
fn the_steps_work_by_hand() {
    for (name, toml) in all() {
        let server = Server::start();
        server.describe("pay", &[("schema.toml", &toml.replace("1500ms", "30s"))]);
        let fenced = name.starts_with("fenced");
        let begin = ["begin", "a", "--schema", "pay", "--yes"];
        server.idemctl(&[&begin[..], more(name)].concat()).exits(0);
        let page = server.idemctl(&["inspect", "a", "--schema", "pay"]).exits(0);
        page.shows("in-progress");
        let page = &page;
        if name == "set-nx-get" {
            page.shows("409 Conflict");
        }
        let response = ["--schema", "pay", "--yes", "--status", "201", "--body", r#"{"id":1}"#];
        let complete = [&["complete", "a"][..], &response[..]].concat();
        if fenced {
            let wrong = [&complete[..], &["--owner", "w-2"]].concat();
            server.idemctl(&wrong).exits(1);
            server.idemctl(&["inspect", "a", "--schema", "pay"]).exits(0).shows("in-progress");
        }
        let owner: &[&str] = if name == "set-nx-get" { &[] } else { &["--owner", "w-1"] };
        let complete_owned = if fenced { [&complete[..], owner].concat() } else { complete };
        server.idemctl(&complete_owned).exits(0).says("replay");
        server.idemctl(&["inspect", "a", "--schema", "pay"]).exits(0).shows("completed");

        server.idemctl(&[&begin[..1], &["b"], &begin[2..], more(name)].concat()).exits(0);
        let release = ["release", "b", "--schema", "pay", "--yes"];
        server.idemctl(&[&release[..], owner].concat()).exits(0);
        server.idemctl(&["inspect", "b", "--schema", "pay"]).exits(1).says("no record");
    }
}

/// What begin needs to know of the request.
fn more(name: &str) -> &'static [&'static str] {
    if name == "set-nx-get" { &["--fingerprint", "f-1"] } else { &["--owner", "w-1"] }
}

/// Rule: TTLs are sent in milliseconds, so that one of less than a second is not rounded.
#[test]
fn a_ttl_of_a_fraction_of_a_second_is_sent_as_it_is() {
    let server = Server::start();
    server.describe("pay", &[("schema.toml", SET_NX_GET)]);
    let begin = ["begin", "a", "--schema", "pay", "--yes", "--fingerprint", "f-1"];
    server.idemctl(&begin).exits(0);
    let left = server.send::<i64>(&[b"PTTL", b"pay:a"]);
    assert!((1..=1500).contains(&left), "{left}");
}

/// Rule: `fenced-script` reads the result first, so one that cannot be read makes the request fail
/// whether or not a lock is held.
#[test]
fn an_unreadable_result_is_read_before_the_lock() {
    let server = Server::start();
    let toml = two_keys("fenced-script")
        .replace("opaque = true\n", "where = { \"/k\" = \"L\" }\nrequired = [\"/k\", \"/o\"]\n")
        .replace("owner = \"\"", "owner = \"/o\"")
        .replace("required = [\"/code\"", "has = [\"/code\"]\nrequired = [\"/code\"")
        .replace("\"{owner}\"", "'{\"k\":\"L\",\"o\":\"{owner}\"}'");
    server.describe("pay", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    server.set("pay:lock:u", r#"{"k":"L","o":"w"}"#, 20_000);
    server.idemctl(&["inspect", "u", "--schema", "pay"]).exits(0).shows("conflict");
    server.set("pay:done:u", "{garbage", 200_000);
    let page = server.idemctl(&["inspect", "u", "--schema", "pay"]);
    page.shows("fail");
    assert!(!page.text().contains("conflict for"), "{}", page.all());
}

/// Rule: a file says why the protocol does not fit, at the line that names it.
#[test]
fn a_protocol_that_does_not_fit_says_why() {
    let set = |from: &str, to: &str| SET_NX_GET.replace(from, to);
    let wrong = two_keys("set-nx-get");
    let hash = SET_NX_GET.replace("name = \"running\"", "name = \"running\"\ntype = \"hash\"");
    let owned = FENCED_RECORD
        .replace("fields = { status = ", "fields = { owner = \"/by\", status = ")
        .replace("[\"/st\", \"/code\"", "[\"/st\", \"/by\", \"/code\"");
    let expires = SET_NX_GET.replace(
        "fields = { fingerprint = \"/hash\" }\n",
        "fields = { fingerprint = \"/hash\" }\nexpires_at = { field = \"/exp\", unit = \"ms\" }\n",
    );
    for (toml, line, why) in [
        (expires, 3, "it takes no expired value over, and `running` has `expires_at`"),
        (owned, 3, "`done` names the owner as well"),
        (wrong, 3, "it has one Redis key, so [keys] needs `record`"),
        (hash, 3, "it stores strings, and `running` is another type"),
        (set("set-nx-get", "fenced-script"), 3, "it compares the owner"),
        (set("set-nx-get", "best"), 3, "unknown variant `best`"),
        (set("lock_value = ", "# "), 3, "it sends `lock_value`, so [write] needs it"),
        (set("conflict = ", "conflct = "), 3, "no client gets `conflct` (in `client`)"),
        (set("protocol = ", "# "), 4, "`client` belongs to `protocol`"),
        (
            set("protocol = \"set-nx-get\"\nclient = ", "ttl_unit = \"s\"\n# "),
            3,
            "`ttl_unit` belongs to `protocol`",
        ),
        (
            two_keys("fenced-script").replace("keys = {", "ttl_unit = \"s\"\nkeys = {"),
            3,
            "its scripts take TTLs in milliseconds",
        ),
        (format!("{SET_NX_GET}[complete]\nchecks_owner = true\n"), 3, "`checks_owner` belongs to"),
    ] {
        let server = Server::start();
        server.describe("pay", &[("schema.toml", &toml)]);
        let run = server.idemctl(&["schema", "check", "pay"]).exits(1);
        run.shows(why).shows(format!("schema.toml:{line}: error"));
    }
}

/// Rule: a step that the file describes itself replaces that of the protocol.
#[test]
fn a_described_step_replaces_that_of_the_protocol() {
    let own = "\n[complete]\nchecks_owner = false\nnote = \"ours\"\n\n[[complete.call]]\ncommand = \
        [\"SET\", \"{record}\", \"{result_value}\", \"EX\", \"60\"]\nreplies = [{ word = \"OK\", \
        means = \"stored\", when = {} }]\n";
    let server = Server::start();
    server.describe("pay", &[("schema.toml", &format!("{SET_NX_GET}{own}"))]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let expanded = server.idemctl(&["schema", "show", "pay", "--expanded"]).exits(0);
    expanded.shows("note = \"ours\"").shows("[[begin.call]]");
    assert_eq!(String::from_utf8_lossy(&expanded.stdout).matches("[[complete.call]]").count(), 1);
}

/// Rule: a step with a note alone keeps the calls of the protocol, and its note is shown with them.
/// A step that the protocol does not have is an error.
#[test]
fn a_step_may_have_a_note_about_the_calls_of_the_protocol() {
    let noted = format!("{SET_NX_GET}\n[complete]\nnote = \"2xx only\"\n");
    let server = Server::start();
    server.describe("pay", &[("schema.toml", &noted)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    server.idemctl(&["schema", "show", "pay"]).exits(0).shows("2xx only");
    let expanded = server.idemctl(&["schema", "show", "pay", "--expanded"]).exits(0);
    let text = String::from_utf8(expanded.stdout).unwrap();
    let step = "[complete]\nchecks_owner = false\nnote = \"2xx only\"\n\n[[complete.call]]\n";
    assert!(text.contains(step) && text.matches("[complete]").count() == 1, "{text}");
    server.describe("pay", &[("schema.toml", &text)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");

    let kept = "\n[release]\nnote = \"never\"\n[service]\non_failure = \"keep\"\n";
    server.describe("pay", &[("schema.toml", &format!("{SET_NX_GET}{kept}"))]);
    let checked = server.idemctl(&["schema", "check", "pay"]).exits(1);
    checked.shows("[release] has no [[release.call]]");
}

/// Rule: `ttl_unit = "s"` sends the TTLs of the lock and the result in seconds, rounded up.
#[test]
fn a_protocol_sends_seconds_to_services_that_do() {
    let toml = SET_NX_GET.replace("keys = {", "ttl_unit = \"s\"\nkeys = {");
    let server = Server::start();
    server.describe("pay", &[("schema.toml", &toml)]);
    server.idemctl(&["schema", "check", "pay"]).exits(0).shows("pay: ok");
    let expanded = server.idemctl(&["schema", "show", "pay", "--expanded"]).exits(0);
    expanded.shows(r#""NX", "EX", "{lock_ttl}""#).shows(r#""EX", "{result_ttl}""#);
    assert!(!expanded.all().contains("ttl_unit"), "{}", expanded.all());
    let begin = ["begin", "a", "--schema", "pay", "--yes", "--fingerprint", "f-1"];
    server.idemctl(&begin).exits(0);
    let left = server.send::<i64>(&[b"PTTL", b"pay:a"]);
    assert!((1501..=2000).contains(&left), "1500 ms, rounded up: {left}");
    let complete = ["complete", "a", "--schema", "pay", "--yes", "--status", "201", "--body", "1"];
    server.idemctl(&complete).exits(0);
    let left = server.send::<i64>(&[b"PTTL", b"pay:a"]);
    assert!((86_000_000..=86_400_000).contains(&left), "{left}");
}
