//! A client of one server or of a cluster, and its knowledge of the topology behind it.
//!
//! idemctl learns that a server is a cluster node only when the server answers with a redirect or
//! with CROSSSLOT, or when a caller needs the slot map.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::Value;
use tokio::sync::OnceCell;

use super::node::{self, Node};
use super::slot_map::SlotMap;
use crate::domain::change::provenance::Process;
use crate::domain::record::age::millis;
use crate::store::connection::{Address, Target, reply};
use crate::store::error::StoreError;

pub(in crate::store) type ClientReply = Result<Value, StoreError>;

/// A connection to a server, or to the nodes of a cluster.
#[derive(Clone)]
pub struct Client {
    /// The connection to [`Client::target`].
    pub(super) home: Node,
    topology: Arc<Mutex<Topology>>,
    /// The digest of each script that was loaded on the masters, by script text; `None` if the user
    /// may not load scripts.
    digests: Arc<Mutex<HashMap<&'static str, Option<String>>>>,
    /// Whether PEXPIRETIME works here; `None` before the first attempt.
    pub(super) deadlines: Arc<Mutex<Option<bool>>>,
    /// The server's description of its process, after the first request for it.
    pub(in crate::store) process: Arc<OnceCell<Process>>,
}

/// The topology of the servers behind a client.
#[derive(Clone, Default)]
pub(super) enum Topology {
    /// No caller has needed it yet.
    #[default]
    Unknown,
    /// One server with all Redis keys.
    Standalone,
    /// A cluster, with the connections to its nodes by node name.
    Cluster(Arc<SlotMap>, HashMap<String, Node>),
}

/// A master that was replaced by another one.
pub(in crate::store) struct Failover {
    pub(in crate::store) client: Client,
    /// The name of the previous master, for messages.
    pub(in crate::store) from: String,
    /// The name of the current master, for messages.
    pub(in crate::store) to: String,
}

/// Connects to a server, or to the current master of a service that Sentinels monitor.
///
/// # Errors
/// The server is unreachable, does not answer in time, or refuses the log-in.
pub async fn connect(target: &Target) -> Result<Client, StoreError> {
    let sentinels = match &target.address {
        Address::Service(sentinels) => Some(sentinels),
        _ => target.sentinels.as_ref(),
    };
    let master = match sentinels {
        Some(sentinels) => {
            Target { sentinels: Some(Arc::clone(sentinels)), ..sentinels.master(target).await? }
        }
        None => target.clone(),
    };
    Ok(Client {
        home: node::connect(&master).await?,
        topology: Arc::default(),
        digests: Arc::default(),
        deadlines: Arc::default(),
        process: Arc::default(),
    })
}

impl Client {
    /// The server's name, for messages.
    pub fn name(&self) -> String {
        self.target().to_string()
    }

    /// The server. In a cluster, this is the node that the operator named, or another master after
    /// [`Client::anew`]. Behind Sentinels, it is the master when this client connected.
    pub fn target(&self) -> &Target {
        self.home.target()
    }

    /// Checks whether another server replaced this master, or one of the cluster's masters in
    /// `before`.
    ///
    /// # Errors
    /// The Sentinels know no master at the moment.
    pub(in crate::store) async fn failover(
        &self,
        before: Option<&SlotMap>,
    ) -> Result<Option<Failover>, StoreError> {
        if let Some(sentinels) = &self.target().sentinels {
            let master = sentinels.master(self.target()).await?;
            if master.address == self.target().address {
                return Ok(None);
            }
            return Ok(Some(Failover {
                client: connect(&master).await?,
                from: self.name(),
                to: master.to_string(),
            }));
        }
        let Some(before) = before else { return Ok(None) };
        // An error is ignored: without a new slot map, idemctl keeps the one it has.
        let _ = self.learn().await;
        let Some(now) = self.slot_map() else { return Ok(None) };
        let Some((from, to)) = now.taken_over(before) else { return Ok(None) };
        Ok(Some(Failover { client: self.clone(), from: from.to_string(), to: to.to_string() }))
    }

