//! What the user of this run may do.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeniedCommand, DeploymentFacts, UserRights};
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "user-rights",
    group: CheckGroup::Server,
    title: "what the user of this run may do",
    reads: "ACL WHOAMI, ACL DRYRUN",
    rule: "A note for each command that the user may not send. Redis before 7.0 has no ACL DRYRUN, \
           so the rights are unknown there.",
    source: "docs/connecting.md (ACL users)",
    consequence: "The commands of idemctl that need it do not work with this user.",
    remedy: "Use the ready-made users of docs/connecting.md, which have the least rights.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    match &facts.user {
        Err(refusal) => vec![CheckJudgement::unknown(refusal.clone())],
        Ok(rights) if rights.denied.is_empty() => {
            vec![CheckJudgement::ok(format!("user {} may send every command needed", rights.user))]
        }
        Ok(rights) => vec![CheckJudgement::note(denials(rights))],
    }
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
