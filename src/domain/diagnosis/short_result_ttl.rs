//! `short-result-ttl`: a result that goes sooner than retries may come.

use super::finding::{Case, Finding, Severity};
use crate::domain::age::{self, AgeSource};
use crate::domain::duration;
use crate::domain::observation::Expiry;
use crate::domain::schema::State;

pub(super) const CODE: &str = "short-result-ttl";

const ADVICE: &str =
    "compare with what the service sets: a result should outlive the last retry or redelivery, 24h to 72h";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let record = case.record;
    let Expiry::In(left) = record.result().filter(|_| record.state == State::Completed)?.expiry else { return None };
    let (lock_ttl, result_ttl) = (age::millis(record.schema.lock_ttl), age::millis(record.schema.result_ttl));
    let written = record.age.filter(|age| age.source == AgeSource::Record);
    if let Some(life) = written.map(|age| age.millis.saturating_add(left)) {
        // Within a tenth of the schema's TTL the deployment has merely chosen its own.
        return (life < result_ttl - result_ttl / 10).then(|| Finding {
            code: CODE,
            severity: Severity::Warning,
            message: format!(
                "the result lives {}, not {}: a retry after that executes again",
                duration::short(life),
                duration::short(result_ttl)
            ),
            advice: ADVICE.to_owned(),
        });
    }
    // Without a time in the record its end of life and a lock's TTL on a result look the same: say so.
    (left <= lock_ttl).then(|| Finding {
        code: CODE,
        severity: Severity::Info,
        message: format!(
            "the result goes in {}, within one lock TTL: at the end of its life, or stored with the lock's TTL; a retry after that executes again",
            duration::short(left)
        ),
        advice: ADVICE.to_owned(),
    })
}
