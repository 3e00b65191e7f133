//! A schema whose steps send the time, as services do whose scripts do not ask Redis for the time.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::support::Server;
use crate::support::terminal::{ends, on_terminal, press};

const TOML: &str = r#"
format = 2
name = "payidem"
summary = "Payments, by a script that is sent the time"

[keys]
record = "pay:{key}"

[ttl]
lock = "30s"
result = "1h"

[[value]]
name = "held"
at = "record"
encoding = "json"
where = { "/st" = "in_progress" }
required = ["/st", "/by", "/at"]
state = "in-progress"
fields = { owner = "/by", created_at = "/at" }
timestamp = "s"

[[value]]
name = "done"
at = "record"
encoding = "json"
where = { "/st" = "done" }
required = ["/st", "/at", "/code"]
state = "completed"
fields = { created_at = "/at", status = "/code" }
timestamp = "s"

[write]
lock_value = '{"st":"in_progress","by":"{owner}","at":{now_s}}'
result_value = '{"st":"done","at":{now_s},"code":{status}}'

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}", "{now_s}", "{lock_ttl}"]
replies = [
  { word = "GO", means = "acquired", when = { record = "absent" } },
  { word = "BUSY", means = "conflict", when = { record = "held" } },
  { text = true, means = "replay", when = { record = "done" } },
  { error = "*", means = "fail", when = { record = "present" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored" }]
"#;

const BEGIN: &str = r#"local value = redis.call('GET', KEYS[1])
if not value then
  redis.call('SET', KEYS[1], string.format('{"st":"in_progress","by":"%s","at":%d}', ARGV[1], ARGV[2]), 'EX', ARGV[3])
  return 'GO'
end
if cjson.decode(value).st == 'done' then return value end
return 'BUSY'
"#;

fn described(toml: &str) -> (Server, PathBuf) {
    let server = Server::start();
    let folder = server.describe("payidem", &[("schema.toml", toml), ("begin.lua", BEGIN)]);
    (server, folder)
}

fn seconds(server: &Server) -> u64 {
    let time: Vec<String> = server.send(&[b"TIME"]);
    time[0].parse().unwrap()
}

#[test]
fn a_step_sends_the_time_of_the_server() {
    let (server, _) = described(TOML);
    server.idemctl(&["schema", "check", "payidem"]).exits(0).shows("payidem: ok");
    let before = seconds(&server);
    server.idemctl(&["begin", "k", "--schema", "payidem", "--yes"]).exits(0);
    let value: serde_json::Value = serde_json::from_slice(&server.get("pay:k").unwrap()).unwrap();
    let at = value["at"].as_u64().unwrap();
    assert!((before..=seconds(&server)).contains(&at), "{before} {at}");
    let record = &server.idemctl(&["inspect", "k", "-o", "json"]).exits(0).json()["records"][0];
    assert!(record["age_ms"].as_u64().unwrap() < 60_000, "{record}");
    let calls = server.idemctl(&["schema", "show", "payidem"]).exits(0);
    calls.shows("{now_s}");
}

/// Rule: however long the operator thinks at the prompt, the stored time is the time of the change.
#[test]
fn a_step_sends_the_time_after_the_prompt() {
    let (server, _) = described(TOML);
    for words in [&["begin", "k", "--owner", "w"][..], &["complete", "k", "--status", "201"]] {
        let mut session =
            on_terminal(server.command(), &[words, &["--schema", "payidem"]].concat());
        session.exp_string("[y/N]").unwrap();
        thread::sleep(Duration::from_millis(1_100));
        let asked = seconds(&server);
        press(&mut session, "", "y\r");
        ends(session).exits(0);
        let redis_key = format!("pay:{}", words[1]);
        let value: serde_json::Value =
            serde_json::from_slice(&server.get(&redis_key).unwrap()).unwrap();
        assert!(value["at"].as_u64().unwrap() >= asked, "{asked}: {value}");
    }
}

/// Rule: a time that the server does not tell is never made up, for it would be stored.
#[test]
fn a_step_that_sends_the_time_is_refused_if_the_server_does_not_tell_it() {
    let release = r#"
[[release.call]]
command = ["SET", "{record}", "{now_s}", "EX", "60"]
replies = [{ word = "OK", means = "released" }]
"#;
    let direct = TOML.replace("{result_value}", r#"{\"st\":\"done\",\"at\":{now_s},\"code\":200}"#);
    let milliseconds = TOML.replace("{now_s}", "{now_ms}").replace("timestamp = \"s\"\n", "");
    let schemas = [TOML.to_owned() + release, direct + release, milliseconds + release];
    for toml in schemas {
        let (server, _) = described(&toml);
        server.idemctl(&["begin", "held", "--schema", "payidem", "--owner", "w", "--yes"]).exits(0);
        let before = server.get("pay:held");
        server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"-time"]);
        for words in [
            &["begin", "k"][..],
            &["release", "held", "--owner", "w"],
            &["complete", "held", "--status", "201"],
        ] {
            let run = server.idemctl(&[words, &["--schema", "payidem", "--yes"]].concat()).exits(4);
            run.says("idemctl cannot read the server's time").says("TIME");
        }
        assert_eq!((server.get("pay:k"), server.get("pay:held")), (None, before));
    }
}

#[test]
fn races_simulations_and_explorations_send_it_too() {
    let (server, folder) = described(TOML);
    let own = [
        "--schema-dir",
        folder.parent().unwrap().to_str().unwrap(),
        "--schema",
        "payidem",
        "--sandbox",
    ];
    for words in
        [&["race", "--concurrency", "5", "--rounds", "3"][..], &["simulate", "first-then-retry"]]
    {
        server.idemctl(&[words, &own].concat()).exits(0);
    }
    let own = ["--schema-dir", folder.parent().unwrap().to_str().unwrap()];
    let explored = server.idemctl(&[&["explore", "payidem"][..], &own].concat());
    assert!([0, 1].contains(&explored.code), "{}", explored.all());
}

/// Rule: seconds that are read as milliseconds make every record look decades old.
#[test]
fn a_check_on_a_server_warns_of_times_in_the_wrong_unit() {
    let (server, _) =
        described(&TOML.replace("timestamp = \"s\"\n", "").replace("{now_s}", "{now_ms}"));
    let check = || server.idemctl(&["schema", "check", "payidem"]);
    let hour = 3_600_000;
    let now = seconds(&server);
    server.set("pay:ms", format!(r#"{{"st":"in_progress","by":"w","at":{}}}"#, now * 1_000), hour);
    let warned = |text: &str| text.contains("warning");
    assert!(!warned(&check().exits(0).text()));
    for key in ["pay:a", "pay:b"] {
        server.set(key, format!(r#"{{"st":"in_progress","by":"w","at":{now}}}"#), hour);
    }
    let run = check().exits(0);
    run.shows("schema.toml:")
        .shows("warning: `created_at` of 2 of 3 records")
        .shows("before 2015")
        .shows("`timestamp = \"s\"`");
    server.set(
        "pay:c",
        format!(r#"{{"st":"in_progress","by":"w","at":{}}}"#, (now + 86_400 * 30) * 1_000),
        hour,
    );
    check().exits(0).shows("in the future");
}
