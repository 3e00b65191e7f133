//! The way to a server, or to the nodes of a cluster, and what is known of these.
//!
//! Whether a server is a cluster's node is found out where it matters: when it answers so, or when somebody has to know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    pub(super) home: Node,
    topology: Arc<Mutex<Topology>>,
    /// The digests of scripts that every master was told, by their texts; `None` where scripts may not be loaded.
    digests: Arc<Mutex<HashMap<&'static str, Option<String>>>>,
    /// Whether PEXPIRETIME tells deadlines here; `None` before the first try.
    pub(super) deadlines: Arc<Mutex<Option<bool>>>,
    /// What the server tells of its process, once it was asked for.
    pub(in crate::store) process: Arc<OnceCell<Process>>,
}

/// What is known of the servers behind a client.
#[derive(Clone, Default)]
pub(super) enum Topology {
    /// Nobody had to know yet.
    #[default]
    Unknown,
    /// One server, with all Redis keys.
    Standalone,
    /// A cluster, and the connections to its nodes by their names.
    Cluster(Arc<SlotMap>, HashMap<String, Node>),
}

/// Another master in the place of one.
pub(in crate::store) struct Failover {
    pub(in crate::store) client: Client,
    /// The one before, for people.
    pub(in crate::store) from: String,
    /// The one now, for people.
    pub(in crate::store) to: String,
}

/// Connects to a server; to the master of a service that Sentinels know.
///
/// # Errors
/// Unreachable, timed out, or the log-in refused.
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
    let (topology, digests, deadlines, process) =
        (Arc::default(), Arc::default(), Arc::default(), Arc::default());
    Ok(Client { home: node::connect(&master).await?, topology, digests, deadlines, process })
}

impl Client {
    /// The server's name for people.
    pub fn name(&self) -> String {
        self.target().to_string()
    }

    /// The server; of a cluster the node that was named.
    pub fn target(&self) -> &Target {
        self.home.target()
    }

    /// Whether another one has taken the master's place, or that of a master of the cluster since the slot map was this.
    ///
    /// # Errors
    /// Sentinels know no master just now.
    pub(in crate::store) async fn failover(
        &self,
        before: Option<&SlotMap>,
    ) -> Result<Option<Failover>, StoreError> {
        if let Some(sentinels) = &self.target().sentinels {
            let master = sentinels.master(self.target()).await?;
            if master.address == self.target().address {
                return Ok(None);
            }
            let (from, to) = (self.name(), master.to_string());
            return Ok(Some(Failover { client: connect(&master).await?, from, to }));
        }
        let Some(before) = before else { return Ok(None) };
        // Where the map cannot be had nothing is known.
        let _ = self.learn().await;
        let Some(now) = self.slot_map() else { return Ok(None) };
        let taken = now.taken_over(before);
        Ok(taken.map(|(from, to)| Failover {
            client: self.clone(),
            from: from.to_string(),
            to: to.to_string(),
        }))
    }

    /// The same way on new connections, for whoever lost a reply on this one; in a cluster by whichever master answers.
    pub(in crate::store) async fn anew(&self) -> Result<Self, StoreError> {
        let again = connect(self.target()).await;
        let Topology::Cluster(map, _) = self.known() else { return again };
        let mut client = again;
        for master in map.masters().iter().filter(|master| *master != self.target()) {
            if client.is_ok() {
                break;
            }
            client = connect(master).await;
        }
        let client = client?;
        client.learn().await?;
        Ok(client)
    }

    /// Waits until so many replicas of the masters of these Redis keys have what was changed through this client.
    ///
    /// # Errors
    /// Not so many had it in time, or the server may not be asked.
    pub(in crate::store) async fn replicated(
        &self,
        redis_keys: &[&[u8]],
        wanted: u32,
        wait: Duration,
    ) -> Result<(), StoreError> {
        for indexes in self.by_master(redis_keys) {
            let master = self.master_of(redis_keys[indexes[0]]).await?;
            let Some(node) = self.reached(&master) else { continue };
            let have = match node.ask(redis::cmd("WAIT").arg(wanted).arg(millis(wait))).await {
                Ok(have) => reply::integer(&have).unwrap_or(0),
                Err(error) if error.lost_the_reply() => 0,
                Err(error) => return Err(error),
            };
            if have < i64::from(wanted) {
                return Err(StoreError::NotReplicated { target: master.to_string(), have, wanted });
            }
        }
        Ok(())
    }

    /// Makes a script known to every master, the first time, and gives its digest; `None` where that is not permitted.
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
                // A master that cannot be reached, or refuses for now, keeps nobody from the others. It says NOSCRIPT later.
                Err(error)
                    if error.is_permission() || error.lost_the_reply() || masters.len() > 1 => {}
                Err(error) => return Err(error),
            }
        }
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(script, digest.clone());
        Ok(digest)
    }

    pub(super) async fn node(&self, target: &Target) -> Result<Node, StoreError> {
        if let Some(node) = self.reached(target) {
            return Ok(node);
        }
        let node = node::connect(target).await?;
        self.change(|topology| {
            if let Topology::Cluster(_, nodes) = topology {
                nodes.insert(target.to_string(), node.clone());
            }
        });
        Ok(node)
    }

    /// The same where there is one already.
    fn reached(&self, target: &Target) -> Option<Node> {
        if target == self.target() {
            return Some(self.home.clone());
        }
        match self.known() {
            Topology::Cluster(_, nodes) => nodes.get(&target.to_string()).cloned(),
            _ => None,
        }
    }

    /// What did not speak the protocol before anything was read may be no Redis at all.
    pub(in crate::store) async fn explain_error(&self, error: StoreError) -> StoreError {
        self.home.explain_error(error).await
    }

    pub(in crate::store) fn error(&self, error: &redis::RedisError) -> StoreError {
        self.home.error(error)
    }

    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.name(), asked: asked.to_owned() }
    }

    /// True once it is known to be a cluster.
    pub fn is_cluster(&self) -> bool {
        let topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*topology, Topology::Cluster(..))
    }

    pub(super) fn known(&self) -> Topology {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Topology)) {
        change(&mut self.topology.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
