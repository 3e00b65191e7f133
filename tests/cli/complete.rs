//! `idemctl complete`: what it stores is what the service's own complete step stores, and its begin step replays it.

use std::ops::RangeInclusive;

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Meaning, Schema};
use idemctl::domain::step::inputs::StepInputs;
use redis::Connection;

use crate::support::wire;
use crate::support::{LOCK, PENDING, Run, Server};

const OWNER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
/// What is left of the result TTL of a day, in milliseconds, where the server was slow to tell.
const NEARLY_A_DAY: RangeInclusive<i64> = 86_300_000..=86_400_000;
const BODY: &str = r#"{ "id": 7, "note": "caf\u00e9 <b>" }"#;

/// One schema on an empty server, and a response with everything it keeps.
struct Case {
    schema: Schema,
    server: Server,
    connection: Connection,
    response: Response,
    /// The same as options.
    words: Vec<&'static str>,
}

fn cases() -> impl Iterator<Item = Case> {
    wire::built_in().into_iter().map(Case::new)
}

impl Case {
    fn new(schema: Schema) -> Self {
        let keeps = schema.write.keeps();
        let mut response = Response { whole: true, ..Response::default() };
        let mut words = Vec::new();
        if keeps.status {
            response.status = Some(201);
            words.extend(["--status", "201"]);
        }
        if keeps.headers {
            let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            response.headers = vec![
                header("x-request-id", "r-1"),
                header("Content-Type", "application/json"),
                header("Set-Cookie", "a=1"),
                header("set-cookie", "b=<2>"),
            ];
            words.extend([
                "--header",
                "x-request-id: r-1",
                "--header",
                "Content-Type: application/json",
            ]);
            words.extend(["--header", "Set-Cookie: a=1", "--header", "set-cookie: b=<2>"]);
        }
        if keeps.body {
            response.body = BODY.into();
            words.extend(["--body", BODY]);
        }
        let server = Server::start();
        let connection = server.connect();
        Self { schema, server, connection, response, words }
    }

    fn request<'a>(&'a self, key: &'a str) -> StepInputs<'a> {
        StepInputs {
            fingerprint: "f-1",
            ..StepInputs::new(&self.schema, key.as_bytes(), OWNER, &self.response)
        }
    }

    /// The service takes the lock.
    fn begin(&self, key: &str) -> Meaning {
        wire::play(
            &mut self.server.connect(),
            self.schema.begin.as_ref().unwrap(),
            &self.request(key),
        )
        .means()
    }

    /// The value and the milliseconds left of a role's Redis key.
    fn held(&mut self, key: &str, role: usize) -> (Option<Vec<u8>>, i64) {
        let redis_key = self.schema.redis_keys(key.as_bytes()).swap_remove(role);
        let value = redis::cmd("GET").arg(&redis_key).query(&mut self.connection).unwrap();
        let left = redis::cmd("PTTL").arg(&redis_key).query(&mut self.connection).unwrap();
        (value, left)
    }

    fn complete(&self, key: &str, more: &[&str]) -> Run {
        let schema = self.schema.name.as_str();
        let words =
            [&["complete", key, "--schema", schema, "--yes"], &self.words[..], more].concat();
        self.server.idemctl(&words)
    }

    /// `--owner`, where the step checks it.
    fn owner(&self) -> &'static [&'static str] {
        if self.schema.complete.as_ref().unwrap().checks_owner { &["--owner", OWNER] } else { &[] }
    }

    fn fingerprint(&self) -> &'static [&'static str] {
        if self.schema.write.keeps_fingerprint() { &["--fingerprint", "f-1"] } else { &[] }
    }

    /// What the service itself stores for this response, for another key.
    fn by_the_service(&mut self) -> (Option<Vec<u8>>, i64) {
        assert_eq!(self.begin("theirs"), Meaning::Acquired);
        let step = self.schema.complete.as_ref().unwrap();
        let stored = wire::play(&mut self.server.connect(), step, &self.request("theirs")).means();
        assert_eq!(stored, Meaning::Stored);
        self.held("theirs", self.schema.result_key_index())
    }

    #[track_caller]
    fn assert_as_the_service_stores_it(&mut self, key: &str) {
        let name = self.schema.name.clone();
        let (result, lock) = (self.schema.result_key_index(), self.schema.lock_key_index());
        let ((ours, left), (theirs, their_left)) = (self.held(key, result), self.by_the_service());
        let timeless = |value: &Option<Vec<u8>>| value.as_deref().map(without_times);
        assert_eq!(timeless(&ours), timeless(&theirs), "{name}");
        assert!(
            NEARLY_A_DAY.contains(&left) && NEARLY_A_DAY.contains(&their_left),
            "{name}: {left}, {their_left}"
        );
        if lock != result {
            assert_eq!(self.held(key, lock).0, None, "{name}: the lock goes");
        }
        let played = wire::play(
            &mut self.server.connect(),
            self.schema.begin.as_ref().unwrap(),
            &self.request(key),
        );
        assert_eq!(played.means(), Meaning::Replay, "{name}");
        let carried = played.reply.stored().map(<[u8]>::to_vec);
        // Where only the response in the value is replayed, it is in the value byte for byte.
        if let Some(carried) = carried {
            let ours = ours.unwrap();
            assert!(ours.windows(carried.len()).any(|part| part == carried), "{name}");
        }
    }
}

