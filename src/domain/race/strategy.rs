//! The strategies of a race's workers: the schema's own steps, or those of naive services.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::schema::value_template::Placeholder;
use crate::domain::schema::{Action, Call, Meaning, Reply, ReplyPattern, Schema, State, Template};

/// How the workers of a race acquire the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    /// The schema's own begin step.
    Schema,
    /// GET, then SET if the key did not exist.
    CheckThenAct,
    /// SET NX, then GET if that fails, as older releases do.
    SetNx,
}

as_str!(Strategy);

/// The calls that a strategy's workers make in each step.
#[derive(Debug, Clone)]
pub(crate) struct RaceSteps {
    pub(crate) begin: Vec<Call>,
    pub(crate) complete: Vec<Call>,
    /// `None` if the service has no release step, so that the lock remains until its TTL expires.
    pub(crate) release: Option<Vec<Call>>,
    /// True if begin takes the lock before it knows whether a result is stored. A request that gets
    /// a replay then holds the lock as well.
    pub(crate) locks_first: bool,
}

impl RaceSteps {
    /// The steps of a schema's service with this strategy.
    pub(crate) fn new(schema: &Schema, strategy: Strategy) -> Self {
        let begin = match strategy {
            Strategy::Schema => schema.begin_calls().to_vec(),
            Strategy::CheckThenAct => check_then_act(schema),
            Strategy::SetNx => set_nx(schema),
        };
        let release = match (&schema.release, strategy) {
            (Some(step), _) => Some(step.calls.clone()),
            (None, Strategy::Schema) => None,
            // A naive service deletes its lock when its handler fails.
            (None, Strategy::CheckThenAct | Strategy::SetNx) => Some(vec![delete_lock(schema)]),
        };
        let locks_first = locks_first(schema, &begin);
        Self { begin, complete: schema.complete_calls().to_vec(), release, locks_first }
    }
}

/// Commands that never take a lock.
const READS: [&str; 9] =
    ["GET", "MGET", "EXISTS", "TTL", "PTTL", "TYPE", "HGET", "HMGET", "HGETALL"];

/// True if a call before the last one may take the lock and leave the decision to the next call.
fn locks_first(schema: &Schema, begin: &[Call]) -> bool {
    let Some((_, earlier)) = begin.split_last() else { return false };
    for call in earlier {
        if READS.contains(&call.name().to_ascii_uppercase().as_str()) || !schema.touches_lock(call)
        {
            continue;
        }
        // A command that replies nil or 0 has not taken the lock.
        let takes = call.replies.iter().any(|reply| {
            let refuses = matches!(reply.pattern, ReplyPattern::Nil | ReplyPattern::Integer(0));
            reply.means == Meaning::Next && !refuses
        });
        if takes {
            return true;
        }
    }
    false
}

fn check_then_act(schema: &Schema) -> Vec<Call> {
    let mut calls = get_all(schema);
    calls.push(set_lock(schema, false));
    calls
}

fn set_nx(schema: &Schema) -> Vec<Call> {
    let mut calls = get_all(schema);
    // If the result has its own Redis key, it is read first, as older releases with such a layout
    // do.
    calls.pop();
    calls.push(set_lock(schema, true));
    calls.extend(get_all(schema));
    calls
}

/// A GET of the lock's and of the result's Redis key.
///
/// The lock is read last. A reader that reads the lock first would miss a completion between the
/// two reads.
fn get_all(schema: &Schema) -> Vec<Call> {
    (0..=schema.result_key_index()).rev().map(|key_index| get(schema, key_index)).collect()
}

/// A GET of one Redis key. If a value exists, it decides; otherwise the next call decides.
fn get(schema: &Schema, key_index: usize) -> Call {
    let mut replies = vec![entry(ReplyPattern::Nil, Meaning::Next)];
    for (index, value) in schema.values.iter().enumerate() {
        if value.key_index != key_index {
            continue;
        }
        // A naive client decides only by the state of the value that it finds.
        let meaning = match value.state {
            State::Completed | State::Failed => Meaning::Replay,
            State::Released => continue,
            _ => Meaning::Conflict,
        };
        replies.push(Reply { value: Some(index), ..entry(ReplyPattern::Value, meaning) });
    }
    command([Template::from_word("GET"), redis_key(schema, key_index)], replies)
}

