//! The facts of a deployment: its servers, its Sentinels, and the rights of its users.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;

use super::node_facts::{read_node, unreachable};
use super::sentinel_facts::read_sentinel;
use super::user_rights::{read_account, read_rights, read_user};
use crate::domain::doctor::sent_commands::{KEY, of_idemctl, of_schema, of_service};
use crate::domain::doctor::{
    DeploymentFacts, FactResult, LockCount, NodeFacts, RecordSample, SentCommand, SentinelFacts,
};
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
    sample: FactResult<RecordSample>,
    service_user: Option<&str>,
    clock: &dyn Fn() -> u64,
) -> Result<DeploymentFacts, StoreError> {
    let mut steps = Vec::new();
    let mut steps_of_service = Vec::new();
    for schema in schemas {
        steps.extend(of_schema(schema));
        steps_of_service.extend(of_service(schema));
    }
    let redis_key = match schemas.first() {
        Some(schema) => schema.redis_keys(KEY).swap_remove(0),
        None => KEY.to_vec(),
    };
    let mut sent = of_idemctl(&redis_key);
    sent.extend(steps);
    let asked = AskedRights { sent: &sent, steps: &steps_of_service, service_user };
    let masters = client.masters().await?;
    let reads = masters.iter().map(|node| read_all(client, node, &asked, clock));
    let mut nodes = Vec::new();
    let mut does_any_answer = false;
    let mut failed = None;
    for (node, read) in masters.iter().zip(join_all(reads).await) {
        match read {
            Ok(facts) => {
                does_any_answer = true;
                nodes.push(facts);
            }
            Err(error) => {
                let names_user = service_user.is_some();
                nodes.push(unreachable(node, client.is_cluster(), names_user, &error));
                failed.get_or_insert(error);
            }
        }
    }
    if !does_any_answer {
        return Err(match failed {
            Some(error) => client.explain_error(error).await,
            None => client.unexpected("CLUSTER SLOTS"),
        });
    }
    Ok(DeploymentFacts {
        nodes,
        is_cluster: client.is_cluster(),
        sentinels: read_sentinels(client).await,
        schemas: schemas.to_vec(),
        // The caller explores, because that needs another server.
        explorations: Vec::new(),
        sample,
        // The caller scans, because a scan shows its progress.
        locks: Ok(LockCount::default()),
        // The caller knows the settings and observes.
        retry_windows: BTreeMap::new(),
        observed: None,
        longest_run_ms: None,
    })
}

/// The commands whose rights are asked.
struct AskedRights<'a> {
    /// The commands of idemctl, and those of the steps as idemctl sends them.
    sent: &'a [SentCommand],
    /// The commands of the steps as services send them.
    steps: &'a [SentCommand],
    service_user: Option<&'a str>,
}

/// Reads the facts of one server, and the rights there: each node of a cluster has ACL rules of its
/// own.
///
/// # Errors
/// The server does not answer at all.
async fn read_all(
    client: &Client,
    node: &Target,
    asked: &AskedRights<'_>,
    clock: &dyn Fn() -> u64,
) -> Result<NodeFacts, StoreError> {
    let sent = asked.sent.iter().chain(asked.steps);
    let commands: BTreeSet<_> = sent.map(|sent| sent.command.clone()).collect();
    let commands: Vec<_> = commands.into_iter().collect();
    let (mut facts, arities) = read_node(client, node, &commands, clock).await?;
    facts.user = match read_user(client, node).await? {
        Ok(user) => read_rights(client, node, &user, asked.sent, &arities).await?,
        Err(refusal) => Err(refusal),
    };
    if let Some(user) = asked.service_user {
        let mut rights = read_rights(client, node, user, asked.steps, &arities).await?;
        if let Ok(rights) = &mut rights {
            rights.account = Some(read_account(client, node, user).await?);
        }
        facts.service_user = Some(rights);
    }
    Ok(facts)
}

async fn read_sentinels(client: &Client) -> Vec<SentinelFacts> {
    let Some(named) = &client.target().sentinels else { return Vec::new() };
    let asked = named.targets(client.target());
    join_all(asked.into_iter().map(|sentinel| read_sentinel(sentinel, named))).await
}
