//! Each command to the node of its Redis key.
//!
//! MOVED, ASK and TRYAGAIN mean that nothing was done, so what they answer is sent again, reads and changes alike, at
//! most five times. What was sent and got no reply is never sent again.
//!
//! The client crate's cluster client does send that again: one lost reply made INCR return 2. Without its retries it follows
//! no redirection either, and a SCAN through it asked one node, taken by chance, and showed a part for the whole.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Pipeline, Value};

use super::client::{Client, ClientReply, Topology};
use super::slot_map::{self, SlotMap};
use crate::domain::hash_slot;
use crate::store::connection::Target;
use crate::store::error::StoreError;

/// How often a command is sent on to where it belongs.
const MOST_REDIRECTS: usize = 5;

/// How long a slot is given that is being moved.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a command goes that a node did not execute.
#[derive(Debug, Clone)]
pub(in crate::store) struct Route {
    pub(in crate::store) node: Target,
    /// True when the node is only importing the slot: it serves whoever says ASKING right before.
    pub(in crate::store) asking: bool,
}

impl Client {
    /// The way on after MOVED, ASK or TRYAGAIN for a Redis key; after TRYAGAIN a little later.
    ///
    /// # Errors
    /// The slot map may not be asked for, or no node serves the slot.
    pub(in crate::store) async fn redirected(
        &self,
        error: &StoreError,
        redis_key: &[u8],
    ) -> Result<Route, StoreError> {
        self.learn_after_redirect().await?;
        match error {
            StoreError::Refused { code, why, .. } => self.route(code, why, redis_key).await,
            other => Err(other.clone()),
        }
    }

    /// Asks for the slot map after a redirect. If it cannot be had, the redirect names the node all the same.
    ///
    /// # Errors
    /// The server is not known to be a cluster's.
    async fn learn_after_redirect(&self) -> Result<(), StoreError> {
        let learned = self.learn().await;
        if self.is_cluster() {
            return Ok(());
        }
        Err(learned.err().unwrap_or_else(|| self.needs_slots()))
    }

