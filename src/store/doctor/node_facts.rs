//! The replies of one server.

use std::collections::BTreeMap;

use redis::Value;

use super::refused::{is_fatal, not_understood, refused};
use crate::domain::doctor::{ClockReading, FactResult, InfoFields, NodeFacts, RefusedFact};
use crate::store::cluster::client::{Client, ClientReply};
use crate::store::connection::{Target, reply};
use crate::store::error::StoreError;

/// The parameters of CONFIG GET that some check reads.
const PARAMETERS: [&str; 8] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
    "stop-writes-on-bgsave-error",
    "min-replicas-to-write",
    "min-replicas-max-lag",
];

/// The number of words of each command that the server has, as COMMAND INFO reports it. Negative
/// for a minimum.
pub(super) type Arities = BTreeMap<String, i64>;

/// Reads the facts of one server except the rights, in two round trips. `commands` are the names
/// whose existence is checked; `clock` returns the local time in milliseconds since the epoch.
///
/// # Errors
/// The server does not answer at all.
pub(super) async fn read_node(
    client: &Client,
    node: &Target,
    commands: &[String],
    clock: &dyn Fn() -> u64,
) -> Result<(NodeFacts, FactResult<Arities>), StoreError> {
    let mut main = redis::pipe();
    main.cmd("INFO");
    for parameter in PARAMETERS {
        // Redis 6.2 takes one parameter at a time.
        main.cmd("CONFIG").arg("GET").arg(parameter);
    }
    main.cmd("COMMAND").arg("INFO").arg(commands);
    let is_cluster = client.is_cluster();
    if is_cluster {
        main.cmd("CLUSTER").arg("INFO");
        main.cmd("CLUSTER").arg("NODES");
    }
    let count = main.cmd_iter().count();
    let mut replies = client.ask_node(node, main, count).await.into_iter();
    let info = answered(replies.next(), "INFO", "+info")?;
    let mut config = BTreeMap::new();
    for parameter in PARAMETERS {
        let command = format!("CONFIG GET {parameter}");
        let value = answered(replies.next(), &command, "+config|get")?;
        config.insert(parameter, value.and_then(|value| parameter_value(value, &command)));
    }
    let table = answered(replies.next(), "COMMAND INFO", "+command|info")?;
    let arities = table.and_then(|table| arities_of(commands, table));
    let mut cluster_info = None;
    let mut cluster_line = None;
    if is_cluster {
        let info = answered(replies.next(), "CLUSTER INFO", "+cluster|info")?;
        cluster_info = Some(info.and_then(|info| fields("CLUSTER INFO", info)));
        let nodes = answered(replies.next(), "CLUSTER NODES", "+cluster|nodes")?;
        cluster_line = Some(nodes.and_then(own_line));
    }
    let facts = NodeFacts {
        name: node.to_string(),
        info: info.and_then(|info| fields("INFO", info)),
        config,
        clock: read_clock(client, node, clock).await?,
        missing_commands: arities.clone().map(|known| {
            commands.iter().filter(|command| !known.contains_key(*command)).cloned().collect()
        }),
        cluster_info,
        cluster_line,
        user: Err(not_understood("ACL WHOAMI")),
        service_user: None,
    };
    Ok((facts, arities))
}

/// The facts of a server that cannot be reached. `names_user` is true if the operator names the
/// services' user.
pub(super) fn unreachable(
    node: &Target,
    is_cluster: bool,
    names_user: bool,
    error: &StoreError,
) -> NodeFacts {
    let refusal = |command: &str| refused(command, "", error);
    let mut config = BTreeMap::new();
    for parameter in PARAMETERS {
        config.insert(parameter, Err(refusal("CONFIG GET")));
    }
    NodeFacts {
        name: node.to_string(),
        info: Err(refusal("INFO")),
        config,
        clock: Err(refusal("TIME")),
        missing_commands: Err(refusal("COMMAND INFO")),
        cluster_info: if is_cluster { Some(Err(refusal("CLUSTER INFO"))) } else { None },
        cluster_line: if is_cluster { Some(Err(refusal("CLUSTER NODES"))) } else { None },
        user: Err(refusal("ACL WHOAMI")),
        service_user: if names_user { Some(Err(refusal("ACL DRYRUN"))) } else { None },
    }
}

/// Reads the server's clock in a round trip of its own, so that the bounds are narrow.
async fn read_clock(
    client: &Client,
    node: &Target,
    clock: &dyn Fn() -> u64,
) -> Result<FactResult<ClockReading>, StoreError> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("TIME");
    let before_ms = clock();
    let reply = client.ask_node(node, pipeline, 1).await.pop();
    let after_ms = clock();
    let time = answered(reply, "TIME", "+time")?;
    Ok(time.and_then(|time| match reply::millis(time) {
        Some(server_ms) => Ok(ClockReading { before_ms, server_ms, after_ms }),
        None => Err(not_understood("TIME")),
    }))
}

/// A reply, or why there is none.
///
/// # Errors
/// The server answers nothing at all.
pub(super) fn answered(
    reply: Option<ClientReply>,
    command: &str,
    rule: &str,
) -> Result<FactResult<Value>, StoreError> {
    match reply {
        Some(Ok(value)) => Ok(Ok(value)),
        Some(Err(error)) if is_fatal(&error) => Err(error),
        Some(Err(error)) => Ok(Err(refused(command, rule, &error))),
        None => Ok(Err(not_understood(command))),
    }
}

fn fields(command: &'static str, reply: Value) -> FactResult<InfoFields> {
    match reply::bytes(reply) {
        Some(text) => Ok(InfoFields::parse(command, &String::from_utf8_lossy(&text))),
        None => Err(not_understood(command)),
    }
}

/// The value in a reply to CONFIG GET with one parameter.
fn parameter_value(reply: Value, command: &str) -> FactResult<String> {
    let words = match reply {
        // A map in protocol version 3.
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        other => reply::array(other).unwrap_or_default(),
    };
    let value = words.into_iter().nth(1).and_then(reply::word);
    value.ok_or_else(|| RefusedFact::unusable(command, "the server does not report this parameter"))
}

/// The number of words of each of these commands that the server has.
fn arities_of(commands: &[String], reply: Value) -> FactResult<Arities> {
    let entries = reply::array(reply).ok_or_else(|| not_understood("COMMAND INFO"))?;
    let mut arities = Arities::new();
    for (command, entry) in commands.iter().zip(entries) {
        let parts = reply::array(entry).unwrap_or_default();
        if let Some(arity) = parts.get(1).and_then(reply::integer) {
            arities.insert(command.clone(), arity);
        }
    }
    Ok(arities)
}

/// The node's own line of CLUSTER NODES, which alone shows the slots that it moves.
fn own_line(reply: Value) -> FactResult<String> {
    let text = reply::bytes(reply).ok_or_else(|| not_understood("CLUSTER NODES"))?;
    let text = String::from_utf8_lossy(&text);
    for line in text.lines() {
        let flags = line.split(' ').nth(2).unwrap_or_default();
        if flags.split(',').any(|flag| flag == "myself") {
            return Ok(line.to_owned());
        }
    }
    Err(not_understood("CLUSTER NODES"))
}
