//! `unreadable`: a value that the schema cannot decode.

use super::finding::{Case, Finding, Severity};
use crate::domain::next_request::Answer;

pub(super) const CODE: &str = "unreadable";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let why = case.record.unreadable_because().filter(|_| case.foreign.is_none())?;
    let retries = match case.record.next_request.answer {
        Answer::Fail => "every retry fails on it",
        Answer::Conflict => "every retry is turned away",
        Answer::Replay => "retries are answered from it as it is",
        Answer::Execute => "the next request executes",
    };
    Some(Finding {
        code: CODE,
        severity: Severity::Error,
        message: format!("the value cannot be read ({why}): {retries} until it expires"),
        advice: "find out who wrote it; `idemctl force-unlock` removes it, and the next request executes".to_owned(),
    })
}
