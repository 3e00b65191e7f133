//! The topology behind a client: whether its nodes form a cluster, and which node serves a Redis
//! key.

use std::collections::HashMap;
use std::sync::Arc;

use super::client::{Client, Topology};
use super::node;
use super::slot_map::SlotMap;
use crate::domain::hash_slot;
use crate::store::connection::{Address, Target, Writable, client_options, reply};
use crate::store::error::{RefusedAt, StoreError};

const CUT_OFF: &str = "is a replica whose data may be old, cut off from its master";

impl Client {
    /// The masters of the cluster, or the one server if it is not a cluster.
    pub async fn masters(&self) -> Result<Vec<Target>, StoreError> {
        if matches!(self.known(), Topology::Unknown) {
            self.learn().await?;
        }
        Ok(match self.known() {
            Topology::Cluster(map, _) => map.masters().to_vec(),
            _ => vec![self.target().clone()],
        })
    }

    /// The address of the server, and those of all nodes of its cluster, reachable or not.
    ///
    /// # Errors
    /// The errors of any read.
    pub async fn addresses(&self) -> Result<Vec<Address>, StoreError> {
        self.masters().await?;
        let mut addresses = vec![self.target().address.clone()];
        if let Some(map) = self.slot_map() {
            addresses.extend(map.addresses().iter().cloned());
            // CLUSTER SLOTS omits nodes that are down, replicas without data, and masters without
            // slots.
            addresses.extend(self.addresses_of_all_nodes().await?);
        }
        Ok(addresses)
    }

    /// False if no Sentinel monitors the server. Each Sentinel subscribes to a channel on every
    /// server of its services, but sometimes loses that connection for a moment, e.g. when it fails
    /// over. Without subscribers, a replica, and a server that has or had replicas, may therefore
    /// still be monitored.
    pub async fn may_be_watched(&self) -> bool {
        let asked =
            self.home.ask(redis::cmd("PUBSUB").arg("NUMSUB").arg("__sentinel__:hello")).await;
        let subscribers = match asked {
            Ok(reply) => subscribers(reply),
            Err(_) => None,
        };
        subscribers != Some(0) || self.may_be_replicated().await
    }

    /// False if the server reports that it is a master that never had a replica.
    async fn may_be_replicated(&self) -> bool {
        let Ok(role) = self.home.ask(&redis::cmd("ROLE")).await else { return true };
        let Some(parts) = reply::array(role) else { return true };
        let Ok([kind, offset, replicas]) = <[redis::Value; 3]>::try_from(parts) else {
            return true;
        };
        // A master counts what it sends to replicas. Right after a failover, the new one has none.
        let has_replicated = reply::integer(&offset) != Some(0);
        let is_master = reply::word(kind).as_deref() == Some("master");
        let Some(replicas) = reply::array(replicas) else { return true };
        !is_master || has_replicated || !replicas.is_empty()
    }

    /// The node that serves a Redis key.
    ///
    /// # Errors
    /// The errors of any read; in a cluster, no node serves the key.
    pub async fn master_of(&self, redis_key: &[u8]) -> Result<Target, StoreError> {
        if matches!(self.known(), Topology::Unknown) {
            self.learn().await?;
        }
        let Topology::Cluster(map, _) = self.known() else { return Ok(self.target().clone()) };
        match map.master(hash_slot::of(redis_key)) {
            Some(master) => Ok(master.clone()),
            None => Err(self.unserved(redis_key)),
        }
    }

    /// The node to put load on: the one that the operator named, or another master if that one is
    /// not a master of the cluster.
    pub async fn playground(&self, server: &Writable) -> Result<Writable, StoreError> {
        let mut masters = self.masters().await?;
        if masters.is_empty() {
            return Err(self.unserved(b""));
        }
        let named = masters.iter().position(|master| master == self.target()).unwrap_or(0);
        Ok(server.instead(masters.swap_remove(named)))
    }

    /// True if, by the known slot map, this node serves all of these Redis keys.
    pub fn serves(&self, node: &Target, redis_keys: &[Vec<u8>]) -> bool {
        match self.known() {
            Topology::Cluster(map, _) => {
                redis_keys.iter().all(|key| map.master(hash_slot::of(key)) == Some(node))
            }
            _ => true,
        }
    }

    /// The indexes of these Redis keys, grouped by the node that serves them in the known slot map.
    pub(in crate::store) fn by_master(&self, redis_keys: &[&[u8]]) -> Vec<Vec<usize>> {
        let map = self.slot_map();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        // The master of each group. All keys without a known master form one group.
        let mut masters: Vec<Option<&Target>> = Vec::new();
        for (index, redis_key) in redis_keys.iter().enumerate() {
            let master = match &map {
                Some(map) => map.master(hash_slot::of(redis_key)),
                None => None,
            };
            match masters.iter().position(|known| *known == master) {
                Some(group) => groups[group].push(index),
                None => {
                    groups.push(vec![index]);
                    masters.push(master);
                }
            }
        }
        groups
    }

