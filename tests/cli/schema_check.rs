//! `idemctl schema check`: all errors in one run, the steps run on a private server, and what a schema finds in real data.

use std::fs;
use std::time::SystemTime;

use crate::simulate::variant::{FENCES, MINE, reference, run};
use crate::support::{Run, Runs, Server};

const SOUND: &str = r#"format = 2
name = "mine"
keys = { record = "mine:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "RUN" }
required = ["/at"]
state = "in-progress"
fields = { created_at = "/at" }

[[value]]
name = "done"
equals = "done"
state = "completed"

[write]
lock_value = '{"status":"RUN","at":{now}}'
result_value = "done"

[[begin.call]]
script = "take"
keys = ["{record}"]
args = ["{lock_value}", "{lock_ttl}"]
replies = [
  { word = "TAKEN", means = "acquired", when = { record = "absent" } },
  { word = "BUSY", means = "conflict", when = { record = "running" } },
  { value = "done", means = "replay" },
  { error = "*", means = "fail", when = { record = "present" } },
]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

const TAKE: &str = "local record = KEYS[1]
local value = ARGV[1]
local ttl = ARGV[2]
local found = redis.call('GET', record)
if not found then
  redis.call('SET', record, value, 'EX', ttl)
  return 'TAKEN'
end
if found == 'done' then
  return found
end
return 'BUSY'
";

fn with(toml: &str, script: &str) -> Server {
    let server = Server::start();
    let folder = server.folder().join("mine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("schema.toml"), toml).unwrap();
    fs::write(folder.join("take.lua"), script).unwrap();
    server
}

/// What the check says of the sound schema, changed; no server is named.
fn checked(changes: &[(&str, &str)]) -> Run {
    let change = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    with(&changes.iter().fold(SOUND.to_owned(), change), TAKE).unnamed(&["schema", "check", "mine"])
}

/// Rule: a plain mutex has no warning. Revert: a state that only another program leaves gives one.
#[test]
fn a_sound_schema_is_ok() {
    assert_eq!(checked(&[]).exits(0).text(), "mine: ok\n");
    let mutex = with(
        r#"format = 2
name = "mine"
keys = { lock = "mine:{key}" }
ttl = { lock = "30s" }

[[value]]
name = "held"
opaque = true
state = "in-progress"
fields = { owner = "" }

[write]
lock_value = "{owner}"

[[begin.call]]
command = ["SET", "{lock}", "{owner}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "present" } },
]

[release]
checks_owner = true

[[release.call]]
script = "take"
keys = ["{lock}"]
args = ["{owner}"]
replies = [
  { integer = 1, means = "released", when = { lock = "held" } },
  { integer = 0, means = "refused" },
]
"#,
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nreturn redis.call('DEL', KEYS[1])\n",
    );
    let checked = mutex.unnamed(&["schema", "check", "mine"]).exits(0);
    assert_eq!(checked.text(), "mine: ok\n");
}

#[test]
fn all_that_is_wrong_is_told_in_one_run() {
    let run = checked(&[
        ("equals = \"done\"\n", "opaque = 1\n"),
        ("word = \"BUSY\", means", "word = \"BUSY\", meens"),
        ("word = \"OK\", means = \"stored\"", "word = \"OK\", means = \"sorted\""),
    ]);
    let run = run.exits(1);
    for (line, message) in [
        (15, "invalid type: integer `1`"),
        (28, "unknown field `meens`"),
        (35, "unknown variant `sorted`"),
    ] {
        run.shows(format!("mine/schema.toml:{line}: error: {message}"));
    }
    let run = checked(&[
        ("equals = \"done\"\n", "encoding = \"text\"\n"),
        ("{now}", "{Now}"),
        ("\"{lock_ttl}\"", "\"{lock-ttl}\""),
        ("record = \"running\"", "record = \"gone\""),
    ]);
    let run = run.exits(1);
    for (line, message) in [
        (13, "matches any text; write `equals`, or `opaque = true` if that is intended"),
        (19, "`{Now}` is not a placeholder of a value and would be written unchanged"),
        (25, "`{lock-ttl}` is not a placeholder of a call and would be sent unchanged (in `args`)"),
        (28, "`when` names `gone`"),
    ] {
        run.shows(format!("mine/schema.toml:{line}: error: {message}"));
    }
    assert!(!run.text().contains("no [[value]] is called `done`"), "{}", run.all());
}

/// Rule: a reply has many fields and mostly one line, so that an error in one names the field as well.
#[test]
fn an_error_in_a_reply_names_the_field() {
    let conflict = "means = \"conflict\", when = { record = \"running\" }";
    for (reply, message) in [
        (
            "means = \"conflict\", when = { record = \"gone\" }",
            "which no [[value]] at that role is called (in `when.record`)",
        ),
        (
            "means = \"conflict\", when = [{ record = \"absent\" }, { lock = \"absent\" }]",
            "which [keys] does not have (in `when.lock`)",
        ),
        (
            "means = \"conflict\", when = { fingerprint = \"mine\" }",
            "not `mine` (in `when.fingerprint`)",
        ),
        ("means = \"stored\"", "a reply of [begin] cannot mean `stored` here (in `means`)"),
        (
            "means = \"conflict\", value = \"running\"",
            "`value` must be alone or with `array` (in `value`)",
        ),
        ("means = \"conflict\", value = \"gone\"", "no [[value]] is called `gone` (in `value`)"),
        ("means = \"busy\"", "`next` (in `means`)"),
        (
            "means = \"conflict\", client = 409",
            "invalid type: integer `409`, expected a string (in `client`)",
        ),
        ("means = \"conflict\", when = { record = 1 }", "expected a string (in `when.record`)"),
        ("means = \"conflict\", when = 1", "or a list of such tables (in `when`)"),
        // These speak of all of the reply, or name the field themselves.
        (
            "means = \"conflict\", nil = true",
            "a reply needs exactly one of word, integer, nil, error, array, text, value\n",
        ),
        ("client = \"409\"", "missing field `means`\n"),
    ] {
        let run = checked(&[(conflict, reply)]).exits(1);
        let text = run.text();
        let line = text
            .lines()
            .find(|line| line.starts_with("mine/schema.toml:28: error: "))
            .unwrap_or_default();
        assert!(format!("{line}\n").contains(message), "{reply}: {}", run.all());
        assert_eq!(text.matches("error:").count(), 1, "{reply}: {}", run.all());
    }
}

/// Rule: so does an error in a word of a call.
#[test]
fn an_error_in_a_call_names_the_field() {
    for (sound, wrong, message) in [
        ("args = [\"{lock_value}\"", "args = [\"{gone}\"", "`{gone}` is not a placeholder here"),
        ("args = [\"{lock_value}\"", "args = [7", "invalid type: integer `7`, expected a string"),
        (
            "keys = [\"{record}\"]",
            "keys = [\"{lock-key}\"]",
            "`{lock-key}` is not a placeholder of a call",
        ),
    ] {
        let run = checked(&[(sound, wrong)]).exits(1);
        let text = run.text();
        let line = text.lines().find(|line| line.contains(message)).unwrap_or_default();
        assert!(line.ends_with(&format!("(in `{}`)", &sound[..4])), "{wrong}: {}", run.all());
    }
}

/// Rule: a time that never changes would make every lock seem to be of that day.
#[test]
fn a_constant_time_is_refused() {
    let run = checked(&[("{now}", "1795227099000")]).exits(1);
    run.shows("mine/schema.toml:19: error: `created_at` is written as the same time whenever: write {now}");
}

/// Rule: what a script answers is in its list, and is what `when` foretells.
#[test]
fn a_script_answers_what_its_call_lists() {
    let run = with(SOUND, &TAKE.replace("'BUSY'", "'LOCKED'"))
        .unnamed(&["schema", "check", "mine"])
        .exits(1);
    run.shows(
        "mine/schema.toml:22: error: with a lock there the call replies \"LOCKED\", which none \
        of its replies covers; add one",
    );
    let run = with(SOUND, &TAKE.replace("found == 'done'", "found ~= 'done'"))
        .unnamed(&["schema", "check", "mine"]);
    run.exits(1).shows("mine/schema.toml:22: error: with a lock there the call replies");
    let run = checked(&[(
        "{ word = \"BUSY\", means = \"conflict\"",
        "{ word = \"BUSY\", means = \"fail\"",
    )])
    .exits(1);
    run.shows("the prediction for the next request is to fail, not to be rejected");
}

/// Rule: a step that succeeds in a state that no `when` names is predicted wrongly, so it is an error.
#[test]
fn a_success_that_no_when_names_is_an_error() {
    let release = |states: &str| {
        format!(
            "{SOUND}\n[release]\n\n[[release.call]]\ncommand = [\"DEL\", \"{{record}}\"]\n\
            replies = [{{ integer = 1, means = \"released\", when = {states} }}, \
            {{ integer = 0, means = \"refused\" }}]\n"
        )
    };
    let run = with(&release("{ record = \"running\" }"), TAKE);
    let run = run.unnamed(&["schema", "check", "mine"]).exits(1);
    run.shows(
        "error: with a result there the call replies 1 (released), but the `when` of its replies \
        predicts nothing; mend the call, or its `when`",
    );
    let run = with(&release("[{ record = \"running\" }, { record = \"done\" }]"), TAKE);
    run.unnamed(&["schema", "check", "mine"]).exits(0);
}

#[test]
fn without_a_server_program_the_steps_are_not_run_and_that_is_said() {
    let server = with(SOUND, TAKE);
    let empty = server.folder().join("nothing");
    fs::create_dir_all(&empty).unwrap();
    let mut command = crate::support::idemctl(server.folder());
    let run = command.args(["schema", "check", "mine"]).env("PATH", &empty).run().exits(0);
    run.says("the steps were not run: cannot start a temporary local Redis");
    assert_eq!(run.text(), "mine: ok\n");
}

#[test]
fn what_the_schema_finds_in_real_data_is_counted() {
    let server = with(SOUND, TAKE);
    server.fill((0..5).map(|number| (format!("mine:d{number}"), "done")), 80_000_000);
    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    server.set("mine:r", format!(r#"{{"status":"RUN","at":{now_ms}}}"#), 30_000);
    server.set("mine:torn", r#"{"status":"#, 30_000);
    server.set("mine:other", r#"{"status":"RUN","at":1,"user":"ann"}"#, 30_000);
    let run = server.idemctl(&["schema", "check", "mine"]).exits(0);
    assert!(
        run.text().starts_with("mine: ok, 8 keys: 5 completed, 1 in progress, "),
        "{}",
        run.all()
    );
    assert_eq!(server.unnamed(&["schema", "check", "mine"]).exits(0).text(), "mine: ok\n");
}

/// Rule: a value that a step stores without a TTL is named, because it stays in Redis. A command of
/// the step that sets the TTL later is enough, and a lock may be without one if the file says so.
/// Revert: without `try_ttls`, none of the three files has a warning.
#[test]
fn a_value_that_would_never_expire_is_a_warning() {
    let check = |toml: &str| with(toml, TAKE).idemctl(&["schema", "check", "mine"]).exits(0);
    let complete = r#"command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]"#;
    let no_ttl = complete.replace(r#", "EX", "{result_ttl}""#, "");
    let no_stated_ttl = SOUND.replace(r#"result = "24h""#, r#"result = "none""#);
    assert!(SOUND.contains(complete));

    // The file says 24 h, and the call sends none.
    let run = check(&SOUND.replace(complete, &no_ttl));
    run.shows("warning: complete stores the result `done` without a TTL, so it stays in Redis");
    run.shows("although the file states a TTL for it").shows("mine: ok");
    // The file says that results have none, and the call sends none.
    let run = check(&no_stated_ttl.replace(complete, &no_ttl));
    run.shows("warning: complete stores the result `done` without a TTL, so it stays in Redis");
    assert!(!run.all().contains("although"), "{}", run.all());
    // A later command of the step sets it.
    let later = r#"command = ["SET", "{record}", "{result_value}"]
replies = [{ word = "OK", means = "next", when = {} }]
[[complete.call]]
command = ["PEXPIRE", "{record}", "{result_ttl_ms}"]
replies = [{ integer = 1, means = "stored", when = {} }]"#;
    for toml in [SOUND.to_owned(), SOUND.replace(complete, later)] {
        let run = check(&toml);
        assert!(!run.all().contains("warning"), "{}", run.all());
    }

    // A lock without TTL: by intent, or against the file.
    let endless = TAKE.replace("value, 'EX', ttl)", "value)");
    let against = with(SOUND, &endless).idemctl(&["schema", "check", "mine"]).exits(0);
    against.shows("warning: begin stores the lock `running` without a TTL");
    let by_intent = SOUND
        .replace(r#"lock = "30s""#, r#"lock = "none""#)
        .replace(r#"args = ["{lock_value}", "{lock_ttl}"]"#, r#"args = ["{lock_value}"]"#);
    let endless = endless.replace("local ttl = ARGV[2]\n", "");
    let by_intent = with(&by_intent, &endless).idemctl(&["schema", "check", "mine"]).exits(0);
    assert!(!by_intent.all().contains("begin stores"), "{}", by_intent.all());
}

/// Rule: a failure has the TTL of results. Revert: if only a success is completed, the failure that
/// stays is not named.
#[test]
fn a_stored_failure_that_would_never_expire_is_a_warning() {
    let failed = "[[value]]\nname = \"failed\"\nwhere = { \"/status\" = \"FAILED\" }\nrequired = \
        [\"/error\"]\nstate = \"failed\"\nfields = { error = \"/error\" }\n\n[write]\n\
        failed_value = '{\"status\":\"FAILED\",\"error\":{error_text}}'\n";
    let replays = "  { value = \"done\", means = \"replay\" },\n";
    let toml = SOUND
        .replace("[write]\n", failed)
        .replace(replays, &format!("{replays}  {{ value = \"failed\", means = \"replay\" }},\n"));
    let script = TAKE.replace("found == 'done'", "found == 'done' or found:find('FAILED')");
    let complete = r#"command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]"#;
    let stores = r#"script = "store"
keys = ["{record}"]
args = ["{result_value}", "{result_ttl}", "{outcome}"]"#;
    let store = "if ARGV[3] == 'failed' then
  return redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
";
    let server = with(&toml.replace(complete, stores), &script);
    let folder = server.folder().join("mine");
    fs::write(folder.join("store.lua"), store).unwrap();
    let run = server.idemctl(&["schema", "check", "mine"]).exits(0);
    run.shows("warning: complete stores the failure `failed` without a TTL");
    assert!(!run.all().contains("`done`"), "{}", run.all());
}

/// What the check says of the reference with this text in the place of that one.
fn reference_with(file: &str, from: &str, to: &str) -> Run {
    let changed = reference().with(file, from, to);
    run(changed.folder(), &["schema", "check", MINE])
}

/// Rule: `checks_owner = true` is tested with owners that differ in one byte. Revert: without
/// `try_claims`, each of these is ok.
#[test]
fn a_step_that_claims_to_check_the_owner_and_does_not_is_an_error() {
    let compares = "if (holder or author) ~= owner then";
    let ends = "if string.sub(holder or author, -4) ~= string.sub(owner, -4) then";
    let starts = "if string.sub(holder or author, 1, 8) ~= string.sub(owner, 1, 8) then";
    for blind in ["if false then", ends, starts] {
        let checked = reference_with("complete.lua", compares, blind).exits(1);
        checked.shows("complete changes another owner's record, although `checks_owner = true`");
    }
    let released = "if not holder then";
    let checked = reference_with("release.lua", FENCES, released).exits(1);
    checked.shows("release changes another owner's record");
    let revived = reference().with("renew.lua", "return 'LOST'", "return 'RENEWED'").with(
        "schema.toml",
        "means = \"renewed\", when = { record = \"in-progress\" } },\n  { word = \"LOST\", means = \"refused\", when = { record = \"absent\" } }",
        "means = \"renewed\", when = [{ record = \"in-progress\" }, { record = \"absent\" }] },\n  { word = \"LOST\", means = \"refused\" }",
    );
    let checked = run(revived.folder(), &["schema", "check", MINE]).exits(1);
    checked.shows("renew succeeds without its lock, although `checks_owner = true`");
}

/// Rule: an owner check is worth nothing if another worker can take the lock before the change.
#[test]
fn a_check_and_a_change_in_two_calls_are_an_error() {
    let split = reference().with(
        "schema.toml",
        "  { word = \"RELEASED\", means = \"released\", when = { record = \"in-progress\" } },\n",
        "  { word = \"RELEASED\", means = \"next\", when = { record = \"in-progress\" } },\n",
    );
    let toml = split.folder().join(MINE).join("schema.toml");
    let call = "\n[[release.call]]\ncommand = [\"DEL\", \"{record}\"]\nreplies = [\n  \
        { integer = 1, means = \"released\" },\n  { integer = 0, means = \"released\" },\n]\n";
    let text = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, text + call).unwrap();
    let split = split.with("release.lua", "redis.call('DEL', record)\n", "");
    let checked = run(split.folder(), &["schema", "check", MINE]).exits(1);
    checked.shows("release checks and changes separately, although `checks_owner = true`");
}

/// Rule: an owner that is sent and never read is not compared.
#[test]
fn an_owner_that_the_script_never_reads_is_an_error() {
    let blind = reference().with("complete.lua", "local owner = ARGV[1]\n", "").with(
        "complete.lua",
        "if (holder or author) ~= owner then",
        "if false then",
    );
    let checked = run(blind.folder(), &["schema", "check", MINE]).exits(1);
    let error = "error: complete changes another owner's record, although `checks_owner = true`";
    assert_eq!(checked.text().matches(error).count(), 1, "{}", checked.all());
}

#[test]
fn a_step_that_checks_the_owner_and_does_not_say_so_is_a_warning() {
    let claims = "[release]\nchecks_owner = true";
    let checked = reference_with("schema.toml", claims, "[release]\nchecks_owner = false").exits(0);
    checked.shows("warning: release refuses other owners; write `checks_owner = true`");
}

#[test]
fn results_that_expire_before_locks_are_a_warning() {
    let checked = reference_with("schema.toml", "result = \"24h\"", "result = \"10s\"").exits(0);
    checked.shows("warning: results expire after 10s, before locks do (30s)");
}

/// Rule: what idemctl does not know of, it neither restores nor backs up.
#[test]
fn a_redis_key_that_the_schema_does_not_name_is_a_warning() {
    let renewed = "return 'RENEWED'";
    let counts = "redis.call('INCR', record .. ':tries')\nreturn 'RENEWED'";
    let checked = reference_with("renew.lua", renewed, counts).exits(0);
    checked.shows("warning: renew writes the Redis key ");
    checked.shows(":tries, which `[keys]` does not name");
}

/// A library whose complete script stores the result into the hash of the lock, and removes the owner.
const GATE: &str = r#"format = 2
name = "mine"
keys = { record = "mine:{key}" }
ttl = { lock = "30s", result = "1h" }

[[value]]
name = "held"
type = "hash"
where = { "/state" = "held" }
required = ["/owner"]
state = "in-progress"
fields = { owner = "/owner" }

[[value]]
name = "done"
type = "hash"
where = { "/state" = "done" }
required = ["/response"]
state = "completed"
fields = { body = "/response" }

[write]
lock_value = '{"state":"held","owner":"{owner}"}'
result_value = '{"state":"done","response":{body_text}}'

[complete]
checks_owner = true

[[complete.call]]
script = "complete"
keys = ["{record}"]
args = ["{owner}", "{body}", "{result_ttl_ms}"]
replies = [
  { integer = 1, means = "stored", when = { record = "held" } },
  { integer = 0, means = "refused" },
]
"#;

/// Rule: a result is what the script leaves in the hash. Revert: with the fields of the lock, `/owner` is one that results do not
/// have, exit 1.
#[test]
fn a_result_without_the_fields_that_its_script_removes_is_in_order() {
    let complete = "if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end\n\
        redis.call('HDEL', KEYS[1], 'owner')\n\
        redis.call('HSET', KEYS[1], 'state', 'done', 'response', ARGV[2])\n\
        redis.call('PEXPIRE', KEYS[1], ARGV[3])\nreturn 1\n";
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(MINE)).unwrap();
    fs::write(home.path().join(MINE).join("schema.toml"), GATE).unwrap();
    fs::write(home.path().join(MINE).join("complete.lua"), complete).unwrap();
    run(home.path(), &["schema", "check", MINE]).exits(0);
}
