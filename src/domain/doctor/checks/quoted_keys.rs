//! Keys that clients send with and without quotation marks.

use super::guessable_keys::of_keys;
use crate::domain::doctor::client_keys::ClientKeys;
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "quoted-keys",
    group: CheckGroup::Keys,
    needs: SampleNeed::Records,
    title: "whether some keys have quotation marks and others have none",
    consequence: "The header's value is a quoted string, and some clients and proxies leave out the \
                  quotation marks or change them. A retry in the other form is another key, and \
                  executes again.",
    remedy: "Let the service parse the header as a structured field, so that both forms are one key.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_keys(facts, of_schema, "is quoted while others are not")
}

fn of_schema(schema: &str, keys: &ClientKeys) -> Option<CheckJudgement> {
    let (quoted, all, both) = (keys.quoted(), keys.count(), keys.in_both_forms());
    if quoted == 0 || quoted == all {
        return None;
    }
    let fact = format!("sampled keys of {schema} with quotation marks: {quoted} of {all}");
    if both > 0 {
        let fact = format!("{fact}, and without them as well: {both}");
        return Some(CheckJudgement::warning(fact));
    }
    Some(CheckJudgement::note(fact))
}