/// A value without the server's times, 13 digits each: nothing else of it has as many.
fn without_times(value: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(value.to_vec()).unwrap();
    let mut timeless = String::new();
    let mut digits = String::new();
    for character in text.chars().chain(['\0']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        timeless.push_str(if digits.len() == 13 { "TIME" } else { &digits });
        digits.clear();
        timeless.push(character);
    }
    timeless.into_bytes()
}

#[test]
fn a_lock_of_the_service_becomes_the_result_it_would_have_stored() {
    for mut case in cases() {
        assert_eq!(case.begin("k"), Meaning::Acquired);
        let run = case.complete("k", case.owner()).exits(0);
        run.says(": stored; backup: ").says("Read back: the next request gets a replay");
        case.assert_as_the_service_stores_it("k");
    }
}

#[test]
fn where_the_lock_has_expired_the_result_is_created_on_request() {
    for mut case in cases() {
        case.complete("k", case.owner()).exits(1).says("--create");
        assert_eq!(case.server.size(), 0);
        let run = case
            .complete("k", &[&["--create"], case.owner(), case.fingerprint()].concat())
            .exits(0);
        assert!(!run.stderr.contains("backup: "), "nothing was there: {}", run.all());
        case.assert_as_the_service_stores_it("k");
    }
}

#[test]
fn a_result_is_replaced_on_request_alone_and_can_be_restored() {
    for mut case in cases() {
        assert_eq!(case.begin("k"), Meaning::Acquired);
        let wrong = Response { status: Some(200), body: b"wrong".to_vec(), ..Response::default() };
        let request = StepInputs { response: &wrong, ..case.request("k") };
        let stored = wire::play(
            &mut case.server.connect(),
            case.schema.complete.as_ref().unwrap(),
            &request,
        )
        .means();
        assert_eq!(stored, Meaning::Stored);
        let role = case.schema.result_key_index();
        let before = case.held("k", role);
        case.complete("k", case.owner()).exits(2).says("--replace");
        let (value, left) = case.held("k", role);
        assert!(value == before.0 && NEARLY_A_DAY.contains(&left) && left <= before.1, "{left}");
        let run = case.complete("k", &[&["--replace"], case.owner()].concat()).exits(0);
        case.assert_as_the_service_stores_it("k");
        let backup = run.stderr.split("backup: ").nth(1).unwrap().lines().next().unwrap();
        let redis_key = case.schema.redis_keys(b"k").swap_remove(role);
        case.server.send::<()>(&[b"DEL", &redis_key]);
        case.server.idemctl(&["restore", backup, "--yes"]).exits(0);
        assert_eq!(case.held("k", role).0, before.0, "{}", case.schema.name);
    }
}

#[test]
fn a_failed_operation_is_stored_as_the_service_stores_it() {
    for name in ["event-driven", "reference"] {
        let case = Case::new(wire::schema(name));
        assert_eq!(case.begin("k"), Meaning::Acquired);
        let words = ["complete", "k", "--schema", name, "--yes", "--owner", OWNER];
        let response = ["--status", "500", "--body", "", "--error", "card \"declined\""];
        case.server.idemctl(&[&words[..], &response].concat()).exits(0);
        let shown =
            case.server.idemctl(&["inspect", "k", "--schema", name, "-o", "json"]).exits(0).json();
        assert_eq!(shown["records"][0]["error"], "card \"declined\"");
        // The reference lets the next request try again, and the other replays the failure.
        let next = if name == "reference" { "execute" } else { "replay" };
        assert_eq!(shown["records"][0]["next_request"]["answer"], next);
    }
}