    /// True if this is known to be a cluster and these Redis keys are in different slots.
    pub(in crate::store) fn are_in_different_slots(&self, redis_keys: &[Vec<u8>]) -> bool {
        redis_keys.len() > 1
            && self.is_cluster()
            && !hash_slot::is_one(redis_keys.iter().map(Vec::as_slice))
    }

    /// The known slot map; `None` if this is not a cluster.
    pub(in crate::store) fn slot_map(&self) -> Option<Arc<SlotMap>> {
        match self.known() {
            Topology::Cluster(map, _) => Some(map),
            _ => None,
        }
    }

    /// Fetches the slot map, even if one is known.
    ///
    /// # Errors
    /// The errors of any read; the user of a cluster may not ask for the slot map.
    pub(in crate::store) async fn learn(&self) -> Result<(), StoreError> {
        let reply = self.home.ask(redis::cmd("CLUSTER").arg("SLOTS")).await;
        let map = match reply {
            Ok(slots) => match SlotMap::parse(slots, self.target()) {
                Some(map) => Some(map),
                None => return Err(self.unexpected("CLUSTER SLOTS")),
            },
            Err(error) if error.lost_the_reply() => return Err(error),
            // The next request may log in with another password.
            Err(error @ StoreError::Authentication { .. }) => return Err(error),
            // A busy server does not say whether it is a cluster node. If idemctl took it for a
            // single server, it would miss the keys of the other nodes.
            Err(error) if error.is_for_now() => return Err(error),
            // The same applies to a node that does not list the others.
            Err(error) if does_not_tell(&error) && self.says_it_is_a_node().await => {
                return Err(self.slot_map_forbidden());
            }
            // Any other error means that the server is not a node of a cluster.
            Err(_) => None,
        };
        self.update_topology(|topology| {
            *topology = match (map, std::mem::take(topology)) {
                (Some(map), Topology::Cluster(_, nodes)) => Topology::Cluster(Arc::new(map), nodes),
                (Some(map), _) => Topology::Cluster(Arc::new(map), HashMap::new()),
                // A node stays a node: the error has another cause.
                (None, cluster @ Topology::Cluster(..)) => cluster,
                (None, _) => Topology::Standalone,
            };
        });
        Ok(())
    }

    /// Requires that the server is not a replica outside a cluster. Changes to a replica
    /// (`replica-read-only no`) never reach its master; in a cluster they are sent to the masters.
    /// False if the Redis user may not ask for the role.
    ///
    /// # Errors
    /// Refused, because the server is a replica; or there is no reply.
    pub async fn require_not_replica(&self) -> Result<bool, StoreError> {
        if self.is_cluster() {
            return Ok(true);
        }
        match self.is_replica().await? {
            Some(true) => {}
            Some(false) => return Ok(true),
            None => return Ok(false),
        }
        // ROLE does not show whether a replica belongs to a cluster.
        self.masters().await?;
        if self.is_cluster() {
            return Ok(true);
        }
        let master = match self.own_master().await {
            Some(master) => format!(" of {master}"),
            None => String::new(),
        };
        Err(StoreError::ErrorReply {
            target: self.name(),
            code: "READONLY".to_owned(),
            why: format!(
                "it is a replica{master}, and changes on a replica do not reach its master"
            ),
            refused_at: RefusedAt::Command,
        })
    }

