//! The header of a service's script, proven against the calls and replies of its `schema.toml`.

use std::collections::BTreeSet;

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Action, Call, ReplyPattern, Schema};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::{ReplyMatcher, StepReply};

use crate::headers::words_of;
use crate::support::header::{Position, Script};
use crate::support::wire;

/// Every call of a schema, with the step's name.
fn calls(schema: &Schema) -> Vec<&Call> {
    schema.steps().flat_map(|step| &step.calls).collect()
}

/// The calls of all schemas that run a script: the schema, the script, the call.
fn script_calls(check: impl Fn(&Schema, &Script, &Call, &[Vec<u8>], &[Vec<u8>])) {
    let response = Response { body: b"{}".to_vec(), ..Response::default() };
    for schema in wire::built_in() {
        let request = StepInputs::new(&schema, b"{key}", "the-owner", &response);
        for call in calls(&schema) {
            if let Action::Script { name, keys, args } = &call.action {
                let script = Script::read(&format!("{}/{name}", schema.name));
                let fill =
                    |words: &[_]| words.iter().map(|word| request.word(word)).collect::<Vec<_>>();
                check(&schema, &script, call, &fill(keys), &fill(args));
            }
        }
    }
}

#[test]
fn every_script_of_a_schema_is_called_by_a_step() {
    for schema in wire::built_in() {
        let called: BTreeSet<_> = calls(&schema)
            .iter()
            .filter_map(|call| match &call.action {
                Action::Script { name, .. } => Some(name.as_str()),
                Action::Command(_) => None,
            })
            .collect();
        assert_eq!(called, schema.scripts.keys().map(String::as_str).collect(), "{}", schema.name);
    }
}

#[test]
fn schemas_send_the_keys_and_arguments_of_the_header() {
    script_calls(|schema, script, _, keys, args| {
        assert_eq!(keys.len(), script.count("KEYS"), "{}: KEYS", script.path);
        assert_eq!(args.len(), script.count("ARGV"), "{}: ARGV", script.path);
        for (position, word) in script.positions.iter().zip(keys.iter().chain(args)) {
            let word = std::str::from_utf8(word).unwrap();
            assert!(
                is_meant(schema, position, word),
                "{}: {position:?} is sent {word}",
                script.path
            );
        }
    });
}

/// True when what is sent is what the header says of the position.
fn is_meant(schema: &Schema, position: &Position, sent: &str) -> bool {
    if position.list == "KEYS" {
        let redis_key = position.meaning.split([',', ' ']).next().unwrap_or_default();
        return redis_key.trim_start_matches("{prefix}") == sent;
    }
    match position.name.as_str() {
        "lock_ttl" => sent == schema.lock_ttl.as_secs().to_string(),
        "result_ttl" => sent == schema.result_ttl.as_secs().to_string(),
        "worker" | "owner" => sent == "the-owner",
        "fingerprint" => sent.is_empty(),
        // The header lists what it may be.
        "on_failed" | "outcome" => words_of(&position.meaning).any(|word| word == sent),
        _ => sent.as_bytes() == stored_response(schema),
    }
}

fn stored_response(schema: &Schema) -> Vec<u8> {
    let response = Response { body: b"{}".to_vec(), ..Response::default() };
    StepInputs::new(schema, b"{key}", "the-owner", &response).stored_response()
}

#[test]
fn schemas_know_every_reply_of_the_header_and_no_other() {
    script_calls(|schema, script, call, _, _| {
        let mut met = BTreeSet::new();
        for reply in &script.replies {
            let known = ReplyMatcher { schema, fingerprint: "", owner: b"", now_ms: 0 }
                .match_reply(call, &example(reply));
            let known = known
                .unwrap_or_else(|| panic!("{}: schema.toml does not know `{reply}`", script.path));
            let known = known.entry;
            assert!(
                is_exact(&known.pattern, reply),
                "{}: `{reply}` is taken for {:?}",
                script.path,
                known.pattern
            );
            met.insert(call.replies.iter().position(|other| std::ptr::eq(other, known)));
        }
        assert_eq!(
            met.len(),
            call.replies.len(),
            "{}: schema.toml knows more replies",
            script.path
        );
    });
}

/// A reply as the server would send it.
fn example(reply: &str) -> StepReply {
    if let Some(code) = reply.strip_prefix("error ") {
        return StepReply::Error { code: code.to_owned(), message: "some text".to_owned() };
    }
    if let Some(items) = reply.strip_prefix('{').and_then(|reply| reply.strip_suffix('}')) {
        return StepReply::Array(items.split(", ").map(example).collect());
    }
    match reply.parse() {
        Ok(number) => StepReply::Integer(number),
        Err(_) if reply == "nil" => StepReply::Nil,
        Err(_) => StepReply::Text(reply.as_bytes().to_vec()),
    }
}

/// True when a word is recognised as that word, and not as any text.
fn is_exact(pattern: &ReplyPattern, reply: &str) -> bool {
    (*pattern == ReplyPattern::Text) == reply.starts_with('<')
}
