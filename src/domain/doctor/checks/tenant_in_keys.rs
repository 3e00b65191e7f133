//! Keys without a tenant, although others have one.

use crate::domain::doctor::data::SchemaData;
use crate::domain::doctor::data_judgement::{MIN_KEYS, judge_keys};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "tenant-in-keys",
    group: CheckGroup::Data,
    title: "whether some keys lack the part that the others have before a separator",
    reads: "with --data: the keys of the sampled records",
    rule: "A note if at least 80 % of the keys of a schema, of 20 or more, have a part before a \
           separator (: | # / _ . -), such as tenant:order, and others have none. The 80 % are \
           idemctl's own threshold.",
    source: "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/ (security \
             considerations)",
    consequence: "If the part is the tenant, two tenants who send the same key share a record: the \
                  second one gets the response of the first one, and nothing is executed for it.",
    remedy: "Find out which requests have no such part. Let the service put the authenticated tenant \
             before each key.",
    judge,
};

/// How often a part must repeat on average before a separator that identifiers contain as well.
/// Random letters contain it by chance, and then the parts before it differ.
const REPEATED: u64 = 4;

/// The share of keys with a part from which the part is evident, in percent.
const EVIDENT: u64 = 80;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let fine = "no first part, such as a tenant, is in most keys and missing in the others";
    judge_keys(facts, of_schema, fine)
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    for counts in &data.keys.separators {
        let all = counts.with + counts.without;
        let is_evident = counts.with * 100 >= all * EVIDENT && all >= MIN_KEYS;
        // Random letters contain these by chance, but then the parts before them differ.
        let is_certain = matches!(counts.separator, ':' | '|' | '#');
        let is_part = is_certain || REPEATED * counts.different <= counts.with;
        if !is_evident || !is_part || counts.without == 0 {
            continue;
        }
        let verb = if counts.without == 1 { "has" } else { "have" };
        let fact = format!(
            "{}: {} of {all} keys have a part before `{}`, and {} {verb} none (template {})",
            data.schema, counts.with, counts.separator, counts.without, data.template
        );
        return Some(CheckJudgement::note(fact).for_schemas(vec![data.schema.clone()]));
    }
    None
}
