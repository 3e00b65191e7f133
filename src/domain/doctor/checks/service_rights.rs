//! Whether the services' user may send what the steps send.

use super::user_rights::denials;
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;
use crate::domain::doctor::refusal::RefusedFact;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "service-rights",
    group: CheckGroup::Server,
    title: "whether the services' user may send what the steps send",
    reads: "ACL DRYRUN for the user of --service-user",
    rule: "An error for each command of a step that the user may not send.",
    source: "https://redis.io/docs/latest/commands/acl-dryrun/",
    consequence: "The step fails. If complete fails, the worker has had its effect and cannot store \
                  its response: after the lock TTL, a retry executes again.",
    remedy: "Add the command and the key pattern to the ACL rules of the user.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    match &facts.service_user {
        // Without --service-user, nothing is asked.
        None => Vec::new(),
        Some(Err(refusal)) => vec![CheckJudgement::unknown(refusal.clone())],
        Some(Ok(rights)) if facts.schemas.is_empty() && rights.denied.is_empty() => {
            vec![CheckJudgement::unknown(RefusedFact {
                command: "ACL DRYRUN".to_owned(),
                rule: None,
                why: "no schema is in use, so no step of a service is known".to_owned(),
                instead: Some("Name the schemas of your services with --schema.".to_owned()),
            })]
        }
        Some(Ok(rights)) if rights.denied.is_empty() => {
            vec![CheckJudgement::ok(format!(
                "user {} may send every command of the steps",
                rights.user
            ))]
        }
        Some(Ok(rights)) => {
            let mut schemas = Vec::new();
            for denied in &rights.denied {
                if let Some(schema) = &denied.schema
                    && !schemas.contains(schema)
                {
                    schemas.push(schema.clone());
                }
            }
            vec![CheckJudgement::error(denials(rights)).for_schemas(schemas)]
        }
    }
}
