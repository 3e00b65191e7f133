//! The slots that each node of a cluster reports for itself.
//!
//! `CLUSTER SLOTS` lists the owner of each slot as one node knows it. That may be seconds out of
//! date, and it omits migrations in progress. A master's own line in `CLUSTER NODES` is
//! authoritative for its slots and lists its migrations.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;

use super::client::{Client, Topology};
use super::slot_map::{SlotMap, address};
use crate::domain::hash_slot;
use crate::store::connection::{Address, Target, reply};
use crate::store::error::StoreError;

/// A slot whose keys are being moved from one master to another.
#[derive(Debug, Clone)]
pub(in crate::store) struct MovingSlot {
    pub(in crate::store) slot: u16,
    pub(in crate::store) from: Target,
    pub(in crate::store) to: Target,
}

/// The combined reports of the masters.
#[derive(Default)]
pub(in crate::store) struct SlotOwners {
    pub(in crate::store) moving: Vec<MovingSlot>,
    /// Each master that reported, by its id, with its configuration epoch.
    pub(in crate::store) epochs: BTreeMap<String, (Target, u64)>,
    /// The errors of the masters that did not report.
    pub(in crate::store) silent: Vec<StoreError>,
}

/// One line of `CLUSTER NODES`.
#[derive(Debug, PartialEq, Eq)]
struct NodeLine {
    id: String,
    host: String,
    port: u16,
    hostname: Option<String>,
    is_self: bool,
    /// True for a master that can be asked.
    is_master: bool,
    /// The configuration epoch: if two nodes claim a slot, the one with the greater epoch owns it.
    epoch: u64,
    slots: Vec<(u16, u16)>,
    /// The slots that this node is migrating, with the ids of the target nodes. Only a node's own
    /// line lists them.
    migrating: Vec<(u16, String)>,
}

impl Client {
    /// Corrects the slot map by the report of each master, and returns the slots that are being
    /// moved. It skips masters that are known to be unreachable.
    pub(in crate::store) async fn ask_each_master(
        &self,
        is_known_silent: impl Fn(&Target) -> bool,
    ) -> SlotOwners {
        let mut heard = SlotOwners::default();
        let Some(map) = self.slot_map() else { return heard };
        let views = self.own_views(&map, is_known_silent, &mut heard.silent).await;
        let mut by_epoch: Vec<&(Target, NodeLine)> = views.values().collect();
        // In ascending order, so that the claim with the greatest epoch is applied last and wins.
        by_epoch.sort_by_key(|(_, line)| line.epoch);
        let mut corrected = SlotMap::clone(&map);
        for (node, line) in by_epoch {
            for (first, last) in &line.slots {
                for slot in *first..=*last {
                    if corrected.master(slot) != Some(node) {
                        corrected.moved(slot, node.clone());
                    }
                }
            }
            for (slot, to) in &line.migrating {
                // If the target node has no report, its error is in `silent`.
                if let Some((to, _)) = views.get(to) {
                    heard.moving.push(MovingSlot {
                        slot: *slot,
                        from: node.clone(),
                        to: to.clone(),
                    });
                }
            }
        }
        for (id, (node, line)) in &views {
            heard.epochs.insert(id.clone(), (node.clone(), line.epoch));
        }
        if corrected != *map {
            self.update_topology(|topology| {
                if let Topology::Cluster(map, _) = topology {
                    *map = Arc::new(corrected);
                }
            });
        }
        heard
    }

    /// The configuration epoch of each node by its id, as the node that was named knows it: an epoch
    /// may be out of date, but never ahead. Empty if the node does not tell.
    pub(in crate::store) async fn known_epochs(&self) -> BTreeMap<String, u64> {
        let lines = self.nodes_as_seen_by(self.target()).await.unwrap_or_default();
        lines.into_iter().map(|line| (line.id, line.epoch)).collect()
    }

