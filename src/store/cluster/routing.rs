//! Sends each command to the node of its Redis key.
//!
//! MOVED, ASK and TRYAGAIN mean that the node did not execute the command. idemctl therefore sends
//! reads and changes again after them, at most five times. It never resends a command whose reply
//! was lost.
//!
//! The client crate's cluster client does resend such commands: with it, one lost reply made INCR
//! return 2. With its retries disabled, it does not follow redirects either. A SCAN through it read
//! one random node and presented that part as the whole keyspace.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Pipeline, Value};

use super::client::{Client, ClientReply, Topology};
use super::slot_map::{self, SlotMap};
use crate::domain::hash_slot;
use crate::store::connection::Target;
use crate::store::error::StoreError;

/// How many redirects a command may follow. If it needs more, its keys are on both sides of a
/// migration.
const MAX_REDIRECTS: usize = 5;

/// How long to wait before the next attempt on a slot that is being moved.
const PAUSE: Duration = Duration::from_millis(50);

/// The next node for a command that was redirected.
#[derive(Debug, Clone)]
pub(in crate::store) struct Route {
    pub(in crate::store) node: Target,
    /// True if the node is still importing the slot: it serves the slot only directly after ASKING.
    pub(in crate::store) asking: bool,
}

impl Client {
    /// The next node for a Redis key after MOVED, ASK or TRYAGAIN; after TRYAGAIN, this waits for a
    /// moment first.
    ///
    /// # Errors
    /// The Redis user may not ask for the slot map, or no node serves the slot.
    pub(in crate::store) async fn redirected(
        &self,
        error: &StoreError,
        redis_key: &[u8],
    ) -> Result<Route, StoreError> {
        self.learn_after_redirect().await?;
        match error {
            StoreError::ErrorReply { code, why, .. } => self.route(code, why, redis_key).await,
            other => Err(other.clone()),
        }
    }

    /// Fetches the slot map after a redirect. A failure is acceptable, because the redirect names
    /// the node as well.
    ///
    /// # Errors
    /// The server is not known to be a node of a cluster.
    async fn learn_after_redirect(&self) -> Result<(), StoreError> {
        let learned = self.learn().await;
        if self.is_cluster() {
            return Ok(());
        }
        Err(learned.err().unwrap_or_else(|| self.slot_map_forbidden()))
    }

