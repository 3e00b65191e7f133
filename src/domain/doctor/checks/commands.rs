//! Whether the server has the commands that the services and idemctl send.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;
use crate::domain::doctor::sent_commands;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "commands",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "commands that were renamed or disabled",
    consequence: "The step fails. If complete fails, the worker has had its effect and cannot store \
                  its response.",
    remedy: "Remove the rename-command line, and restrict the command with ACL rules.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, |node| judge_node(node, facts))
}

fn judge_node(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let missing = node.missing_commands.clone()?;
    if missing.is_empty() {
        return Ok(CheckJudgement::ok(
            "the server has all commands that the steps and idemctl send",
        ));
    }
    let fact = format!("the server does not have {}", missing.join(", "));
    let mut schemas = Vec::new();
    for schema in &facts.schemas {
        let sent = sent_commands::of_schema(schema);
        if sent.iter().any(|sent| missing.contains(&sent.command)) {
            schemas.push(schema.name.clone());
        }
    }
    if schemas.is_empty() && missing.iter().any(|command| command == "EVALSHA") {
        return Ok(CheckJudgement::note(fact).with_consequence(
            "A service that calls its scripts with EVALSHA fails. One that sends EVAL does not.",
        ));
    }
    if schemas.is_empty() {
        return Ok(CheckJudgement::note(fact).with_consequence(
            "Some commands of idemctl do not work here. No step in use needs it.",
        ));
    }
    Ok(CheckJudgement::error(fact).for_schemas(schemas))
}
