//! Temporary local Redis servers, for scenarios that must not run on a shared server.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use uuid::Uuid;

use super::story::{Aborted, ScenarioResult};
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
    pub(super) async fn start(&self, config: &[&str]) -> ScenarioResult<LocalServer> {
        let setup = Setup { config: owned(config), ..Setup::default() };
        self.start_with(setup).await.map_err(no_server)
    }

    /// Starts a server with a port, so that other servers can reach it, and a password, so that no
    /// other process can use it.
    pub(super) async fn start_with_port(
        &self,
        config: &[&str],
        password: &str,
    ) -> ScenarioResult<LocalServer> {
        let mut last_error = None;
        for _ in 0..MAX_STARTS {
            let port = match free_port() {
                Ok(port) => port,
                Err(why) => {
                    return Err(Aborted::NotApplicable(format!("no port is free: {why}")));
                }
            };
            let setup = Setup {
                port: Some(port),
                password: Some(password.to_owned()),
                config: owned(config),
            };
            match self.start_with(setup).await {
                Ok(server) => return Ok(server),
                // Another process may have taken the port in the meantime: try another one.
                Err(error @ SandboxError::NotServing { .. }) => last_error = Some(error),
                Err(error) => return Err(no_server(error)),
            }
        }
        Err(match last_error {
            Some(error) => no_server(error),
            None => Aborted::NotApplicable("no port is free".to_owned()),
        })
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
    connection: Mutex<Connection>,
    owned_slots: RefCell<Vec<i64>>,
    last_keys: RefCell<Vec<KeyInSlot>>,
}

/// A slot that has none of these Redis keys, for the node of a call that names none: a node without
/// any slot is down.
fn slot_without(keys: &[KeyInSlot]) -> i64 {
    let mut slot = 0;
    while keys.iter().any(|key| key.slot == slot) {
        slot += 1;
    }
    slot
}

/// A Redis key of the last call, or of its record.
struct KeyInSlot {
    redis_key: String,
    slot: i64,
    /// True if the call names the key.
    is_named: bool,
}

impl Cluster {
    /// Starts the node, and waits until it serves.
    pub(super) async fn start(servers: &LocalServers) -> ScenarioResult<Self> {
        let config = [
            "cluster-enabled yes",
            // Most slots have no node, which must not stop this one.
            "cluster-require-full-coverage no",
            "cluster-node-timeout 2000",
        ];
        let server = servers.start_with_port(&config, &password()).await?;
        let connection = Mutex::new(Connection::connect(&server.target).await?);
        let cluster = Self {
            server,
            connection,
            owned_slots: RefCell::default(),
            last_keys: RefCell::default(),
        };
        // A node without any slot reports that the cluster is down.
        cluster.own(&[0]).await?;
        Ok(cluster)
    }

    /// Waits until the node serves its slots.
    async fn until_it_serves(&self) -> ScenarioResult {
        let since = Instant::now();
        while since.elapsed() < CLUSTER_PATIENCE {
            let StepReply::Text(info) = self.send(&["CLUSTER", "INFO"]).await? else { break };
            if String::from_utf8_lossy(&info).contains("cluster_state:ok") {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Aborted::NotApplicable(
            "a private node with cluster-enabled did not come up".to_owned(),
        ))
    }

    pub(super) fn target(&self) -> &Writable {
        &self.server.target
    }

    /// Makes this the node for a call that names some of a record's Redis keys. The record's other
    /// Redis keys are on another node, unless they share a slot with a named key.
    pub(super) async fn serve(&self, named: &[Vec<u8>], record: &[Vec<u8>]) -> ScenarioResult {
        let mut keys = Vec::new();
        for redis_key in named {
            keys.push(self.key_in_slot(redis_key, true).await?);
        }
        for redis_key in record {
            if !named.contains(redis_key) {
                keys.push(self.key_in_slot(redis_key, false).await?);
            }
        }
        let mut slots = Vec::new();
        for key in &keys {
            if key.is_named {
                slots.push(key.slot);
            }
        }
        if slots.is_empty() {
            slots.push(slot_without(&keys));
        }
        *self.last_keys.borrow_mut() = keys;
        self.own(&slots).await
    }

    async fn key_in_slot(&self, redis_key: &[u8], is_named: bool) -> ScenarioResult<KeyInSlot> {
        let request = pack([b"CLUSTER", b"KEYSLOT", redis_key]);
        let slot = match self.connection.lock().await.ask(&request).await? {
            StepReply::Integer(slot) => slot,
            _ => 0,
        };
        Ok(KeyInSlot { redis_key: String::from_utf8_lossy(redis_key).into_owned(), slot, is_named })
    }

    /// The slots of the last call's Redis keys in words; `None` if they are all in one slot.
    pub(super) fn slots(&self) -> Option<String> {
        let keys = self.last_keys.borrow();
        let first = keys.first()?;
        if keys.iter().all(|key| key.slot == first.slot) {
            return None;
        }
        let mut words = Vec::new();
        for key in keys.iter() {
            let unnamed = if key.is_named { "" } else { ", not in KEYS" };
            words.push(format!("{} is in slot {}{unnamed}", key.redis_key, key.slot));
        }
        Some(words.join(", "))
    }

    async fn own(&self, slots: &[i64]) -> ScenarioResult {
        let before = self.owned_slots.replace(slots.to_vec());
        let mut added = Vec::new();
        for slot in slots {
            if !before.contains(slot) {
                added.push(slot.to_string());
            }
        }
        // Named keys may share a slot, and ADDSLOTS refuses a slot that is named twice.
        added.sort_unstable();
        added.dedup();
        let mut removed = Vec::new();
        for slot in &before {
            if !slots.contains(slot) {
                removed.push(slot.to_string());
            }
        }
        if added.is_empty() && removed.is_empty() {
            return Ok(());
        }
        // Slots are added first, because the node would be down without any slot.
        for (command, slots) in [("ADDSLOTS", added), ("DELSLOTS", removed)] {
            if !slots.is_empty() {
                let mut words = vec!["CLUSTER", command];
                words.extend(slots.iter().map(String::as_str));
                if let StepReply::Error { code, message } = self.send(&words).await? {
                    return Err(Aborted::NotApplicable(format!(
                        "a private node refused CLUSTER {command}: {code} {message}"
                    )));
                }
            }
        }
        // A node that is down for a moment refuses every call, which is not part of the story.
        self.until_it_serves().await
    }

    async fn send(&self, words: &[&str]) -> ScenarioResult<StepReply> {
        Ok(self.connection.lock().await.ask(&pack(words)).await?)
    }
}
