//! Keys that two clients can choose by accident.

use crate::domain::doctor::data::{SchemaData, WeakKey};
use crate::domain::doctor::data_judgement::{MIN_KEYS, judge_keys};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "guessable-keys",
    group: CheckGroup::Data,
    title: "whether keys are counters, times, constants, or too short",
    reads: "with --data: the keys of the sampled records",
    rule: "A warning if a key is a constant such as `undefined`, or if at least 20 % of the keys of a \
           schema, of 20 or more, are bare numbers of up to 12 digits, bare times or dates, shorter \
           than 40 bits, or repeat what others have after the first colon; a note for fewer of them, \
           and for words with numbers of up to 12 digits or times, such as `acme:order-7`. The \
           thresholds are idemctl's own. UUIDs, ULIDs, KSUIDs and Snowflake identifiers are fine.",
    source: "https://docs.stripe.com/api/idempotent_requests",
    consequence: "Two clients choose the same key sooner or later. The second one gets the response \
                  of the first one, and its own operation is not executed.",
    remedy: "Let clients send a random key with 128 bits for each operation, such as a UUID of \
             version 4, and repeat it in each retry. The identifier of a message or an order is a \
             good key if nobody else can have the same.",
    judge,
};

/// From this many times on, chance is no explanation if most numbers of their length are times.
const MIN_TIMES: u64 = 3;

/// The share of weak keys that is a warning, in percent.
const MANY: u64 = 20;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    judge_keys(facts, of_schema, "found no pattern of counters, times, constants or short keys")
}

fn of_schema(data: &SchemaData) -> Option<CheckJudgement> {
    let all = data.keys.keys;
    let mut is_warning = false;
    let mut parts = Vec::new();
    for (weak, count) in &data.keys.weak {
        let is_one = *count == 1;
        let are_many = count * 100 >= all * MANY && all >= MIN_KEYS;
        let is_said = match weak {
            WeakKey::Placeholder => true,
            // A share of other numbers of this length looks like times by chance.
            WeakKey::Timestamp => {
                are_many || *count >= MIN_TIMES && 2 * count > data.keys.as_long_as_times
            }
            WeakKey::Repeated | WeakKey::Numbered => are_many,
            WeakKey::Counter | WeakKey::Short => all >= MIN_KEYS,
        };
        if !is_said {
            continue;
        }
        is_warning |= match weak {
            WeakKey::Placeholder => true,
            // The number may be that of the operation.
            WeakKey::Numbered => false,
            _ => are_many,
        };
        let (one, several) = match weak {
            WeakKey::Placeholder => (
                "is a constant, such as undefined or null",
                "are constants, such as undefined or null",
            ),
            WeakKey::Counter => {
                ("is a bare number of up to 12 digits", "are bare numbers of up to 12 digits")
            }
            WeakKey::Timestamp => ("is a bare time or date", "are bare times or dates"),
            WeakKey::Repeated => (
                "has the same part after its first colon as others",
                "have the same part after their first colon as others",
            ),
            WeakKey::Numbered => (
                "consists of words with numbers of up to 12 digits or times",
                "consist of words with numbers of up to 12 digits or times",
            ),
            WeakKey::Short => ("has less than 40 bits", "have less than 40 bits"),
        };
        let what = if is_one { one } else { several };
        parts.push(format!("{count} {what}"));
    }
    if parts.is_empty() {
        return None;
    }
    let fact = format!("{}: of {all} keys, {}", data.schema, parts.join(", and "));
    let judgement =
        if is_warning { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Some(judgement.for_schemas(vec![data.schema.clone()]))
}