    /// The report of each master about itself, by node id.
    async fn own_views(
        &self,
        map: &SlotMap,
        is_known_silent: impl Fn(&Target) -> bool,
        silent: &mut Vec<StoreError>,
    ) -> BTreeMap<String, (Target, NodeLine)> {
        let mut views: BTreeMap<String, (Target, NodeLine)> = BTreeMap::new();
        let mut asked: Vec<Target> = Vec::new();
        let mut to_ask: Vec<Target> = Vec::new();
        for master in map.masters() {
            if !is_known_silent(master) {
                to_ask.push(master.clone());
            }
        }
        // `CLUSTER SLOTS` omits masters without slots, so idemctl learns of them from the other
        // masters.
        while !to_ask.is_empty() {
            let answers = join_all(to_ask.iter().map(|node| self.nodes_as_seen_by(node))).await;
            let mut others: Vec<(String, Target)> = Vec::new();
            for (node, answer) in to_ask.iter().zip(answers) {
                let lines = match answer {
                    Ok(lines) => lines,
                    Err(error) => {
                        silent.push(error);
                        continue;
                    }
                };
                for line in lines {
                    if line.is_self {
                        views.entry(line.id.clone()).or_insert((node.clone(), line));
                    } else if line.is_master {
                        let other = target(&line, node, map.addresses());
                        others.push((line.id, other));
                    }
                }
            }
            asked.append(&mut to_ask);
            for (id, node) in others {
                let is_known =
                    views.contains_key(&id) || asked.contains(&node) || to_ask.contains(&node);
                if !is_known && !is_known_silent(&node) {
                    to_ask.push(node);
                }
            }
        }
        views
    }

    /// The names of all Redis keys that this node stores for a slot; `None` if there are more than
    /// `most`.
    ///
    /// # Errors
    /// The errors of any read; the Redis user may not send the CLUSTER commands.
    pub(in crate::store) async fn keys_in_slot(
        &self,
        node: &Target,
        slot: u16,
        most: usize,
    ) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let asked = self.node(node).await?;
        let count = asked.ask(redis::cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot)).await?;
        let Some(count) = reply::integer(&count) else {
            return Err(self.unexpected("CLUSTER COUNTKEYSINSLOT"));
        };
        match usize::try_from(count) {
            Ok(count) if count <= most => {}
            _ => return Ok(None),
        }
        // A key that is created after the count is created on the target node of the migration, so
        // it cannot exceed `most`.
        let names =
            asked.ask(redis::cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(most)).await?;
        let Some(names) = reply::array(names) else {
            return Err(self.unexpected("CLUSTER GETKEYSINSLOT"));
        };
        Ok(Some(names.into_iter().filter_map(reply::bytes).collect()))
    }

    /// The addresses that all nodes announce, by IP address and by hostname, including nodes that
    /// are down. Empty if the Redis user may not ask.
    ///
    /// # Errors
    /// There is no reply, or the server temporarily refuses commands.
    pub(super) async fn addresses_of_all_nodes(&self) -> Result<Vec<Address>, StoreError> {
        let nodes = match self.nodes_as_seen_by(self.target()).await {
            Ok(nodes) => nodes,
            Err(error) if error.is_permission() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut addresses = Vec::new();
        for node in nodes {
            // A node whose address is unknown has port 0.
            if node.port == 0 {
                continue;
            }
            addresses.push(address(self.target(), Some(node.host), node.port).address);
            if node.hostname.is_some() {
                addresses.push(address(self.target(), node.hostname, node.port).address);
            }
        }
        Ok(addresses)
    }

    async fn nodes_as_seen_by(&self, node: &Target) -> Result<Vec<NodeLine>, StoreError> {
        let answer = self.node(node).await?.ask(redis::cmd("CLUSTER").arg("NODES")).await?;
        let Some(text) = reply::bytes(answer) else {
            return Err(self.unexpected("CLUSTER NODES"));
        };
        Ok(String::from_utf8_lossy(&text).lines().filter_map(line).collect())
    }
}

/// The target for a line's node, with the settings of `like`. A cluster names its nodes by address
/// or by hostname; `addresses` shows which.
fn target(line: &NodeLine, like: &Target, addresses: &[Address]) -> Target {
    let mut host = &line.host;
    if let Some(hostname) = &line.hostname {
        for known in addresses {
            if matches!(known, Address::Tcp(name, _) if name == hostname) {
                host = hostname;
            }
        }
    }
    address(like, Some(host.clone()), line.port)
}

