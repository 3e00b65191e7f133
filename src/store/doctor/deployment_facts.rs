//! The facts of a deployment: its servers, its Sentinels, and the rights of its users.

use std::sync::Arc;

use futures_util::future::join_all;

use super::node_facts::{Arities, read_node, unreachable};
use super::sentinel_facts::read_sentinel;
use super::user_rights::{read_rights, read_user};
use crate::domain::doctor::sent_commands::{KEY, of_idemctl, of_schema};
use crate::domain::doctor::{Answer, DeploymentFacts, RecordSample, SentCommand, SentinelFacts};
use crate::domain::schema::Schema;
use crate::store::cluster::client::Client;
use crate::store::connection::Target;
use crate::store::error::StoreError;

/// Reads the facts. All servers are asked at the same time. `clock` returns the local time in
/// milliseconds since the epoch.
///
/// # Errors
/// No server answers.
pub(crate) async fn read_deployment(
    client: &Client,
    schemas: &[Arc<Schema>],
    sample: Answer<RecordSample>,
    service_user: Option<&str>,
    clock: &dyn Fn() -> u64,
) -> Result<DeploymentFacts, StoreError> {
    let mut steps = Vec::new();
    for schema in schemas {
        steps.extend(of_schema(schema));
    }
    let redis_key = match schemas.first() {
        Some(schema) => schema.redis_keys(KEY).swap_remove(0),
        None => KEY.to_vec(),
    };
    let mut sent = of_idemctl(&redis_key);
    sent.extend(steps.iter().cloned());
    let masters = client.masters().await?;
    let commands = names(&sent);
    let reads = masters.iter().map(|node| read_node(client, node, &commands, clock));
    let mut nodes = Vec::new();
    let mut answering: Option<(&Target, Answer<Arities>)> = None;
    let mut failed = None;
    for (node, read) in masters.iter().zip(join_all(reads).await) {
        match read {
            Ok((facts, arities)) => {
                if answering.is_none() {
                    let arities = facts.missing_commands.clone().map(|_| arities);
                    answering = Some((node, arities));
                }
                nodes.push(facts);
            }
            Err(error) => {
                nodes.push(unreachable(node, client.is_cluster(), &error));
                failed.get_or_insert(error);
            }
        }
    }
    let Some((node, arities)) = answering else {
        return Err(match failed {
            Some(error) => client.explain_error(error).await,
            None => client.unexpected("CLUSTER SLOTS"),
        });
    };
    let user = match read_user(client, node).await? {
        Ok(user) => read_rights(client, node, &user, &sent, &arities).await?,
        Err(refusal) => Err(refusal),
    };
    let service_user = match service_user {
        Some(user) => Some(read_rights(client, node, user, &steps, &arities).await?),
        None => None,
    };
    Ok(DeploymentFacts {
        nodes,
        is_cluster: client.is_cluster(),
        sentinels: read_sentinels(client).await,
        schemas: schemas.to_vec(),
        sample,
        user,
        service_user,
    })
}

async fn read_sentinels(client: &Client) -> Vec<SentinelFacts> {
    let Some(named) = &client.target().sentinels else { return Vec::new() };
    let asked = named.targets(client.target());
    join_all(asked.into_iter().map(|sentinel| read_sentinel(sentinel, named))).await
}

/// The names of these commands, each once.
fn names(sent: &[SentCommand]) -> Vec<String> {
    let mut names = Vec::new();
    for sent in sent {
        if !names.contains(&sent.command) {
            names.push(sent.command.clone());
        }
    }
    names
}
