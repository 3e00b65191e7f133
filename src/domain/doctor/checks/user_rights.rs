//! What the Redis user of this run may do.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeniedCommand, DeploymentFacts, NodeFacts, UserRights};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::doctor::sent_commands;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "user-rights",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "what the user of this run may do",
    consequence: "The commands of idemctl that need it do not work with this user.",
    remedy: "Use the ready-made users of docs/connecting.md, which have the least rights.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, |node| judge_node(node, facts))
}

fn judge_node(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let mut rights = node.user.clone()?;
    let count = rights.denied.len();
    if facts.schemas.is_empty() {
        // Without a schema no Redis key is known, so only refused commands are certain.
        rights.denied.retain(|denied| !denied.is_about_key());
    }
    if !rights.denied.is_empty() {
        return Ok(CheckJudgement::note(denials(&rights)));
    }
    if rights.denied.len() < count {
        return Err(without_schema("which Redis keys the services use is unknown"));
    }
    if let Some(refusal) = not_asked(facts) {
        return Err(refusal);
    }
    Ok(CheckJudgement::ok(format!(
        "user {} may send every command that the steps and idemctl need, on a test key",
        rights.user
    )))
}

/// The refusal if no schema is in use. `effect` is the fact that is then unknown.
pub(super) fn without_schema(effect: &str) -> RefusedFact {
    RefusedFact::unknown(
        "ACL DRYRUN",
        format!("no schema is in use, so {effect}"),
        "Name the schemas of your services with --schema.",
    )
}

/// Why the rights are not known completely; `None` if every command of the steps was asked.
pub(super) fn not_asked(facts: &DeploymentFacts) -> Option<RefusedFact> {
    let commands = sent_commands::not_asked(&facts.schemas);
    if commands.is_empty() {
        return None;
    }
    Some(RefusedFact::unknown(
        "ACL DRYRUN",
        format!("the arguments of {} in the scripts are unknown", commands.join(", ")),
        "Execute the steps with this user on a test server.",
    ))
}

/// `user ops may not send SET (begin of express), UNLINK (purge)`.
pub(super) fn denials(rights: &UserRights) -> String {
    // Several steps may need the same command, which is named once.
    let mut commands: Vec<(&str, Vec<String>)> = Vec::new();
    for denied in &rights.denied {
        let needed_by = needed_by(denied);
        match commands.iter_mut().find(|(command, _)| *command == denied.command) {
            Some((_, all)) => {
                if !all.contains(&needed_by) {
                    all.push(needed_by);
                }
            }
            None => commands.push((&denied.command, vec![needed_by])),
        }
    }
    let mut shown = Vec::new();
    for (command, needed_by) in commands {
        shown.push(format!("{command} (needed by {})", needed_by.join(", ")));
    }
    format!("user {} may not send {}", rights.user, shown.join("; "))
}

fn needed_by(denied: &DeniedCommand) -> String {
    match &denied.schema {
        Some(schema) => format!("{} of {schema}", denied.needed_by),
        None => denied.needed_by.clone(),
    }
}
