//! Whether the services' user may send what the steps send.

use super::user_rights::{denials, not_asked, without_schema};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeniedCommand, DeploymentFacts, NodeFacts, UserRights};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact, missing};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "service-rights",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "whether the services' user may send what the steps send",
    consequence: "The step fails. If complete fails, the worker has had its effect and cannot store \
                  its response: after the lock TTL, a retry executes again.",
    remedy: "Add the command and the key pattern to the ACL rules of the user.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    // Without --service-user, nothing is asked.
    if facts.nodes.iter().all(|node| node.service_user.is_none()) {
        return Vec::new();
    }
    of_each_node(facts, |node| judge_node(node, facts))
}

fn judge_node(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let rights = match &node.service_user {
        Some(rights) => rights.clone()?,
        None => return Err(missing("ACL DRYRUN", "this user")),
    };
    if facts.schemas.is_empty() {
        return Err(without_schema("no step of a service is known"));
    }
    let account = match &rights.account {
        Some(account) => account.clone()?,
        None => return Err(missing("ACL GETUSER", "this user")),
    };
    if account.get("flags").is_some_and(|flags| flags.iter().any(|flag| flag == "off")) {
        let fact = format!("user {} is off, so it cannot log in", rights.user);
        return Ok(CheckJudgement::error(fact).with_remedy("Switch it on."));
    }
    let mut certain = rights.clone();
    certain.denied.retain(|denied| !has_other_way(denied, &rights));
    if !certain.denied.is_empty() {
        let schemas = schemas_of(&certain);
        return Ok(CheckJudgement::error(denials(&certain)).for_schemas(schemas));
    }
    if !rights.denied.is_empty() {
        return Ok(CheckJudgement::note(denials(&rights))
            .with_consequence(
                "Most clients call a script with EVALSHA, and with EVAL if the server does not \
                 know it, as after a restart or a failover. Without one of these rights they fail. \
                 A client that only sends the other one works.",
            )
            .with_remedy("Allow both EVAL and EVALSHA.")
            .for_schemas(schemas_of(&rights)));
    }
    if let Some(refusal) = not_asked(facts) {
        return Err(refusal);
    }
    let patterns = account.get("keys").map(Vec::as_slice).unwrap_or_default();
    for schema in &facts.schemas {
        for key in &schema.keys {
            let prefix = String::from_utf8_lossy(key.template.prefix());
            if !patterns.iter().any(|pattern| allows_all(pattern, &prefix)) {
                let why = format!(
                    "the key patterns of user {} ({}) may not allow all keys of {}",
                    rights.user,
                    patterns.join(" "),
                    schema.name
                );
                return Err(RefusedFact::unknown("key patterns", why, "Compare them yourself."));
            }
        }
    }
    let fact = format!("user {} may send every command of the steps", rights.user);
    Ok(CheckJudgement::ok(fact))
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
    for candidate in &rights.denied {
        let is_same_step =
            candidate.schema == denied.schema && candidate.needed_by == denied.needed_by;
        if is_same_step && candidate.command == other {
            return false;
        }
    }
    true
}

fn schemas_of(rights: &UserRights) -> Vec<String> {
    let mut schemas = Vec::new();
    for denied in &rights.denied {
        if let Some(schema) = &denied.schema
            && !schemas.contains(schema)
        {
            schemas.push(schema.clone());
        }
    }
    schemas
}
