//! The way to a server, or to the nodes of a cluster, and what is known of these.
//!
//! Whether a server is a cluster's node is found out where it matters: when it answers so, or when somebody has to know.

pub(in crate::store) use super::deadlines::{TRIED, is_known as knows_pexpiretime};
pub(in crate::store) use super::scripted::Script;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::OnceCell;

use super::node;
use super::node::Node;
use super::slot_map::SlotMap;
use crate::domain::hash_slot;
use crate::domain::record::age::millis;
use crate::store::change::writer::Writer;
use crate::store::connection::client_options;
use crate::store::connection::permit::{Permit, Writable};
use crate::store::connection::reply;
use crate::store::connection::target::{Address, Target};
use crate::store::error::{Place, StoreError};
use crate::store::read::reader::Reader;

/// The reply to one command.
pub(in crate::store) type Reply = Result<Value, StoreError>;

/// A connection to a server, or to the nodes of a cluster.
#[derive(Clone)]
pub struct Link {
    pub(super) home: Node,
    topology: Arc<Mutex<Topology>>,
    /// The digests of scripts that every master was told, by their texts; `None` where scripts may not be loaded.
    digests: Arc<Mutex<HashMap<&'static str, Option<String>>>>,
    /// Whether PEXPIRETIME tells deadlines here; `None` before the first try.
    pub(super) deadlines: Arc<Mutex<Option<bool>>>,
    /// The server's run id, once it was asked for; `None` inside where it is not told.
    pub(in crate::store) run_id: Arc<OnceCell<Option<String>>>,
}

/// What is known of the servers behind a link.
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
    /// The way there.
    pub(in crate::store) link: Link,
    /// The one before, for people.
    pub(in crate::store) from: String,
    /// The one now, for people.
    pub(in crate::store) to: String,
}

/// Connects to a server; to the master of a service that Sentinels know.
///
/// # Errors
/// Unreachable, timed out, or the log-in refused.
pub async fn connect(target: &Target) -> Result<Link, StoreError> {
    let sentinels = match &target.address {
        Address::Service(sentinels) => Some(sentinels),
        _ => target.sentinels.as_ref(),
    };
    let master = match sentinels {
        Some(sentinels) => Target { sentinels: Some(Arc::clone(sentinels)), ..sentinels.master(target).await? },
        None => target.clone(),
    };
    let (topology, digests, deadlines, run_id) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
    Ok(Link { home: node::connect(&master).await?, topology, digests, deadlines, run_id })
}

impl Link {
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
    pub(in crate::store) async fn failover(&self, before: Option<&SlotMap>) -> Result<Option<Failover>, StoreError> {
        if let Some(sentinels) = &self.target().sentinels {
            let master = sentinels.master(self.target()).await?;
            if master.address == self.target().address {
                return Ok(None);
            }
            let (from, to) = (self.name(), master.to_string());
            return Ok(Some(Failover { link: connect(&master).await?, from, to }));
        }
        let Some(before) = before else { return Ok(None) };
        // Where the map cannot be had nothing is known.
        let _ = self.learn().await;
        let Some(now) = self.slot_map() else { return Ok(None) };
        let taken = now.taken_over(before);
        Ok(taken.map(|(from, to)| Failover { link: self.clone(), from: from.to_string(), to: to.to_string() }))
    }

    /// The same way on new connections, for whoever lost a reply on this one; in a cluster by whichever master answers.
    ///
    /// # Errors
    /// As [`connect`].
    pub(in crate::store) async fn anew(&self) -> Result<Self, StoreError> {
        let again = connect(self.target()).await;
        let Topology::Cluster(map, _) = self.known() else { return again };
        let mut link = again;
        for master in map.masters().iter().filter(|master| *master != self.target()) {
            if link.is_ok() {
                break;
            }
            link = connect(master).await;
        }
        let link = link?;
        link.learn().await?;
        Ok(link)
    }

    /// What may only read.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// What may change, for whoever has leave to.
    pub fn writer(&self, _: &Permit) -> Writer {
        Writer::new(self.clone())
    }

    /// The masters of the cluster; the server alone where it is none.
    ///
    /// # Errors
    /// As every read.
    pub async fn masters(&self) -> Result<Vec<Target>, StoreError> {
        if matches!(self.known(), Topology::Unknown) {
            self.learn().await?;
        }
        Ok(match self.known() {
            Topology::Cluster(map, _) => map.masters().to_vec(),
            _ => vec![self.target().clone()],
        })
    }

    /// The node that serves a Redis key.
    ///
    /// # Errors
    /// As every read; in a cluster where nobody serves it.
    pub async fn master_of(&self, redis_key: &[u8]) -> Result<Target, StoreError> {
        if matches!(self.known(), Topology::Unknown) {
            self.learn().await?;
        }
        match self.known() {
            Topology::Cluster(map, _) => {
                map.master(hash_slot::of(redis_key)).cloned().ok_or_else(|| self.unserved(redis_key))
            }
            _ => Ok(self.target().clone()),
        }
    }

    /// The node to put load on: the one that was named, or in a cluster, where that is no master, another.
    ///
    /// # Errors
    /// As every read.
    pub async fn playground(&self, server: &Writable) -> Result<Writable, StoreError> {
        let mut masters = self.masters().await?;
        let named = masters.iter().position(|master| master == self.target()).unwrap_or(0);
        if masters.is_empty() { Err(self.unserved(b"")) } else { Ok(server.instead(masters.swap_remove(named))) }
    }

