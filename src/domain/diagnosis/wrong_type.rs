//! `wrong-type`: the Redis key is not a string.

use super::finding::{Case, Finding, Severity};
use crate::domain::next_request::Answer;
use crate::domain::value::Reading;

pub(super) const CODE: &str = "wrong-type";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let kind = case.record.readings.iter().find_map(|reading| match reading {
        Reading::WrongType(kind) => Some(kind),
        _ => None,
    })?;
    let retries = match case.record.next_request.answer {
        Answer::Fail => "every step of the service fails on it",
        Answer::Conflict => "every retry is turned away",
        Answer::Replay => "retries are answered from the result all the same",
        Answer::Execute => "the next request executes all the same",
    };
    Some(Finding {
        code: CODE,
        severity: Severity::Error,
        message: format!("the Redis key holds a {kind}, not a string: {retries}"),
        advice: "another program uses this Redis key: find it before anything is removed".to_owned(),
    })
}