    pub(in crate::store) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut replies = self.ask_all(&pipeline([command].into_iter())).await?;
        replies.pop().unwrap_or_else(|| Err(self.unexpected("a command")))
    }

    /// Sends commands in one write per node and returns a reply or an error for each.
    ///
    /// # Errors
    /// A node did not answer, or the Redis user may not ask which node serves a key. The replies of
    /// the other nodes are then lost.
    pub(in crate::store) async fn ask_all(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<ClientReply>, StoreError> {
        let replies = self.ask_each(commands).await;
        for reply in &replies {
            if let Err(error) = reply
                && (error.lost_the_reply() || error.lacks_slot_map_right())
            {
                return Err(error.clone());
            }
        }
        Ok(replies)
    }

    /// Like [`Self::ask_all`], but if a node does not answer, only its commands get the error.
    pub(in crate::store) async fn ask_each(&self, commands: &Pipeline) -> Vec<ClientReply> {
        let commands: Vec<&Cmd> = commands.cmd_iter().collect();
        let mut replies = match self.known() {
            Topology::Cluster(map, _) => self.ask_nodes(&commands, &map).await,
            _ => all(
                self.home.ask_pipeline(pipeline(commands.iter().copied())).await,
                commands.len(),
            ),
        };
        // Only a cluster node answers CROSSSLOT, so the topology has to be learned now.
        if replies.iter().any(is_cross_slot)
            && !self.is_cluster()
            && let Err(why) = self.learn().await
        {
            for reply in &mut replies {
                if is_cross_slot(reply) {
                    *reply = Err(why.clone());
                }
            }
        }
        for _ in 0..MAX_REDIRECTS {
            let mut astray = Vec::new();
            for (index, reply) in replies.iter().enumerate() {
                if let Err(error) = reply
                    && error.is_redirect()
                {
                    astray.push(index);
                }
            }
            if astray.is_empty() {
                return replies;
            }
            self.send_on(&commands, &astray, &mut replies).await;
        }
        for (command, reply) in commands.iter().zip(&mut replies) {
            if let Err(error) = reply
                && error.is_redirect()
            {
                *error = half_moved(error, slot_map::key_of(command).unwrap_or_default());
            }
        }
        replies
    }

    /// Sends each command to the node of its Redis key, to all nodes concurrently.
    async fn ask_nodes(&self, commands: &[&Cmd], map: &SlotMap) -> Vec<ClientReply> {
        let mut replies: Vec<Option<ClientReply>> = vec![None; commands.len()];
        let mut groups: Vec<(&Target, Vec<usize>)> = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            // Any node may answer a command without a key, so the node that the operator named
            // does.
            let node = match slot_map::key_of(command) {
                None => self.target(),
                Some(redis_key) => match map.master(hash_slot::of(redis_key)) {
                    Some(master) => master,
                    None => {
                        replies[index] = Some(Err(self.unserved(redis_key)));
                        continue;
                    }
                },
            };
            match groups.iter_mut().find(|(target, _)| *target == node) {
                Some((_, indexes)) => indexes.push(index),
                None => groups.push((node, vec![index])),
            }
        }
        let mut requests = Vec::with_capacity(groups.len());
        for (target, indexes) in &groups {
            let of_node = pipeline(indexes.iter().map(|index| commands[*index]));
            requests.push(self.ask_node(target, of_node, indexes.len()));
        }
        for ((_, indexes), answered) in groups.iter().zip(join_all(requests).await) {
            for (index, reply) in indexes.iter().zip(answered) {
                replies[*index] = Some(reply);
            }
        }
        replies
            .into_iter()
            .map(|reply| reply.unwrap_or_else(|| Err(self.unexpected("a pipeline"))))
            .collect()
    }

    /// Sends `count` commands to one node.
    pub(in crate::store) async fn ask_node(
        &self,
        node: &Target,
        commands: Pipeline,
        count: usize,
    ) -> Vec<ClientReply> {
        match self.node(node).await {
            Ok(node) => all(node.ask_pipeline(commands).await, count),
            Err(error) => vec![Err(error); count],
        }
    }

    /// Follows the redirects of the commands at `astray`.
    async fn send_on(&self, commands: &[&Cmd], astray: &[usize], replies: &mut [ClientReply]) {
        if let Err(why) = self.learn_after_redirect().await {
            for index in astray {
                replies[*index] = Err(why.clone());
            }
            return;
        }
        let mut silent: Vec<(Target, StoreError)> = Vec::new();
        for index in astray {
            let Err(StoreError::ErrorReply { code, why, .. }) = &replies[*index] else { continue };
            let redis_key = slot_map::key_of(commands[*index]).unwrap_or_default();
            let route = match self.route(code, why, redis_key).await {
                Ok(route) => route,
                Err(error) => {
                    replies[*index] = Err(error);
                    continue;
                }
            };
            // Fail at once for a node that already timed out, so that idemctl waits only once per
            // node.
            if let Some((_, error)) = silent.iter().find(|(known, _)| *known == route.node) {
                replies[*index] = Err(error.clone());
                continue;
            }
            let mut asking = redis::pipe();
            if route.asking {
                asking.cmd("ASKING").ignore();
            }
            asking.add_command(commands[*index].clone());
            let reply = match self.ask_node(&route.node, asking, 1).await.pop() {
                Some(reply) => reply,
                None => Err(self.unexpected("a command")),
            };
            if let Err(error) = &reply
                && error.lost_the_reply()
            {
                silent.push((route.node, error.clone()));
            }
            replies[*index] = reply;
        }
    }

    /// The next node for a command on this Redis key that was answered with `code` and `why`.
    async fn route(&self, code: &str, why: &str, redis_key: &[u8]) -> Result<Route, StoreError> {
        Ok(match (code, slot_map::redirect(why, self.target())) {
            ("MOVED", Some((slot, node))) => {
                self.update_topology(|topology| {
                    if let Topology::Cluster(map, _) = topology {
                        Arc::make_mut(map).moved(slot, node.clone());
                    }
                });
                Route { node, asking: false }
            }
            ("ASK", Some((_, node))) => Route { node, asking: true },
            // TRYAGAIN names no node. The slot is being moved, so its keys may soon be on one node.
            _ => {
                tokio::time::sleep(PAUSE).await;
                Route { node: self.master_of(redis_key).await?, asking: false }
            }
        })
    }
}

/// The error for a command that was redirected too often, because its keys are on both sides of a
/// migration.
pub(in crate::store) fn half_moved(error: &StoreError, redis_key: &[u8]) -> StoreError {
    let StoreError::ErrorReply { target, refused_at, .. } = error else { return error.clone() };
    let slot = hash_slot::of(redis_key);
    let why = format!(
        "slot {slot} is being moved, and a command of several keys has to wait until that is done"
    );
    StoreError::ErrorReply {
        target: target.clone(),
        code: "TRYAGAIN".to_owned(),
        why,
        refused_at: *refused_at,
    }
}

/// True if a node refused a command because its keys are in different slots.
fn is_cross_slot(reply: &ClientReply) -> bool {
    matches!(reply, Err(StoreError::ErrorReply { code, .. }) if code == "CROSSSLOT")
}

/// The replies of one node, or its error once per command if it did not answer.
fn all(answered: Result<Vec<ClientReply>, StoreError>, count: usize) -> Vec<ClientReply> {
    answered.unwrap_or_else(|error| vec![Err(error); count])
}

fn pipeline<'a>(commands: impl Iterator<Item = &'a Cmd>) -> Pipeline {
    let mut pipeline = redis::pipe();
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline
}
