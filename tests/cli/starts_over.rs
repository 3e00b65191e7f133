//! A service whose begin starts over: it takes the lock again if it finds a stored failure, a released
//! record, or a lock past its own expiry.

use serde_json::Value;

use crate::support::{Server, backup};

const TOML: &str = r#"format = 2
name = "orders"
keys = { record = "orders:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "running"
where = { "/st" = "RUN" }
required = ["/by", "/until"]
state = "in-progress"
fields = { owner = "/by" }
expires_at = { field = "/until", unit = "ms", past = "reclaimable" }

[[value]]
name = "done"
where = { "/st" = "DONE" }
required = ["/body"]
state = "completed"
fields = { body = "/body" }

[[value]]
name = "failed"
where = { "/st" = "FAILED" }
required = ["/error"]
state = "failed"
fields = { error = "/error" }

[[value]]
name = "free"
where = { "/st" = "FREE" }
required = ["/st"]
state = "released"

[write]
lock_value = '{"st":"RUN","by":"{owner}","until":{lock_expires_ms}}'
result_value = '{"st":"DONE","body":{body_text}}'
failed_value = '{"st":"FAILED","error":{error_text}}'

[service]
on_failure = "store"

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{lock_value}", "{result_ttl_ms}", "{now_ms}"]
replies = [
  { word = "TAKEN", means = "acquired", when = [{ record = "absent" }, { record = "failed" }, { record = "free" }, { record = "reclaimable" }] },
  { word = "BUSY", means = "conflict", when = { record = "running" } },
  { value = "done", means = "replay" },
  { error = "*", means = "fail", when = { record = "present" } },
]

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{result_value}", "{result_ttl_ms}"]
replies = [
  { integer = 1, means = "stored", when = [{ record = "running" }, { record = "reclaimable" }] },
  { integer = 0, means = "refused", when = {} },
]

[release]
checks_owner = true

[[release.call]]
script = "release"
keys = ["{record}"]
args = ["{owner}", '{"st":"FREE"}']
replies = [
  { integer = 1, means = "released", when = [{ record = "running" }, { record = "reclaimable" }] },
  { integer = 0, means = "refused", when = {} },
]
"#;

const BEGIN: &str = "local found = redis.call('GET', KEYS[1])
if found then
  local record = cjson.decode(found)
  if record.st == 'DONE' then
    return found
  end
  if record.st == 'RUN' and record['until'] > tonumber(ARGV[3]) then
    return 'BUSY'
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'TAKEN'
";

const COMPLETE: &str = "if redis.call('TYPE', KEYS[1]).ok ~= 'string' then
  return 0
end
local record = cjson.decode(redis.call('GET', KEYS[1]))
if record.st ~= 'RUN' or record.by ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
";

const RELEASE: &str = "if redis.call('TYPE', KEYS[1]).ok ~= 'string' then
  return 0
end
local record = cjson.decode(redis.call('GET', KEYS[1]))
if record.st ~= 'RUN' or record.by ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
";

/// A server with this schema, which handles failures by `on_failure`.
fn server(on_failure: &str) -> Server {
    let server = Server::start();
    let toml = TOML.replace(r#"on_failure = "store""#, &format!("on_failure = \"{on_failure}\""));
    describe(&server, &toml, BEGIN);
    server
}

fn describe(server: &Server, toml: &str, begin: &str) {
    let files = [
        ("schema.toml", toml),
        ("begin.lua", begin),
        ("complete.lua", COMPLETE),
        ("release.lua", RELEASE),
    ];
    server.describe("orders", &files);
}

/// A server whose service replays failures, as most do.
fn replaying() -> Server {
    let server = Server::start();
    let toml = TOML.replace(", { record = \"failed\" }", "").replace(
        "\"done\", means",
        "\"failed\", means = \"replay\" },\n  { value = \"done\", means",
    );
    let begin = BEGIN.replace("== 'DONE' then", "== 'DONE' or record.st == 'FAILED' then");
    describe(&server, &toml, &begin);
    server
}

/// Rule: the prediction says that such a record executes, and `begin` does what it says.
#[test]
fn the_next_request_executes_over_what_begin_takes_again() {
    let server = server("store");
    server.idemctl(&["schema", "check", "orders"]).exits(0).shows("orders: ok");
    let now = backup::now_ms(&server);
    for (key, value, answer) in [
        ("failed", r#"{"st":"FAILED","error":"declined"}"#.to_owned(), "execute"),
        ("free", r#"{"st":"FREE"}"#.to_owned(), "execute"),
        ("dead", format!(r#"{{"st":"RUN","by":"w-0","until":{}}}"#, now - 1), "execute"),
        ("held", format!(r#"{{"st":"RUN","by":"w-0","until":{}}}"#, now + 600_000), "conflict"),
        ("done", r#"{"st":"DONE","body":"x"}"#.to_owned(), "replay"),
    ] {
        server.set(&format!("orders:{key}"), value, 3_600_000);
        let inspect = ["inspect", key, "--schema", "orders", "-o", "json"];
        let record = server.idemctl(&inspect).exits(0).json()["records"][0].clone();
        assert_eq!(record["next_request"]["answer"], answer, "{record}");
        let begin = ["begin", key, "--schema", "orders", "--owner", "w-1", "--yes"];
        let run = server.idemctl(&begin);
        assert_eq!(run.code == 0, answer == "execute", "{key}: {}", run.all());
    }
    let replays = replaying();
    replays.idemctl(&["schema", "check", "orders"]).exits(0).shows("orders: ok");
    replays.set("orders:failed", r#"{"st":"FAILED","error":"declined"}"#, 3_600_000);
    let inspect = ["inspect", "failed", "--schema", "orders"];
    replays.idemctl(&inspect).exits(0).shows("replay");
}

/// The steps and the stored values of a history that `explore` replays.
fn replayed(server: &Server, token: &str) -> Vec<(String, String)> {
    let token = format!("1:orders,orders:{token}");
    let folder = server.folder().join(".config/idemctl/schemas").display().to_string();
    let words = ["explore", "--schema-dir", &folder, "--replay", &token, "--sandbox", "-o", "json"];
    let json = server.idemctl(&words).json();
    let trace = json["schemas"][0]["replay"]["trace"]
        .as_array()
        .unwrap_or_else(|| panic!("{json}"))
        .clone();
    let text = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let mut steps = Vec::new();
    for step in &trace {
        steps.push((text(step, "reply"), text(step, "holds")));
    }
    steps
}

/// Rule: `explore` lets a request execute again over such a record. Worker 2 begins last.
#[test]
fn explore_lets_a_request_execute_over_what_begin_takes_again() {
    for (on_failure, token, held) in [
        ("store", "s0.f0.s0.s1.e1", "failure"),
        ("release", "s0.f0.s0.s1.e1", "released"),
        ("store", "s0.e0.t0.s1.e1", "expired by its own time"),
    ] {
        let steps = replayed(&server(on_failure), token);
        let [.., before, begins, _] = steps.as_slice() else { panic!("{steps:?}") };
        assert!(before.1.contains(held), "{held}: {steps:?}");
        assert!(begins.0.contains("(acquired)"), "{held}: {steps:?}");
        assert!(begins.1.contains("lock of worker 2"), "{held}: {steps:?}");
    }
    // A handler that fails after its effect is then executed again, and not if failures are replayed.
    for (server, is_broken) in
        [(server("store"), true), (server("release"), true), (replaying(), false)]
    {
        let explore =
            ["explore", "--schema", "orders", "--workers", "2", "--sandbox", "-o", "json"];
        let json = server.idemctl(&explore).json();
        let harms = json["schemas"][0]["harms"].as_array().unwrap();
        let by_late_failure = harms.iter().any(|harm| {
            harm["invariant"] == "one-effect" && harm["minimal_faults"]["late-fail"] == 1
        });
        assert_eq!(by_late_failure, is_broken, "{harms:#?}");
        let is_other = harms.iter().any(|harm| harm["invariant"] != "one-effect");
        assert!(!is_broken || !is_other, "{harms:#?}");
    }
}

/// What the clients of a scenario see, and how often the payment is executed.
fn simulated(server: &Server, scenario: &str) -> (Value, Vec<String>) {
    let words = ["simulate", scenario, "--schema", "orders", "--sandbox", "-o", "json"];
    let cell = server.idemctl(&words).json()["cells"][0].clone();
    let mut replies = Vec::new();
    for step in cell["timeline"].as_array().unwrap() {
        if step["step"] == "begins (begin)" {
            replies.push(step["reply"].as_str().unwrap().to_owned());
        }
    }
    (cell, replies)
}

/// Rule: in `simulate`, the retry of a failed request executes, and a dead worker's lock ends by its
/// own expiry, after 30 s, and not with its Redis key, after a day.
#[test]
fn simulate_lets_a_retry_execute_over_what_begin_takes_again() {
    for on_failure in ["store", "release"] {
        let (cell, begun) = simulated(&server(on_failure), "handler-fails");
        assert_eq!((&cell["verdict"], &cell["effects"]), (&"safe".into(), &1.into()), "{cell}");
        assert!(begun[1].contains("(acquired)"), "{begun:?}");
    }
    let (cell, begun) = simulated(&replaying(), "handler-fails");
    assert_eq!(cell["effects"], 0, "{cell}");
    assert!(begun[1].contains("(replay)"), "{begun:?}");
    let (cell, begun) = simulated(&server("store"), "crash-before-complete");
    assert_eq!((&cell["verdict"], &cell["blocked_ms"]), (&"blocked".into(), &30_000.into()));
    assert!(begun[1].contains("(conflict)") && begun[2].contains("(acquired)"), "{begun:?}");
}
