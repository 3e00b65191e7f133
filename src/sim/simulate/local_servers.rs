//! Temporary local Redis servers, for scenarios that must not run on a shared server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::job::{Aborted, Played};
use crate::domain::hash_slot;
use crate::domain::step::StepReply;
use crate::store::{Connection, Sandbox, SandboxError, Setup, Target, Writable, free_port, pack};

/// How often starting a server is tried, because another process may take its port before it
/// starts.
const MAX_STARTS: usize = 3;

/// The settings for starting temporary local servers.
#[derive(Debug, Clone)]
pub struct LocalServers {
    /// The folders in which idemctl searches for a server program.
    pub path: Vec<PathBuf>,
    /// The folder in which each server gets its own folder.
    pub temp_dir: PathBuf,
    /// The target whose options are used for connections to local servers.
    pub like: Target,
}

/// A temporary local Redis, which ends when this value is dropped.
pub(super) struct LocalServer {
    pub(super) target: Writable,
    pub(super) port: Option<u16>,
    _sandbox: Sandbox,
}

impl LocalServers {
    /// Starts a server with these lines of configuration.
    pub(super) async fn start(&self, config: &[&str]) -> Played<LocalServer> {
        let setup = Setup { config: owned(config), ..Setup::default() };
        self.start_with(setup).await.map_err(no_server)
    }

    /// Starts a server with a port, so that other servers can reach it, and a password, so that no
    /// other process can use it.
    pub(super) async fn start_with_port(
        &self,
        config: &[&str],
        password: &str,
    ) -> Played<LocalServer> {
        let mut starts = 0;
        loop {
            starts += 1;
            let port = free_port()
                .map_err(|why| Aborted::NotApplicable(format!("no port is free: {why}")))?;
            let setup = Setup {
                port: Some(port),
                password: Some(password.to_owned()),
                config: owned(config),
            };
            match self.start_with(setup).await {
                Ok(server) => return Ok(server),
                // Another process may have taken the port in the meantime: try another one.
                Err(SandboxError::NotServing { .. }) if starts < MAX_STARTS => {}
                Err(error) => return Err(no_server(error)),
            }
        }
    }

    async fn start_with(&self, setup: Setup) -> Result<LocalServer, SandboxError> {
        // The server ends when its sandbox is dropped. The sandbox therefore belongs to the value
        // that scenarios hold.
        let sandbox = Sandbox::start_as(&self.path, &self.temp_dir, &setup).await?;
        Ok(LocalServer {
            target: sandbox.first_database(&self.like),
            port: setup.port,
            _sandbox: sandbox,
        })
    }
}

fn owned(config: &[&str]) -> Vec<String> {
    config.iter().map(|line| (*line).to_owned()).collect()
}

/// A new random password.
pub(super) fn password() -> String {
    Uuid::new_v4().simple().to_string()
}

fn no_server(error: SandboxError) -> Aborted {
    Aborted::NotApplicable(format!("it needs a temporary local Redis: {error}"))
}

/// How long a cluster's node may take until it serves. It usually takes about two seconds.
const CLUSTER_PATIENCE: Duration = Duration::from_secs(10);

/// A node of a cluster that owns only the slots of the current call, as if every slot had its own
/// node.
///
/// A real cluster distributes its slots over a few nodes. A script with keys in several slots runs
/// there if one node happens to own all of them. Here such a script is always refused.
pub(super) struct Cluster {
    server: LocalServer,
    connection: Connection,
    owned_slots: Vec<u16>,
    /// The Redis keys that the last call named.
    named: Vec<Vec<u8>>,
}

impl Cluster {
    /// Starts the node, and waits until it serves.
    pub(super) async fn start(servers: &LocalServers) -> Played<Self> {
        let config = [
            "cluster-enabled yes",
            // Most slots have no node, which must not stop this one.
            "cluster-require-full-coverage no",
            "cluster-node-timeout 2000",
        ];
        let server = servers.start_with_port(&config, &password()).await?;
        let connection = Connection::connect(&server.target).await?;
        let mut cluster = Self { server, connection, owned_slots: Vec::new(), named: Vec::new() };
        // A node without any slot reports that the cluster is down.
        cluster.own(vec![0]).await?;
        Ok(cluster)
    }

    pub(super) fn target(&self) -> &Writable {
        &self.server.target
    }

    /// Makes this the node for a call that names some of a record's Redis keys. The record's other
    /// Redis keys are on another node, unless they share a slot with a named key.
    pub(super) async fn serve_call(&mut self, named: Vec<Vec<u8>>, record: &[Vec<u8>]) -> Played {
        let mut slots: Vec<u16> = named.iter().map(|redis_key| hash_slot::of(redis_key)).collect();
        if slots.is_empty() {
            // A node without any slot is down, so it gets one that has none of the keys.
            let of_record: Vec<_> =
                record.iter().map(|redis_key| hash_slot::of(redis_key)).collect();
            slots.extend((0..).find(|slot| !of_record.contains(slot)));
        }
        self.named = named;
        self.own(slots).await
    }

    /// Makes this the node for this Redis key.
    pub(super) async fn serve_key(&mut self, redis_key: &[u8]) -> Played {
        self.own(vec![hash_slot::of(redis_key)]).await
    }

    /// The slots of the Redis keys that the last call named, and of the record's others, in words;
    /// `None` if they are all in one slot.
    pub(super) fn slots(&self, record: &[Vec<u8>]) -> Option<String> {
        let mut redis_keys = self.named.clone();
        redis_keys.extend(record.iter().filter(|key| !self.named.contains(key)).cloned());
        let first = hash_slot::of(redis_keys.first()?);
        if redis_keys.iter().all(|redis_key| hash_slot::of(redis_key) == first) {
            return None;
        }
        let mut words = Vec::new();
        for redis_key in redis_keys {
            let unnamed = if self.named.contains(&redis_key) { "" } else { ", not in KEYS" };
            words.push(hash_slot::words([&redis_key[..]]) + unnamed);
        }
        Some(words.join(", "))
    }

    async fn own(&mut self, mut slots: Vec<u16>) -> Played {
        // Named keys may share a slot, and ADDSLOTS refuses a slot that is named twice.
        slots.sort_unstable();
        slots.dedup();
        let before = std::mem::replace(&mut self.owned_slots, slots.clone());
        let added = slots.iter().filter(|slot| !before.contains(slot));
        let removed = before.iter().filter(|slot| !slots.contains(slot));
        // Slots are added first, because the node would be down without any slot.
        let changes = [("ADDSLOTS", strings(added)), ("DELSLOTS", strings(removed))];
        for (command, slots) in changes {
            if slots.is_empty() {
                continue;
            }
            let mut words = vec!["CLUSTER", command];
            words.extend(slots.iter().map(String::as_str));
            if let StepReply::Error { code, message } = self.connection.ask(&pack(words)).await? {
                return Err(Aborted::NotApplicable(format!(
                    "a private node refused CLUSTER {command}: {code} {message}"
                )));
            }
        }
        // A node that is down for a moment refuses every call, which is not part of the story.
        let since = Instant::now();
        while since.elapsed() < CLUSTER_PATIENCE {
            let info = self.connection.ask(&pack(["CLUSTER", "INFO"])).await?;
            let StepReply::Text(info) = info else { break };
            if String::from_utf8_lossy(&info).contains("cluster_state:ok") {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Aborted::NotApplicable(
            "a private node with cluster-enabled did not come up".to_owned(),
        ))
    }
}

fn strings<'a>(slots: impl Iterator<Item = &'a u16>) -> Vec<String> {
    slots.map(u16::to_string).collect()
}