    pub(in crate::store) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut replies = self.ask_all(&pipeline([command].into_iter())).await?;
        replies.pop().unwrap_or_else(|| Err(self.unexpected("a command")))
    }

    /// Sends commands, in one write a node; each has its own reply or error.
    ///
    /// # Errors
    /// When a node did not answer, or nobody may ask which node is the right one: what the others answered is lost with it.
    pub(in crate::store) async fn ask_all(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<ClientReply>, StoreError> {
        let replies = self.ask_each(commands).await;
        let is_of_all = |error: &&StoreError| error.lost_the_reply() || error.wants_slots();
        let lost = replies.iter().filter_map(|reply| reply.as_ref().err()).find(is_of_all);
        lost.cloned().map_or(Ok(replies), Err)
    }

    /// Sends commands, in one write a node; each has its own reply or error, also where its node did not answer.
    pub(in crate::store) async fn ask_each(&self, commands: &Pipeline) -> Vec<ClientReply> {
        let commands: Vec<&Cmd> = commands.cmd_iter().collect();
        let mut replies = match self.known() {
            Topology::Cluster(map, _) => self.ask_nodes(&commands, &map).await,
            _ => all(self.home.ask_all(pipeline(commands.iter().copied())).await, commands.len()),
        };
        let apart = |reply: &ClientReply| matches!(reply, Err(StoreError::Refused { code, .. }) if code == "CROSSSLOT");
        if replies.iter().any(apart)
            && !self.is_cluster()
            && let Err(why) = self.learn().await
        {
            replies
                .iter_mut()
                .filter(|reply| apart(reply))
                .for_each(|reply| *reply = Err(why.clone()));
        }
        for _ in 0..MOST_REDIRECTS {
            let is_redirect =
                |reply: &ClientReply| reply.as_ref().is_err_and(StoreError::is_redirect);
            let astray: Vec<_> =
                (0..replies.len()).filter(|index| is_redirect(&replies[*index])).collect();
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

    /// Sends each command to the node of its Redis key, to all nodes at a time.
    async fn ask_nodes(&self, commands: &[&Cmd], map: &SlotMap) -> Vec<ClientReply> {
        let mut replies: Vec<Option<ClientReply>> = vec![None; commands.len()];
        let mut groups: Vec<(&Target, Vec<usize>)> = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let redis_key = slot_map::key_of(command);
            let node = redis_key
                .map_or(Some(self.target()), |redis_key| map.master(hash_slot::of(redis_key)));
            match (node, groups.iter_mut().find(|(target, _)| Some(*target) == node)) {
                (Some(_), Some((_, indexes))) => indexes.push(index),
                (Some(node), None) => groups.push((node, vec![index])),
                (None, _) => {
                    replies[index] = Some(Err(self.unserved(redis_key.unwrap_or_default())))
                }
            }
        }
        let asked = groups.iter().map(|(target, indexes)| {
            let commands = pipeline(indexes.iter().map(|index| commands[*index]));
            self.ask_node(target, commands, indexes.len())
        });
        for ((_, indexes), answered) in groups.iter().zip(join_all(asked).await) {
            for (index, reply) in indexes.iter().zip(answered) {
                replies[*index] = Some(reply);
            }
        }
        replies
            .into_iter()
            .map(|reply| reply.unwrap_or_else(|| Err(self.unexpected("a pipeline"))))
            .collect()
    }

    /// Sends so many commands to one node.
    pub(in crate::store) async fn ask_node(
        &self,
        node: &Target,
        commands: Pipeline,
        count: usize,
    ) -> Vec<ClientReply> {
        match self.node(node).await {
            Ok(node) => all(node.ask_all(commands).await, count),
            Err(error) => vec![Err(error); count],
        }
    }

    /// Sends commands on that were answered by MOVED, ASK or TRYAGAIN.
    async fn send_on(&self, commands: &[&Cmd], astray: &[usize], replies: &mut [ClientReply]) {
        if let Err(why) = self.learn_after_redirect().await {
            astray.iter().for_each(|index| replies[*index] = Err(why.clone()));
            return;
        }
        let mut silent: Vec<(Target, StoreError)> = Vec::new();
        for index in astray {
            let Err(StoreError::Refused { code, why, .. }) = &replies[*index] else { continue };
            let redis_key = slot_map::key_of(commands[*index]).unwrap_or_default();
            replies[*index] = match self.route(code, why, redis_key).await {
                // Nobody waits twice for the same node.
                Ok(route) => match silent.iter().find(|(known, _)| *known == route.node) {
                    Some((_, error)) => Err(error.clone()),
                    None => {
                        let mut asking = redis::pipe();
                        if route.asking {
                            asking.cmd("ASKING").ignore();
                        }
                        asking.add_command(commands[*index].clone());
                        let reply = self.ask_node(&route.node, asking, 1).await.pop();
                        let reply = reply.unwrap_or_else(|| Err(self.unexpected("a command")));
                        let lost = reply.as_ref().err().filter(|error| error.lost_the_reply());
                        silent.extend(lost.map(|error| (route.node, error.clone())));
                        reply
                    }
                },
                Err(error) => Err(error),
            };
        }
    }

    /// Where a command on this Redis key is to go that was answered so.
    async fn route(&self, code: &str, why: &str, redis_key: &[u8]) -> Result<Route, StoreError> {
        Ok(match (code, slot_map::redirect(why, self.target())) {
            ("MOVED", Some((slot, node))) => {
                self.change(|topology| {
                    if let Topology::Cluster(map, _) = topology {
                        Arc::make_mut(map).moved(slot, node.clone());
                    }
                });
                Route { node, asking: false }
            }
            ("ASK", Some((_, node))) => Route { node, asking: true },
            _ => {
                tokio::time::sleep(PAUSE).await;
                Route { node: self.master_of(redis_key).await?, asking: false }
            }
        })
    }
}

/// Why a command was sent from node to node and executed by none: its keys are on either side of a move.
pub(in crate::store) fn half_moved(error: &StoreError, redis_key: &[u8]) -> StoreError {
    let StoreError::Refused { target, place, .. } = error else { return error.clone() };
    let slot = hash_slot::of(redis_key);
    let why = format!(
        "slot {slot} is being moved, and a command of several keys has to wait until that is done"
    );
    StoreError::Refused { target: target.clone(), code: "TRYAGAIN".to_owned(), why, place: *place }
}

/// The replies of one node; its error for each where it did not answer.
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
