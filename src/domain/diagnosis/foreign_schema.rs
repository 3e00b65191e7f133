//! `foreign-schema`: the value is that of another schema which shares the Redis key, e.g. an older release's.

use super::finding::{Case, Finding, Foreign, Severity};
use crate::domain::next_request::Answer;

pub(super) const CODE: &str = "foreign-schema";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let own = &case.record.schema.name;
    Some(match case.foreign? {
        Foreign::WrittenBy(writer) => {
            let retries = match case.record.next_request.answer {
                Answer::Fail => "fails on it with every retry",
                _ => "does not understand it",
            };
            Finding {
                code: CODE,
                severity: Severity::Error,
                message: format!("the value was written by {writer}: a service on {own} {retries} until it expires"),
                advice: format!(
                    "see it as what it is with --schema {writer}, and find out why both run on the same keys"
                ),
            }
        }
        Foreign::OlderReleaseOf(newer) => Finding {
            code: CODE,
            severity: Severity::Warning,
            message: format!(
                "written by the older release ({own}): a service on the newer one ({newer}) fails on it with every retry until it expires"
            ),
            advice: format!(
                "if {newer} serves this key now, `idemctl force-unlock` it once its worker is done; if {own} still does, say --schema {own}"
            ),
        },
    })
}
