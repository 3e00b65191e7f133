//! What the next request with a key gets, derived from the replies of the schema's begin step.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::{Content, Expiry, Observation, Reading};
use crate::domain::schema::{Condition, KeyIs, Meaning, Reply, Schema, Step};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRequest {
    pub answer: Answer,
    /// Until when it gets that; `None` when it executes, for then the answer changes with the request itself.
    pub until: Option<Expiry>,
    /// What the client is told, where the schema says so.
    pub client: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Answer {
    /// The request takes the lock, and the operation runs.
    Execute,
    /// The request is turned away: another request holds the lock.
    Conflict,
    Replay,
    Fail,
    /// The schema does not describe the begin step.
    Unknown,
}

as_str!(Answer);

/// Walks the begin step's replies in order; the first one that comes in this state of the Redis keys is the answer. A
/// state that no reply is foreseen for makes the service fail.
pub fn of(schema: &Schema, readings: &[Reading], seen: &Observation) -> NextRequest {
    let Some(begin) = &schema.begin else {
        return NextRequest { answer: Answer::Unknown, until: None, client: None };
    };
    let Some((reply, condition)) = foreseen(begin, readings, false) else {
        return NextRequest { answer: Answer::Fail, until: Some(first_expiry(seen)), client: None };
    };
    let answer = match reply.means {
        Meaning::Acquired => Answer::Execute,
        Meaning::Conflict => Answer::Conflict,
        Meaning::Replay => Answer::Replay,
        _ => Answer::Fail,
    };
    let until = (answer != Answer::Execute).then(|| decider(condition, readings, seen));
    NextRequest { answer, until, client: reply.client.clone() }
}

/// The reply of a step that is foreseen for these readings, and the condition that holds; `other_payload` for a request with
/// another payload than the stored one.
pub(crate) fn foreseen<'a>(
    step: &'a Step,
    readings: &[Reading],
    other_payload: bool,
) -> Option<(&'a Reply, &'a Condition)> {
    let holds = |condition: &Condition| {
        let is_so = |(role, asked): &(usize, KeyIs)| readings[*role].is(asked);
        condition.keys.iter().all(is_so) && (other_payload || !condition.other_payload)
    };
    step.calls
        .iter()
        .flat_map(|call| &call.replies)
        // What the next call decides is foretold by the next call's replies.
        .filter(|reply| reply.means != Meaning::Next)
        .find_map(|reply| reply.when.iter().find(|condition| holds(condition)).map(|condition| (reply, condition)))
}

/// The expiry of the Redis key that decides the answer: the first one the condition asks to be there. A value that ends
/// sooner by what it holds ends the answer.
fn decider(condition: &Condition, readings: &[Reading], seen: &Observation) -> Expiry {
    let role = condition.keys.iter().find(|(_, asked)| *asked != KeyIs::Absent).map(|(role, _)| *role);
    let Some(role) = role else { return first_expiry(seen) };
    let lapses = readings[role].decoded().filter(|value| value.lapsed.is_none()).and_then(|value| value.expires_ms);
    let left = lapses.zip(seen.server_ms).map(|(lapses, now)| lapses.saturating_sub(now));
    match (seen.keys[role].expiry, left) {
        (Expiry::In(ms), Some(left)) => Expiry::In(ms.min(left)),
        (Expiry::Never, Some(left)) => Expiry::In(left),
        (expiry, None) => expiry,
    }
}

fn first_expiry(seen: &Observation) -> Expiry {
    seen.keys.iter().find(|key| key.content != Content::Absent).map_or(Expiry::In(0), |key| key.expiry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::decode;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, schemas, seen, text};

    /// Everything a Redis key can be to a condition.
    fn contents() -> Vec<Content> {
        let texts = [
            "",
            "1",
            "in-progress",
            "completed",
            CHI_LOCK,
            CHI_RESULT,
            r#"{"status":"PENDING"}"#,
            r#"{"status":"IN_PROGRESS"}"#,
            r#"{"status":"COMPLETED"}"#,
            r#"{"statusCode":200}"#,
            r#"{"storage":1,"bucket":1,"key":1}"#,
        ];
        let others = [Content::Absent, Content::Other("hash".to_owned())];
        texts.iter().map(text).chain(others).collect()
    }

    /// What the next request gets when the Redis keys hold this; the lock's goes in 1 ms, the result's in 2 ms.
    fn next(schema: &Schema, contents: &[Content]) -> NextRequest {
        let contents: Vec<_> = contents.iter().cloned().zip([1, 2].map(Expiry::In)).collect();
        let seen = seen(schema, &contents);
        of(schema, &decode::read_all(schema, &seen), &seen)
    }

    fn without(contents: &[Content], role: usize) -> Vec<Content> {
        let mut contents = contents.to_vec();
        contents[role] = Content::Absent;
        contents
    }

    #[test]
    fn the_answer_holds_until_the_key_that_decides_it_is_gone() {
        for schema in schemas().iter().filter(|schema| schema.keys.len() == 2) {
            for lock in contents() {
                for result in contents() {
                    let held = [lock.clone(), result];
                    let now = next(schema, &held);
                    let Some(Expiry::In(until)) = now.until else { continue };
                    let decider = usize::from(until == 2);
                    let other_gone = next(schema, &without(&held, 1 - decider));
                    assert_eq!(other_gone.answer, now.answer, "{}: {held:?}", schema.name);
                    let gone = next(schema, &without(&held, decider));
                    assert_ne!(gone, now, "{}: {held:?}", schema.name);
                }
            }
        }
    }

    #[test]
    fn an_answer_without_end_says_so_and_executing_has_none() {
        assert_eq!(chi(CHI_LOCK, Expiry::Never).next_request.until, Some(Expiry::Never));
        assert_eq!(chi(CHI_LOCK, Expiry::In(7)).next_request.until, Some(Expiry::In(7)));
        let chi = schemas().into_iter().find(|schema| schema.name == "go-chi").unwrap();
        assert_eq!(next(&chi, &[Content::Absent]).until, None);
    }

    #[test]
    fn a_state_that_no_reply_is_foreseen_for_makes_the_service_fail() {
        let mut schema = schemas().into_iter().find(|schema| schema.name == "express").unwrap();
        if let Some(begin) = &mut schema.begin {
            begin.calls[0].replies.retain(|reply| reply.means == Meaning::Acquired);
        }
        let unforeseen = next(&schema, &[text("x")]);
        assert_eq!((unforeseen.answer, unforeseen.until), (Answer::Fail, Some(Expiry::In(1))));
    }
}