#[test]
fn a_body_comes_from_a_file_from_stdin_or_as_text() {
    let server = Server::start();
    let binary = b"\x00\xff@body\n".to_vec();
    std::fs::write(server.folder().join("body"), &binary).unwrap();
    let words = |key, body| {
        [
            "complete", key, "--schema", "go-chi", "--create", "--yes", "--status", "200",
            "--body", body,
        ]
    };
    server.idemctl(&words("file", "@body")).exits(0);
    server.idemctl_fed(&words("stdin", "-"), &binary).exits(0);
    server.idemctl(&words("text", "@@body")).exits(0);
    for (key, wanted) in [("file", &binary[..]), ("stdin", &binary), ("text", b"@body")] {
        let body = server.idemctl(&["inspect", key, "--schema", "go-chi", "--body", "-"]).exits(0);
        assert_eq!(body.stdout, wanted, "{key}");
    }
    server.idemctl(&words("missing", "@nowhere")).exits(2).says("nowhere").says("@@TEXT");
}

#[test]
fn the_deployments_ttl_and_prefix_count() {
    let server = Server::start();
    let words = [
        "complete", "k", "--schema", "go-chi", "--create", "--yes", "--status", "200", "--body",
        "x",
    ];
    server.idemctl(&[&words[..], &["--prefix", "pay:", "--result-ttl", "90s"]].concat()).exits(0);
    let left: i64 = server.send(&[b"PTTL", b"pay:k"]);
    assert!((80_000..=90_000).contains(&left), "{left}");
    // A full Redis key is one, also where nothing is there yet.
    let words = [
        "complete",
        "idem:result:x",
        "--schema",
        "event-driven",
        "--create",
        "--yes",
        "--status",
        "200",
    ];
    server.idemctl(&[&words[..], &["--body", "y"]].concat()).exits(0);
    assert!(server.get("idem:result:x").is_some() && server.get("idem:started:x").is_none());
}