/// A SET of the lock, with NX if it must not replace an existing value.
fn set_lock(schema: &Schema, only_if_absent: bool) -> Call {
    let mut words = vec![
        Template::from_word("SET"),
        redis_key(schema, schema.lock_key_index()),
        Template::from_placeholder(Placeholder::LockValue),
        Template::from_word("EX"),
        Template::from_placeholder(Placeholder::LockTtl),
    ];
    if only_if_absent {
        words.push(Template::from_word("NX"));
    }
    let replies =
        vec![entry(ReplyPattern::Text, Meaning::Acquired), entry(ReplyPattern::Nil, Meaning::Next)];
    command(words, replies)
}

fn delete_lock(schema: &Schema) -> Call {
    let replies = vec![
        entry(ReplyPattern::Integer(0), Meaning::Refused),
        entry(ReplyPattern::Integer(1), Meaning::Released),
    ];
    command([Template::from_word("DEL"), redis_key(schema, schema.lock_key_index())], replies)
}

fn command(words: impl Into<Vec<Template>>, replies: Vec<Reply>) -> Call {
    // Nothing is predicted of these steps.
    Call { action: Action::Command(words.into()), replies, reads: None }
}

fn redis_key(schema: &Schema, key_index: usize) -> Template {
    Template::from_placeholder(Placeholder::RedisKey(schema.keys[key_index].role))
}

fn entry(pattern: ReplyPattern, means: Meaning) -> Reply {
    Reply { pattern, value: None, means, when: Vec::new(), client: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Response;
    use crate::domain::samples::schema;
    use crate::domain::step::{StepInputs, StepReply};

    /// The commands of a strategy's begin, each in words.
    fn commands(name: &str, strategy: Strategy) -> Vec<String> {
        let schema = schema(name);
        let response = Response::default();
        let request = StepInputs::new(&schema, b"1", "me", &response);
        let mut commands = Vec::new();
        for call in &RaceSteps::new(&schema, strategy).begin {
            commands.push(String::from_utf8(request.words(call).join(&b' ')).unwrap());
        }
        commands
    }

    #[test]
    fn a_naive_begin_reads_the_result_before_the_lock() {
        let read_first = commands("event-consumer", Strategy::CheckThenAct);
        assert!(
            read_first[0].starts_with("GET ") && read_first[1].starts_with("GET "),
            "{read_first:?}"
        );
        assert!(
            read_first[2].starts_with("SET ") && !read_first[2].ends_with(" NX"),
            "{read_first:?}"
        );
        let taken_first = commands("event-consumer", Strategy::SetNx);
        let verbs: Vec<_> = taken_first.iter().map(|words| &words[..3]).collect();
        assert_eq!(verbs, ["GET", "SET", "GET", "GET"]);
        assert!(taken_first[1].ends_with(" NX"), "{taken_first:?}");
        assert_ne!(taken_first[0], taken_first[3], "the lock's key is read last");
    }

    #[test]
    fn a_naive_get_decides_by_the_value_format() {
        let schema = schema("express");
        let response = Response { status: Some(201), body: b"{}".to_vec(), ..Response::default() };
        let request = StepInputs::new(&schema, b"1", "me", &response);
        let steps = RaceSteps::new(&schema, Strategy::CheckThenAct);
        let meaning = |reply: StepReply| {
            request.matcher().match_reply(&steps.begin[0], &reply).map(|matched| matched.meaning())
        };
        assert_eq!(meaning(StepReply::Nil), Some(Meaning::Next));
        assert_eq!(meaning(StepReply::Text(request.lock_value())), Some(Meaning::Conflict));
        assert_eq!(meaning(StepReply::Text(request.result_value())), Some(Meaning::Replay));
        assert_eq!(meaning(StepReply::Integer(1)), None);
    }
}
