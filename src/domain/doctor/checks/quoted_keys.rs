//! Keys that clients send with and without quotation marks.

use crate::domain::doctor::data::SchemaData;
use crate::domain::doctor::data_judgement::judge_keys;
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "quoted-keys",
    group: CheckGroup::Data,
    title: "whether one key is stored in two forms, such as with and without quotation marks",
    reads: "with --data: the keys of the sampled records, and whether each exists in the other form",
    rule: "A warning if a key exists in both forms; a note if some keys of a schema are quoted and \
           others are not. Quotation marks are \", ', %22 and an escaped \"; a UUID in upper and in \
           lower case counts as well.",
    source: "https://www.rfc-editor.org/rfc/rfc8941 (section 3.3.3); \
             https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/",
    consequence: "The header's value is a quoted string, and some clients and proxies leave out the \
                  quotation marks or change them. A retry in the other form is another key, and executes again.",
    remedy: "Let the service parse the header as a structured field, so that both forms are one key.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    judge_keys(facts, of_schema, "no key is in two forms, such as with and without quotation marks")
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    let counts = &data.keys;
    let schemas = vec![data.schema.clone()];
    let (quoted, keys) = (counts.quoted, counts.keys);
    if counts.in_both_forms > 0 {
        let both = counts.in_both_forms;
        let verb = if both == 1 { "exists" } else { "exist" };
        let fact = format!(
            "{}: {both} of {keys} keys {verb} in two forms, with and without quotation marks or in \
             upper and lower case",
            data.schema
        );
        return Some(CheckJudgement::warning(fact).for_schemas(schemas));
    }
    if quoted == 0 || quoted == keys {
        return None;
    }
    let verb = if quoted == 1 { "has" } else { "have" };
    let fact = format!("{}: {quoted} of {keys} keys {verb} quotation marks", data.schema);
    Some(CheckJudgement::note(fact).for_schemas(schemas))
}