    /// A client of the same servers on new connections, for a caller that lost a reply on this one.
    /// In a cluster, the first master that answers is used.
    pub(in crate::store) async fn anew(&self) -> Result<Self, StoreError> {
        // In a cluster, the named node may be the one that failed, so the other masters are tried
        // next.
        let again = connect(self.target()).await;
        let Topology::Cluster(map, _) = self.known() else { return again };
        let mut client = again;
        for master in map.masters() {
            if client.is_ok() {
                break;
            }
            if master != self.target() {
                client = connect(master).await;
            }
        }
        let client = client?;
        client.learn().await?;
        Ok(client)
    }

    /// Waits until `wanted` replicas have the changes that this client made to the masters of these
    /// Redis keys, at the moment `since` or later.
    ///
    /// # Errors
    /// Fewer replicas acknowledged the changes in time, or the Redis user may not send WAIT.
    pub(in crate::store) async fn replicated(
        &self,
        redis_keys: &[&[u8]],
        wanted: u32,
        wait: Duration,
        since: Instant,
    ) -> Result<(), StoreError> {
        for indexes in self.by_master(redis_keys) {
            let master = self.master_of(redis_keys[indexes[0]]).await?;
            // WAIT covers only the writes of its own connection, so a new connection would prove
            // nothing.
            let Some(node) = self.reached(&master) else { continue };
            let have = match node.ask(redis::cmd("WAIT").arg(wanted).arg(millis(wait))).await {
                Ok(_) if node.was_reopened(since).await => 0,
                Ok(have) => reply::integer(&have).unwrap_or(0),
                // Without a reply, no replica is known to have the changes.
                Err(error) if error.lost_the_reply() => 0,
                Err(error) => return Err(error),
            };
            if have < i64::from(wanted) {
                return Err(StoreError::NotReplicated { target: master.to_string(), have, wanted });
            }
        }
        Ok(())
    }

    /// Loads a script on every master on the first call, and returns its digest; `None` if the user
    /// may not load scripts.
    pub(in crate::store) async fn digest(
        &self,
        script: &'static str,
    ) -> Result<Option<String>, StoreError> {
        let known =
            self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(script).cloned();
        if let Some(digest) = known {
            return Ok(digest);
        }
        let mut digest = None;
        let masters = self.masters().await?;
        for master in &masters {
            let loaded = match self.node(master).await {
                Ok(node) => node.ask(redis::cmd("SCRIPT").arg("LOAD").arg(script)).await,
                Err(error) => Err(error),
            };
            match loaded {
                Ok(value) => digest = reply::word(value),
                // An unreachable or busy master must not block the others. It answers NOSCRIPT
                // later.
                Err(error)
                    if error.is_permission() || error.lost_the_reply() || masters.len() > 1 => {}
                Err(error) => return Err(error),
            }
        }
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(script, digest.clone());
        Ok(digest)
    }

    pub(in crate::store) async fn node(&self, target: &Target) -> Result<Node, StoreError> {
        if let Some(node) = self.reached(target) {
            return Ok(node);
        }
        let node = node::connect(target).await?;
        self.update_topology(|topology| {
            if let Topology::Cluster(_, nodes) = topology {
                nodes.insert(target.to_string(), node.clone());
            }
        });
        Ok(node)
    }

    /// The existing connection to a node, if there is one.
    fn reached(&self, target: &Target) -> Option<Node> {
        if target == self.target() {
            return Some(self.home.clone());
        }
        match self.known() {
            Topology::Cluster(_, nodes) => nodes.get(&target.to_string()).cloned(),
            _ => None,
        }
    }

    /// Explains an error that came before the first reply, because the peer may not be a Redis
    /// server.
    pub(in crate::store) async fn explain_error(&self, error: StoreError) -> StoreError {
        self.home.explain_error(error).await
    }

    pub(in crate::store) fn error(&self, error: &redis::RedisError) -> StoreError {
        self.home.error(error)
    }

    /// # Errors
    /// The reply is an error.
    pub(in crate::store) fn no_error(&self, reply: Value) -> ClientReply {
        match reply {
            Value::ServerError(error) => Err(self.error(&error.into())),
            reply => Ok(reply),
        }
    }

    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.name(), asked: asked.to_owned() }
    }

    /// True after this client has learned that it talks to a cluster.
    pub fn is_cluster(&self) -> bool {
        let topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*topology, Topology::Cluster(..))
    }

    pub(super) fn known(&self) -> Topology {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn update_topology(&self, update: impl FnOnce(&mut Topology)) {
        update(&mut self.topology.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