    /// True when this node serves all of these Redis keys, as far as is known.
    pub fn serves(&self, node: &Target, redis_keys: &[Vec<u8>]) -> bool {
        match self.known() {
            Topology::Cluster(map, _) => redis_keys.iter().all(|key| map.master(hash_slot::of(key)) == Some(node)),
            _ => true,
        }
    }

    /// The indexes of these Redis keys, by the nodes that serve them as far as is known.
    pub(in crate::store) fn by_master(&self, redis_keys: &[&[u8]]) -> Vec<Vec<usize>> {
        let map = self.slot_map();
        let node = |index: &usize| map.as_ref().and_then(|map| map.master(hash_slot::of(redis_keys[*index])));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in 0..redis_keys.len() {
            match groups.iter_mut().find(|group| node(&group[0]) == node(&index)) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        groups
    }

    /// True once it is known to be a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.known(), Topology::Cluster(..))
    }

    /// True when it is known to be a cluster, and these Redis keys are in several slots of it.
    pub(in crate::store) fn parts(&self, redis_keys: &[Vec<u8>]) -> bool {
        redis_keys.len() > 1 && self.is_cluster() && !hash_slot::is_one(redis_keys.iter().map(Vec::as_slice))
    }

    /// The slot map as it is known; `None` where it is no cluster.
    pub(in crate::store) fn slot_map(&self) -> Option<Arc<SlotMap>> {
        match self.known() {
            Topology::Cluster(map, _) => Some(map),
            _ => None,
        }
    }

    /// Asks for the slot map, again where it is known.
    ///
    /// # Errors
    /// As every read; of a cluster whose user may not ask for it.
    pub(in crate::store) async fn learn(&self) -> Result<(), StoreError> {
        let reply = self.home.ask(redis::cmd("CLUSTER").arg("SLOTS")).await;
        let map = match reply {
            Ok(slots) => Some(SlotMap::parse(slots, self.target()).ok_or_else(|| self.unexpected("CLUSTER SLOTS"))?),
            Err(error) if error.lost_the_reply() => return Err(error),
            // A node that does not tell of the others would be taken for all there is.
            Err(error) if error.is_permission() && self.says_it_is_a_node().await => return Err(self.needs_slots()),
            Err(_) => None,
        };
        self.change(|topology| {
            *topology = match (map, std::mem::take(topology)) {
                (Some(map), Topology::Cluster(_, nodes)) => Topology::Cluster(Arc::new(map), nodes),
                (Some(map), _) => Topology::Cluster(Arc::new(map), HashMap::new()),
                // What was one is one still: it has other things to do just now.
                (None, cluster @ Topology::Cluster(..)) => cluster,
                (None, _) => Topology::Standalone,
            };
        });
        Ok(())
    }

    /// True when the server's greeting says so, which everybody may ask for.
    async fn says_it_is_a_node(&self) -> bool {
        let greeting = self.home.ask(&redis::cmd("HELLO")).await;
        greeting.ok().and_then(client_options::mode).is_some_and(|mode| mode == "cluster")
    }

    pub(super) fn needs_slots(&self) -> StoreError {
        let why =
            "this is a node of a cluster, and the user may not ask which node serves a key: it needs +cluster|slots";
        StoreError::Permission { target: self.name(), why: why.to_owned() }
    }

    /// A replica of a master, which is in step and answers; `None` where there is none, or nobody may ask.
    pub(in crate::store) async fn replica_of(&self, master: &Target) -> Option<Target> {
        let role = self.node(master).await.ok()?.ask(&redis::cmd("ROLE")).await.ok()?;
        let replicas = reply::array(reply::array(role)?.into_iter().nth(2)?)?;
        for replica in replicas {
            let mut parts = reply::array(replica)?.into_iter();
            let (host, port) = (reply::word(parts.next()?)?, reply::word(parts.next()?)?.parse().ok()?);
            let target = Target { address: Address::Tcp(host, port), ..master.clone() };
            if node::connect(&target).await.is_ok() {
                return Some(target);
            }
        }
        None
    }

    /// Waits until so many replicas of the masters of these Redis keys have what was changed through this link.
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
    ///
    /// # Errors
    /// As every read.
    pub(in crate::store) async fn digest(&self, script: &'static str) -> Result<Option<String>, StoreError> {
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(script).cloned();
        if let Some(digest) = known {
            return Ok(digest);
        }
        let mut digest = None;
        for master in self.masters().await? {
            let loaded = match self.node(&master).await {
                Ok(node) => node.ask(redis::cmd("SCRIPT").arg("LOAD").arg(script)).await,
                Err(error) => Err(error),
            };
            match loaded {
                Ok(value) => digest = reply::word(value),
                // A master that cannot be reached keeps nobody from the others; one that comes back says NOSCRIPT.
                Err(error) if error.is_permission() || error.lost_the_reply() => {}
                Err(error) => return Err(error),
            }
        }
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(script, digest.clone());
        Ok(digest)
    }

    /// The connection to a node.
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
    pub(in crate::store) async fn look_closer(&self, error: StoreError) -> StoreError {
        self.home.look_closer(error).await
    }

    pub(in crate::store) fn error(&self, error: &redis::RedisError) -> StoreError {
        self.home.error(error)
    }

    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.name(), asked: asked.to_owned() }
    }

    pub(super) fn unserved(&self, redis_key: &[u8]) -> StoreError {
        let why = format!("no node serves slot {}", hash_slot::of(redis_key));
        StoreError::Refused { target: self.name(), code: "CLUSTERDOWN".to_owned(), why, place: Place::Command }
    }

    pub(super) fn known(&self) -> Topology {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Topology)) {
        change(&mut self.topology.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
