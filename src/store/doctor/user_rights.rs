//! What a user may do, by ACL DRYRUN, which executes nothing.

use redis::Value;

use super::node_facts::{Arities, answered};
use super::refused::{is_fatal, not_understood, refused};
use crate::domain::doctor::{DeniedCommand, FactResult, RefusedFact, SentCommand, UserRights};
use crate::store::cluster::client::Client;
use crate::store::connection::{Target, reply};
use crate::store::error::StoreError;

const WHOAMI: &str = "ACL WHOAMI";
const DRYRUN: &str = "ACL DRYRUN";

/// The user of the connection.
///
/// # Errors
/// The server answers nothing at all.
pub(super) async fn read_user(
    client: &Client,
    node: &Target,
) -> Result<FactResult<String>, StoreError> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("ACL").arg("WHOAMI");
    let reply = client.ask_node(node, pipeline, 1).await.pop();
    let user = answered(reply, WHOAMI, "+acl|whoami +acl|dryrun")?;
    Ok(user.and_then(|user| reply::word(user).ok_or_else(|| not_understood(WHOAMI))))
}

/// Which of these commands a Redis user may not send.
///
/// # Errors
/// The server answers nothing at all.
pub(super) async fn read_rights(
    client: &Client,
    node: &Target,
    user: &str,
    sent: &[SentCommand],
    arities: &FactResult<Arities>,
) -> Result<FactResult<UserRights>, StoreError> {
    let arities = match arities {
        Ok(arities) => arities,
        Err(refusal) => return Ok(Err(refusal.clone())),
    };
    let mut pipeline = redis::pipe();
    let mut asked = Vec::new();
    for command in sent {
        // A command that the server does not have has a check of its own.
        let Some(arity) = arities.get(&command.command) else { continue };
        pipeline.cmd("ACL").arg("DRYRUN").arg(user).arg(padded(command, *arity));
        asked.push(command);
    }
    if asked.is_empty() {
        return Ok(Ok(UserRights { user: user.to_owned(), denied: Vec::new() }));
    }
    let replies = client.ask_node(node, pipeline, asked.len()).await;
    let mut denied = Vec::new();
    for (command, reply) in asked.into_iter().zip(replies) {
        let why = match reply {
            Ok(Value::Okay) => continue,
            Ok(value) => match reply::word(value) {
                Some(word) if word == "OK" => continue,
                Some(why) => why,
                None => return Ok(Err(not_understood(DRYRUN))),
            },
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => return Ok(Err(not_asked(&error))),
        };
        denied.push(DeniedCommand {
            schema: command.schema.clone(),
            needed_by: command.needed_by.clone(),
            command: command.command.clone(),
            why,
        });
    }
    Ok(Ok(UserRights { user: user.to_owned(), denied }))
}

/// The words of a command, with as many more as it needs: ACL DRYRUN refuses too few.
fn padded(command: &SentCommand, arity: i64) -> Vec<Vec<u8>> {
    let needed = usize::try_from(arity.unsigned_abs()).unwrap_or(0);
    let mut words = command.words.clone();
    while words.len() < needed {
        // Redis checks the rights for the Redis key, and not what the other words mean.
        words.push(words.last().cloned().unwrap_or_default());
    }
    words
}

fn not_asked(error: &StoreError) -> RefusedFact {
    let mut refusal = refused(DRYRUN, "+acl|dryrun", error);
    if refusal.why.contains("Unknown subcommand") || refusal.why.contains("unknown subcommand") {
        "this server has no ACL DRYRUN (Redis 7.0 and Valkey have it)".clone_into(&mut refusal.why);
    }
    // Redis replies "User 'x' not found".
    if refusal.why.contains("User ") && refusal.why.contains("not found") {
        refusal.instead = Some("Name a user that the server has with --service-user.".to_owned());
    }
    refusal
}
