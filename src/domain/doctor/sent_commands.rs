//! The commands that the steps of a schema send, and those of idemctl.

use std::sync::{Arc, LazyLock};

use regex_lite::Regex;

use crate::domain::record::Response;
use crate::domain::schema::{Action, Schema};
use crate::domain::step::StepInputs;

/// The idempotency key of the commands whose rights are asked. No service uses it.
pub(crate) const KEY: &[u8] = b"idemctl-doctor";

/// A command that somebody sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentCommand {
    /// The schema whose step sends it; `None` for a command of idemctl.
    pub(crate) schema: Option<String>,
    /// The step, or the commands of idemctl, that send it.
    pub(crate) needed_by: String,
    /// The name, in upper case.
    pub(crate) command: String,
    /// The words to ask about. If there are fewer than the command needs, any words may follow.
    pub(crate) words: Vec<Vec<u8>>,
}

/// The commands of idemctl, with the idemctl commands that send them. `KEY` is replaced with a
/// Redis key.
const OF_IDEMCTL: [(&str, &[&str]); 13] = [
    ("list, stats and check", &["SCAN", "0"]),
    ("inspect and list", &["TYPE", "KEY"]),
    ("inspect and list", &["PTTL", "KEY"]),
    ("inspect and list", &["GET", "KEY"]),
    ("inspect and list", &["GETRANGE", "KEY", "0", "0"]),
    ("inspect and list", &["TIME"]),
    ("inspect", &["EVAL", "return 1", "1", "KEY"]),
    ("force-unlock, sweep and purge", &["UNLINK", "KEY"]),
    ("extend", &["PEXPIREAT", "KEY", "1"]),
    ("restore and undo", &["RESTORE", "KEY", "0", ""]),
    ("begin and complete", &["SET", "KEY", ""]),
    ("begin and complete", &["MULTI"]),
    ("release", &["DEL", "KEY"]),
];

/// A call of a Redis command in a script, e.g. `redis.call('SET', ...)`.
static CALL_IN_SCRIPT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\b(?:redis|server)\.p?call\(\s*["']([A-Za-z.]+)["']"#).ok());

/// Commands of scripts whose first argument is not a Redis key. Their rights depend on arguments
/// that are not known.
const WITHOUT_KEY_FIRST: [&str; 12] = [
    "ACL", "CONFIG", "EVAL", "FUNCTION", "MEMORY", "OBJECT", "PUBLISH", "SPUBLISH", "SCAN",
    "SCRIPT", "XGROUP", "XINFO",
];

/// The commands of idemctl, on this Redis key.
pub(crate) fn of_idemctl(redis_key: &[u8]) -> Vec<SentCommand> {
    let word =
        |word: &&str| if *word == "KEY" { redis_key.to_vec() } else { word.as_bytes().to_vec() };
    let sent = OF_IDEMCTL.iter().map(|(needed_by, words)| SentCommand {
        schema: None,
        needed_by: (*needed_by).to_owned(),
        command: words[0].to_owned(),
        words: words.iter().map(word).collect(),
    });
    sent.collect()
}

/// The commands of a schema's steps, and those in its scripts.
pub(crate) fn of_schema(schema: &Schema) -> Vec<SentCommand> {
    let steps = [
        ("begin", &schema.begin),
        ("renew", &schema.renew),
        ("complete", &schema.complete),
        ("release", &schema.release),
    ];
    let response =
        Response { status: Some(200), headers: Vec::new(), body: Vec::new(), whole: true };
    let inputs = StepInputs::new(schema, KEY, "owner", &response);
    let redis_keys = schema.redis_keys(KEY);
    let mut sent = Vec::new();
    for (name, step) in steps {
        for call in step.iter().flat_map(|step| &step.calls) {
            let (script, keys, args) = match &call.action {
                Action::Command(_) => {
                    add(schema, name, inputs.words(call), &mut sent);
                    continue;
                }
                Action::Script { name: script, keys, args } => (script, keys, args),
            };
            let mut words = vec![b"EVAL".to_vec(), b"return 1".to_vec()];
            words.extend(inputs.script_arguments(keys, args));
            add(schema, name, words, &mut sent);
            // Which Redis key the script passes is not known. The call names at least one of them.
            let touched = (0..redis_keys.len()).find(|index| schema.touches(call, *index));
            let redis_key = &redis_keys[touched.unwrap_or(0)];
            let text = schema.scripts.get(script).map_or("", |script| &*script.text);
            for command in commands_in(text) {
                if !WITHOUT_KEY_FIRST.contains(&&*command) {
                    let words = vec![command.into_bytes(), redis_key.clone()];
                    add(schema, name, words, &mut sent);
                }
            }
        }
    }
    sent
}

/// The commands of a schema's steps as its service sends them. Clients call a script with EVALSHA,
/// and with EVAL if the server does not know it.
pub(crate) fn of_service(schema: &Schema) -> Vec<SentCommand> {
    let mut sent = of_schema(schema);
    let mut by_hash = sent.clone();
    by_hash.retain(|sent| sent.command == "EVAL");
    for sent in &mut by_hash {
        "EVALSHA".clone_into(&mut sent.command);
        sent.words[0] = b"EVALSHA".to_vec();
        sent.words[1] = vec![b'0'; 40];
    }
    sent.extend(by_hash);
    sent
}

/// The commands in the scripts of these schemas whose rights cannot be asked, because they depend
/// on arguments that are not known.
pub(super) fn not_asked(schemas: &[Arc<Schema>]) -> Vec<String> {
    let scripts = schemas.iter().flat_map(|schema| schema.scripts.values());
    let mut commands: Vec<_> = scripts.flat_map(|script| commands_in(&script.text)).collect();
    commands.retain(|command| WITHOUT_KEY_FIRST.contains(&&**command));
    commands.sort();
    commands.dedup();
    commands
}

/// The names of the commands that a script calls, in upper case.
fn commands_in(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let Some(call_in_script) = &*CALL_IN_SCRIPT else { return commands };
    for line in text.lines() {
        let code = line.split("--").next().unwrap_or_default();
        for found in call_in_script.captures_iter(code) {
            commands.push(found[1].to_ascii_uppercase());
        }
    }
    commands
}

fn add(schema: &Schema, step: &str, words: Vec<Vec<u8>>, sent: &mut Vec<SentCommand>) {
    let Some(first) = words.first() else { return };
    let command = String::from_utf8_lossy(first).to_ascii_uppercase();
    // TIME has no arguments, although scripts call it like the others.
    let words = if command == "TIME" { vec![first.clone()] } else { words };
    let added = SentCommand {
        schema: Some(schema.name.clone()),
        needed_by: step.to_owned(),
        command,
        words,
    };
    if !sent.contains(&added) {
        sent.push(added);
    }
}