/// Rule: where one schema has a record there, nobody has to name the schema; where several have, or none, somebody has.
#[test]
fn the_one_schema_that_holds_the_key_is_taken() {
    let server = Server::holding(&[("idempotency:k", PENDING, 60_000)]);
    let complete = ["complete", "k", "--status", "201", "--body", "", "--yes"];
    server.idemctl(&complete).exits(0);
    assert!(server.idemctl(&["inspect", "k"]).exits(0).text().contains("completed  go-middleware"));
    server
        .idemctl(&["complete", "nowhere", "--status", "201", "--body", "", "--yes"])
        .exits(2)
        .says("exactly one schema");
    server.idemctl(&["begin", "k", "--yes"]).exits(1).says("replay");
    server.set("idempotency:k", PENDING, 60_000);
    server.set("idem:k", LOCK, 60_000);
    server.idemctl(&complete).exits(2).says("which schema?");
    server.idemctl(&["release", "k", "--yes"]).exits(2).says("which schema?");
    // A damaged value at the second key may be a record of that schema, and another program's value is none.
    for (value, code) in [(r#"{"state":"in-pro"#, 2), ("another program's", 0)] {
        server.set("idemkey:two", value, 60_000);
        server.set("idem:two", LOCK, 60_000);
        server.idemctl(&["release", "two", "--yes"]).exits(code);
    }
    server.set("chi", r#"{"status":0}"#, 60_000);
    server
        .idemctl(&["complete", "chi", "--status", "201", "--body", "", "--yes"])
        .exits(2)
        .says("exactly one schema");
}

#[test]
fn a_body_that_is_to_be_json_and_is_not_is_refused() {
    let server = Server::holding(&[("idempotency:k", PENDING, 60_000)]);
    let json = ["--header", "Content-Type: application/json"];
    let complete = |more: &[&str]| {
        server.idemctl(&[&["complete", "k", "--status", "201", "--yes"], more].concat())
    };
    complete(&[&json[..], &["--body", r#"{"id":1"#]].concat())
        .exits(2)
        .says("the body is not valid JSON");
    assert_eq!(server.get("idempotency:k").unwrap(), br#"{"status":"PENDING"}"#);
    complete(&["--body", r#"{"id":1"#]).exits(0).says("warning: the body looks like JSON");
}

/// What follows these words, up to the end of the sentence.
fn told(run: &Run, before: &str) -> String {
    let (_, after) =
        run.stderr.split_once(before).unwrap_or_else(|| panic!("no {before:?}: {}", run.all()));
    after.split_once('.').unwrap().0.to_owned()
}

/// How long a sentence says that something lasts, in seconds; `None` for ever.
fn lasts(sentence: &str) -> Option<u64> {
    let (_, after) = sentence.split_once("for another ")?;
    let text = after.split([',', ':']).next().unwrap();
    Some(
        humantime::parse_duration(text)
            .unwrap_or_else(|error| panic!("{error}: {sentence}"))
            .as_secs(),
    )
}

/// What a key holds before an operator completes it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    Lock,
    Result,
}

/// Rule: the prediction of the next request equals what idemctl reads back, for every schema, state and expiry. The services'
/// scripts and schemas of one's own decide how long a result lives, so the trial has to start from the record's own bytes and
/// expiry.
#[test]
fn the_life_of_a_result_on_a_lock_is_predicted() {
    are_predicted(Before::Lock, &[None, Some(70_000), Some(7_200_000)]);
}

/// Rule: the same for a result that replaces another one.
#[test]
fn the_life_of_a_result_over_another_one_is_predicted() {
    are_predicted(Before::Result, &[None, Some(70_000), Some(7_200_000)]);
}

/// Rule: the same if the lock has expired. An absent key has no expiry.
#[test]
fn the_life_of_a_result_without_a_lock_is_predicted() {
    are_predicted(Before::Nothing, &[None]);
}

fn are_predicted(before: Before, expiries: &[Option<u64>]) {
    let mut schemas: Vec<String> = wire::built_in().into_iter().map(|schema| schema.name).collect();
    schemas.extend(["keeping", "hashes"].map(str::to_owned));
    let server = Server::start();
    server.describe("keeping", &[("schema.toml", &own_schema_that_keeps_the_expiry())]);
    server.describe(
        "hashes",
        &[("schema.toml", HASHES), ("begin.lua", BEGIN_HASH), ("done.lua", DONE_HASH)],
    );
    for schema in &schemas {
        for expiry in expiries {
            is_predicted(&server, schema, before, *expiry);
            for key in server.keys() {
                server.send::<()>(&[b"DEL", key.as_bytes()]);
            }
        }
    }
}

/// Completes a key, and compares the printed prediction with the state that idemctl reads back.
fn is_predicted(server: &Server, schema: &str, before: Before, expiry: Option<u64>) {
    let mut words = vec!["complete", "k", "--schema", schema, "--yes"];
    let keeps_nothing = ["event-consumer", "go-middleware-v1"].contains(&schema);
    if !keeps_nothing {
        words.extend(["--status", "201", "--body", "{}"]);
    }
    let mut owner = None;
    if before != Before::Nothing {
        server.idemctl(&["begin", "k", "--schema", schema, "--yes"]).exits(0);
        let held =
            server.idemctl(&["inspect", "k", "--schema", schema, "-o", "json"]).exits(0).json();
        owner = held["records"][0]["owner"].as_str().map(str::to_owned);
    }
    if let Some(owner) = &owner {
        words.extend(["--owner", owner]);
    } else if ["event-driven", "reference", "hashes"].contains(&schema) {
        words.extend(["--owner", OWNER]);
    }
    if before == Before::Result {
        server.idemctl(&words).exits(0);
    }
    for key in server.keys() {
        match expiry {
            None => server.send::<()>(&[b"PERSIST", key.as_bytes()]),
            Some(millis) => {
                server.send::<()>(&[b"PEXPIRE", key.as_bytes(), millis.to_string().as_bytes()])
            }
        }
    }
    match before {
        // reference compares payloads, and there is no lock that has the request's.
        Before::Nothing if schema == "reference" => words.extend(["--create", "--fingerprint", ""]),
        Before::Nothing => words.push("--create"),
        Before::Lock => {}
        Before::Result => words.push("--replace"),
    }
    let run = server.idemctl(&words).exits(0);
    let (predicted, came) = (told(&run, "Then "), told(&run, "Read back: "));
    let differ = match (lasts(&predicted), lasts(&came)) {
        (Some(predicted), Some(came)) => predicted.abs_diff(came) > 60,
        (predicted, came) => predicted != came,
    };
    assert!(
        !differ,
        "{schema}, {before:?}, {expiry:?}: {predicted:?} was predicted, {came:?} came: {}",
        run.all()
    );
    let outcome = |sentence: &str| sentence.split(" for ").next().unwrap().to_owned();
    assert_eq!(
        outcome(&predicted),
        outcome(&came),
        "{schema}, {before:?}, {expiry:?}: {}",
        run.all()
    );
}

/// A hash whose complete step writes fields and leaves the expiry as it is, if there is one.
const HASHES: &str = r#"format = 2
name = "hashes"
keys = { record = "pay:{key}" }
ttl = { lock = "none", result = "1d" }

[[value]]
name = "taken"
type = "hash"
where = { "/st" = "P" }
state = "in-progress"
fields = { owner = "/own" }

[[value]]
name = "done"
type = "hash"
where = { "/st" = "D" }
has = ["/code", "/resp"]
state = "completed"
fields = { status = "/code", body = "/resp" }

[write]
lock_value = '{"st":"P","own":"{owner}"}'
result_value = '{"st":"D","code":{status},"resp":{body_text}}'

[[begin.call]]
script = "begin"
keys = ["{record}"]
args = ["{owner}"]
replies = [
  { word = "GO", means = "acquired", when = { record = "absent" } },
  { word = "WAIT", means = "conflict", when = { record = "taken" } },
  { text = true, means = "replay", when = { record = "done" } },
]

[complete]
checks_owner = false

[[complete.call]]
script = "done"
keys = ["{record}"]
args = ["{result_value}"]
replies = [{ integer = 1, means = "stored", when = {} }]
"#;

const BEGIN_HASH: &str = r"-- begin: take the lock, unless the record is there.
--
-- KEYS[1]  record  pay:{key}
-- ARGV[1]  owner   the worker
--
-- Replies
--   GO      taken
--   WAIT    held
--   <text>  the response that is stored
--
local record = KEYS[1]
local owner = ARGV[1]
local st = redis.call('HGET', record, 'st')
if st == 'D' then
  return redis.call('HGET', record, 'resp')
end
if st then
  return 'WAIT'
end
redis.call('HSET', record, 'st', 'P', 'own', owner)
return 'GO'
";

const DONE_HASH: &str = r"-- done: store the response.
--
-- KEYS[1]  record  pay:{key}
-- ARGV[1]  fields  names and values by turns
--
-- Replies
--   1  stored
--
local record = KEYS[1]
local fields = {unpack(ARGV, 1)}
redis.call('HSET', record, unpack(fields))
return 1
";

/// go-chi's layout, whose complete step leaves the expiry that the lock had.
fn own_schema_that_keeps_the_expiry() -> String {
    r#"
format = 2
name = "keeping"
summary = "Results keep the expiry of the lock"

[keys]
record = "keep:{key}"

[ttl]
lock = "1m"
result = "1d"

[[value]]
name = "held"
at = "record"
encoding = "json"
has = ["/held"]
state = "in-progress"

[[value]]
name = "stored"
at = "record"
encoding = "json"
has = ["/code"]
state = "completed"
fields = { status = "/code", body = "/body" }

[write]
lock_value = '{"held":true}'
result_value = '{"code":{status},"body":{body_text}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next", when = { record = "present" } },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { word = '{"held":true}', means = "conflict", when = { record = "held" } },
  { text = true, means = "replay", when = { record = "stored" } },
]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "XX", "KEEPTTL"]
replies = [
  { word = "OK", means = "stored", when = { record = "present" } },
  { nil = true, means = "refused", when = { record = "absent" } },
]
"#
    .to_owned()
}

#[test]
fn a_replacement_overwrites_no_lock_of_another_worker() {
    let server = Server::holding(&[
        ("idem:result:k", r#"{"statusCode":201,"body":"paid"}"#, 80_000_000),
        ("idem:started:k", "worker-7", 20_000),
    ]);
    let replace = |owner: &str| {
        server.idemctl(&[
            "complete",
            "k",
            "--schema",
            "event-driven",
            "--replace",
            "--owner",
            owner,
            "--status",
            "200",
            "--body",
            "again",
            "--yes",
        ])
    };
    replace("other").exits(2).says("another owner holds a lock");
    assert_eq!(server.get("idem:started:k").as_deref(), Some(&b"worker-7"[..]));
    let stored = || String::from_utf8(server.get("idem:result:k").unwrap()).unwrap();
    assert!(stored().contains("paid"));
    replace("worker-7").exits(0);
    assert!(stored().contains("again"));
}