/// Parses `<id> <ip>:<port>@<bus port>[,<hostname>] <flags> <master> <ping> <pong> <epoch> <link>
/// <slot> ...`. A slot is `5`, `5-9`, `[5->-<id>]` during migration to another node, or
/// `[5-<-<id>]` during migration from another node.
fn line(text: &str) -> Option<NodeLine> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [id, place, flags, _, _, _, epoch, _, slots @ ..] = &words[..] else { return None };
    let (place, names) = place.split_once(',').unwrap_or((place, ""));
    let (host, port) = place.split('@').next()?.rsplit_once(':')?;
    // Fields such as `shard-id=...` may follow the hostname, which may be empty.
    let name = names.split(',').next().unwrap_or_default();
    let is_hostname = !name.is_empty() && !name.contains('=');
    let flags: Vec<&str> = flags.split(',').collect();
    let can_be_asked = !flags.iter().any(|flag| ["fail", "handshake", "noaddr"].contains(flag));
    let mut line = NodeLine {
        id: (*id).to_owned(),
        host: host.to_owned(),
        port: port.parse().ok()?,
        hostname: if is_hostname { Some(name.to_owned()) } else { None },
        is_self: flags.contains(&"myself"),
        is_master: flags.contains(&"master") && can_be_asked,
        epoch: epoch.parse().ok()?,
        slots: Vec::new(),
        migrating: Vec::new(),
    };
    for word in slots {
        if let Some(word) = word.strip_prefix('[')
            && let Some(migration) = word.strip_suffix(']')
        {
            // A slot that this node is importing is skipped. The line of the other node lists it.
            if let Some((slot, to)) = migration.split_once("->-") {
                line.migrating.push((slot_number(slot)?, to.to_owned()));
            }
            continue;
        }
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        line.slots.push((slot_number(first)?, slot_number(last)?));
    }
    Some(line)
}

fn slot_number(text: &str) -> Option<u16> {
    let slot = text.parse().ok()?;
    if slot < hash_slot::SLOTS { Some(slot) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "07c3 10.0.0.1:7000@17000,node-1 myself,master - 0 0 8 connected 0-5460 9000 [93->-292f] [77-<-e7d1]";

    #[test]
    fn a_node_tells_its_slots_and_those_that_it_gives_away() {
        let own = line(OWN).unwrap();
        assert!(own.is_self && own.is_master);
        assert_eq!(
            (own.slots, own.migrating),
            (vec![(0, 5460), (9000, 9000)], vec![(93, "292f".to_owned())])
        );
        assert_eq!((own.hostname.as_deref(), own.epoch), (Some("node-1"), 8));
    }

    #[test]
    fn nodes_that_cannot_be_asked_are_no_masters() {
        for flags in ["slave", "master,fail", "handshake", "master,noaddr"] {
            let other = line(&format!("292f :0@0 {flags} - 0 0 3 connected")).unwrap();
            assert!(!other.is_master && !other.is_self, "{flags}");
        }
        let with_shard =
            line("292f 10.0.0.2:7001@17001,,shard-id=99 master - 0 0 3 connected 1-2").unwrap();
        assert!(with_shard.is_master && with_shard.hostname.is_none());
    }

    #[test]
    fn what_is_no_such_line_is_left_out() {
        for wrong in [
            "",
            "07c3 10.0.0.1:7000@17000 master",
            "07c3 nowhere master - 0 0 1 connected",
            "a h:1 master - 0 0 1 c 99999",
        ] {
            assert_eq!(line(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_node_is_named_as_the_slot_map_names_its_nodes() {
        let like = Target::parse("redis://10.0.0.9:7009").unwrap();
        let own = line(OWN).unwrap();
        let named =
            |host: &str| target(&own, &like, &[Address::Tcp(host.to_owned(), 7000)]).to_string();
        assert_eq!(named("10.0.0.1"), "10.0.0.1:7000/0");
        assert_eq!(named("node-1"), "node-1:7000/0");
    }
}
