//! What a user may do, by ACL DRYRUN, which executes nothing.

use std::collections::BTreeMap;

use redis::Value;

use super::node_facts::{Arities, answered};
use super::refused::{is_fatal, not_understood, refused};
use crate::domain::doctor::{DeniedCommand, FactResult, SentCommand, UserRights};
use crate::store::cluster::client::Client;
use crate::store::connection::{Target, reply};
use crate::store::error::StoreError;

const WHOAMI: &str = "ACL WHOAMI";
const DRYRUN: &str = "ACL DRYRUN";
const GETUSER: &str = "ACL GETUSER";

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

/// Whether a user is on, and which Redis keys it may use, as fields with words. ACL DRYRUN shows
/// neither.
///
/// # Errors
/// The server answers nothing at all.
pub(super) async fn read_account(
    client: &Client,
    node: &Target,
    user: &str,
) -> Result<FactResult<BTreeMap<String, Vec<String>>>, StoreError> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("ACL").arg("GETUSER").arg(user);
    let reply = client.ask_node(node, pipeline, 1).await.pop();
    let reply = match answered(reply, GETUSER, "+acl|getuser")? {
        Ok(reply) => reply,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(fields) = reply::array(reply) else { return Ok(Err(not_understood(GETUSER))) };
    let mut account = BTreeMap::new();
    let mut fields = fields.into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        let Some(name) = reply::word(name) else { continue };
        // The others include hashes of passwords.
        if name == "flags" {
            let words = reply::array(value).unwrap_or_default();
            account.insert(name, words.into_iter().filter_map(reply::word).collect());
        } else if name == "keys" {
            let patterns = reply::word(value).unwrap_or_default();
            account.insert(name, patterns.split(' ').map(str::to_owned).collect());
        }
    }
    Ok(Ok(account))
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
        return Ok(Ok(UserRights { user: user.to_owned(), denied: Vec::new(), account: None }));
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
            Err(error) => return Ok(Err(refused(DRYRUN, "+acl|dryrun", &error))),
        };
        denied.push(DeniedCommand {
            schema: command.schema.clone(),
            needed_by: command.needed_by.clone(),
            command: command.command.clone(),
            why,
        });
    }
    Ok(Ok(UserRights { user: user.to_owned(), denied, account: None }))
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