    /// True if the server is a replica outside a cluster; `None` if the Redis user may not ask.
    ///
    /// # Errors
    /// There is no reply.
    async fn is_replica(&self) -> Result<Option<bool>, StoreError> {
        match self.home.ask(&redis::cmd("HELLO")).await {
            Ok(greeting) => {
                let role = client_options::hello_field(greeting.clone(), "role");
                let is_replica = role.is_some_and(|role| role != "master");
                // In a cluster, changes are sent to the masters.
                let is_node = client_options::mode(greeting).as_deref() == Some("cluster");
                return Ok(Some(is_replica && !is_node));
            }
            Err(error) if error.lost_the_reply() => return Err(error),
            // A Redis user without the right to HELLO may still have the right to ROLE.
            Err(_) => {}
        }
        match self.home.ask(&redis::cmd("ROLE")).await {
            Ok(role) => {
                let Some(parts) = reply::array(role) else { return Ok(None) };
                match parts.into_iter().next().and_then(reply::word) {
                    Some(kind) => Ok(Some(kind == "slave")),
                    None => Ok(None),
                }
            }
            Err(error) if error.lost_the_reply() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The address of this server's master, if the Redis user may ask for it.
    async fn own_master(&self) -> Option<String> {
        let role = self.home.ask(&redis::cmd("ROLE")).await.ok()?;
        let mut parts = reply::array(role)?.into_iter().skip(1);
        let host = reply::word(parts.next()?)?;
        let port = reply::integer(&parts.next()?)?;
        Some(format!("{host}:{port}"))
    }

    /// The reason why reads here may be out of date: the server is a replica that lost the link to
    /// its master, or may be one because the Redis user may not ask. `None` for any other server.
    pub async fn why_stale(&self) -> Option<String> {
        if self.is_cluster() || self.home.target().client_options.was_just_master() {
            return None;
        }
        match self.home.ask(&redis::cmd("ROLE")).await {
            Ok(role) => self.why_behind_by_role(role),
            Err(error) if does_not_tell(&error) => self.why_behind_without_role().await,
            // The next command gets the same error and reports it.
            Err(_) => None,
        }
    }

    /// Like [`Self::why_stale`], for a Redis user who may not send ROLE. INFO also shows the link
    /// to the master. HELLO, which most users may send, shows only whether the server is a replica.
    async fn why_behind_without_role(&self) -> Option<String> {
        let name = self.name();
        let info = self.home.ask(redis::cmd("INFO").arg("replication")).await;
        if let Some(info) = info.ok().and_then(reply::word) {
            let is_cut_off = info.contains("role:slave") && !info.contains("master_link_status:up");
            if !is_cut_off {
                return None;
            }
            return Some(format!("{name} {CUT_OFF}"));
        }
        let what = match self.is_replica().await {
            Ok(Some(false)) => return None,
            Ok(Some(true)) => "is a replica, and whether it is cut off from its master is unknown",
            Ok(None) | Err(_) => "may be a replica that is cut off from its master",
        };
        Some(format!("{name} {what}; to check, the user needs +role or +info"))
    }

    fn why_behind_by_role(&self, role: redis::Value) -> Option<String> {
        let mut parts = reply::array(role)?.into_iter();
        let role = reply::word(parts.next()?)?;
        let host = reply::word(parts.next()?)?;
        let port = reply::integer(&parts.next()?)?;
        let link = reply::word(parts.next()?)?;
        if role != "slave" || link == "connected" {
            return None;
        }
        let name = self.name();
        Some(format!("{name} {CUT_OFF} ({host}:{port})"))
    }

    /// True if HELLO reports a cluster node, or INFO if the Redis user may not send HELLO.
    async fn says_it_is_a_node(&self) -> bool {
        if let Ok(greeting) = self.home.ask(&redis::cmd("HELLO")).await
            && let Some(mode) = client_options::mode(greeting)
        {
            return mode == "cluster";
        }
        let Ok(info) = self.home.ask(redis::cmd("INFO").arg("cluster")).await else {
            return false;
        };
        reply::word(info).is_some_and(|info| info.contains("cluster_enabled:1"))
    }

    pub(super) fn slot_map_forbidden(&self) -> StoreError {
        StoreError::NeedsSlots { target: self.name() }
    }

    /// A replica of this master that is in sync and reachable; `None` if there is none or the user
    /// may not ask.
    pub(in crate::store) async fn replica_of(&self, master: &Target) -> Option<Target> {
        let node = self.node(master).await.ok()?;
        let role = node.ask(&redis::cmd("ROLE")).await.ok()?;
        // The third part of a master's reply lists the replicas that are in sync.
        let replicas = reply::array(role)?.into_iter().nth(2)?;
        for replica in reply::array(replicas)? {
            let mut parts = reply::array(replica)?.into_iter();
            let host = reply::word(parts.next()?)?;
            let port = reply::word(parts.next()?)?.parse().ok()?;
            let target = Target { address: Address::Tcp(host, port), ..master.clone() };
            if node::connect(&target).await.is_ok() {
                return Some(target);
            }
        }
        None
    }

    pub(super) fn unserved(&self, redis_key: &[u8]) -> StoreError {
        let why = format!("no node serves slot {}", hash_slot::of(redis_key));
        StoreError::ErrorReply {
            target: self.name(),
            code: "CLUSTERDOWN".to_owned(),
            why,
            refused_at: RefusedAt::Command,
        }
    }
}

/// The number of subscribers in the reply to PUBSUB NUMSUB for one channel.
fn subscribers(reply: redis::Value) -> Option<i64> {
    let parts = reply::array(reply)?;
    reply::integer(parts.get(1)?)
}

/// True if a server does not list the nodes although it may be a cluster node: the Redis user may
/// not ask, or the command was renamed there.
fn does_not_tell(error: &StoreError) -> bool {
    error.is_permission() || error.is_unknown_command()
}
