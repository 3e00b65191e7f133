//! What the user of this run and that of the services may do.

use crate::domain::doctor::facts::{DeniedCommand, DeploymentFacts, NodeFacts, UserRights};
use crate::domain::doctor::judgement::{CheckJudgement, Judgements, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact, missing};
use crate::domain::doctor::sent_commands;

pub(super) fn of_user(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
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
        return Err(without_schema());
    }
    check_asked(facts)?;
    Ok(CheckJudgement::fine())
}

/// The refusal if no schema is in use.
fn without_schema() -> RefusedFact {
    RefusedFact::unknown(
        "ACL DRYRUN",
        "no schema is in use, so the steps and Redis keys of the services are unknown",
        "Name the schemas of your services with --schema.",
    )
}

/// Passes if every command of the steps was asked.
///
/// # Errors
/// Why the rights are not known completely.
fn check_asked(facts: &DeploymentFacts) -> FactResult<()> {
    let commands = sent_commands::not_asked(&facts.schemas);
    if commands.is_empty() {
        return Ok(());
    }
    Err(RefusedFact::unknown(
        "ACL DRYRUN",
        format!("the arguments of {} in the scripts are unknown", commands.join(", ")),
        "Execute the steps with this user on a test server.",
    ))
}

/// `user ops may not send SET (needed by begin of express), UNLINK (needed by purge)`.
fn denials(rights: &UserRights) -> String {
    let mut shown = Vec::new();
    for denied in &rights.denied {
        let of = denied.schema.as_ref().map(|schema| format!(" of {schema}")).unwrap_or_default();
        shown.push(format!("{} (needed by {}{of})", denied.command, denied.needed_by));
    }
    format!("user {} may not send {}", rights.user, shown.join(", "))
}

pub(super) fn of_service(facts: &DeploymentFacts) -> Judgements {
    // Without --service-user, nothing is asked.
    if facts.nodes.iter().all(|node| node.service_user.is_none()) {
        return Ok(Vec::new());
    }
    Ok(of_each_node(facts, |node| of_service_on(node, facts)))
}

fn of_service_on(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let unasked = |command| missing(command, "this user");
    let rights = node.service_user.clone().ok_or_else(|| unasked("ACL DRYRUN"))??;
    if facts.schemas.is_empty() {
        return Err(without_schema());
    }
    let account = rights.account.clone().ok_or_else(|| unasked("ACL GETUSER"))??;
    if account.get("flags").is_some_and(|flags| flags.iter().any(|flag| flag == "off")) {
        let fact = format!("user {} is off, so it cannot log in", rights.user);
        return Ok(CheckJudgement::error(fact));
    }
    let mut certain = rights.clone();
    certain.denied.retain(|denied| !has_other_way(denied, &rights));
    if !certain.denied.is_empty() {
        return Ok(CheckJudgement::error(denials(&certain)).for_schemas(schemas_of(&certain)));
    }
    if !rights.denied.is_empty() {
        return Ok(CheckJudgement::note(denials(&rights)).for_schemas(schemas_of(&rights)));
    }
    check_asked(facts)?;
    let patterns = account.get("keys").map(Vec::as_slice).unwrap_or_default();
    let open = facts.schemas_that(|schema| {
        schema.keys.iter().any(|key| {
            let prefix = String::from_utf8_lossy(key.template.prefix());
            !patterns.iter().any(|pattern| allows_all(pattern, &prefix))
        })
    });
    if !open.is_empty() {
        let why = format!(
            "the key patterns of user {} ({}) may not allow all keys of {}",
            rights.user,
            patterns.join(" "),
            open.join(", ")
        );
        return Err(RefusedFact::unknown("key patterns", why, "Compare them yourself."));
    }
    Ok(CheckJudgement::fine())
}

/// True if the pattern certainly allows every Redis key with this prefix.
fn allows_all(pattern: &str, prefix: &str) -> bool {
    let Some(glob) = pattern.strip_prefix('~') else { return false };
    let Some(literal) = glob.strip_suffix('*') else { return false };
    !literal.contains(['*', '?', '[', '\\']) && prefix.starts_with(literal)
}

/// True if a script that this command calls can also be called with EVAL, or with EVALSHA.
fn has_other_way(denied: &DeniedCommand, rights: &UserRights) -> bool {
    let other = match denied.command.as_str() {
        "EVAL" => "EVALSHA",
        "EVALSHA" => "EVAL",
        _ => return false,
    };
    !rights.denied.iter().any(|candidate| {
        candidate.schema == denied.schema
            && candidate.needed_by == denied.needed_by
            && candidate.command == other
    })
}

fn schemas_of(rights: &UserRights) -> Vec<String> {
    let mut schemas: Vec<_> =
        rights.denied.iter().filter_map(|denied| denied.schema.clone()).collect();
    schemas.sort();
    schemas.dedup();
    schemas
}
