//! All checks, in the order of the page.

use super::{cluster, keys_and_schemas, memory, rights, server_state, ttl, ttl_observed};
use crate::domain::doctor::doctor_check::{CheckGroup, CheckJudge, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::statement::Statement;

/// The check that judges what `explore` finds in the schemas.
const EXPLORING: &str = "schema-violations";

/// Every check: a row of `checks.toml`, and one function.
pub(crate) static CHECKS: &[DoctorCheck] = include!(concat!(env!("OUT_DIR"), "/doctor_checks.rs"));

/// What the chosen checks say of these facts.
pub(crate) fn judge(
    facts: &DeploymentFacts,
    is_chosen: impl Fn(&DoctorCheck) -> bool,
) -> Vec<Statement> {
    let mut statements = Vec::new();
    for check in CHECKS.iter().filter(|check| is_chosen(check)) {
        let judgements = match check.judge {
            CheckJudge::EachNode(judge) => of_each_node(facts, |node| judge(node, facts)),
            CheckJudge::Whole(judge) => {
                judge(facts).unwrap_or_else(|refusal| vec![CheckJudgement::unknown(refusal)])
            }
        };
        statements.extend(judgements.into_iter().map(|judgement| Statement::new(check, judgement)));
    }
    statements
}

/// True if one of the chosen checks judges what `explore` finds in the schemas.
pub(crate) fn explores_schemas(is_chosen: impl Fn(&DoctorCheck) -> bool) -> bool {
    CHECKS.iter().any(|check| check.code == EXPLORING && is_chosen(check))
}
