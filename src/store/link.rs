//! The way to a server, or to the nodes of a cluster: each command goes to the node of its Redis key.
//!
//! Whether a server is a cluster's node is found out where it matters: when it answers so, or when somebody has to know.
//! MOVED, ASK and TRYAGAIN mean that nothing was done, so what they answer is sent again, reads and changes alike, at
//! most five times. What was sent and got no reply is never sent again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Pipeline, Value};

use super::access::{Permit, Writable};
use super::connect::{self, Node};
use super::error::StoreError;
use super::read::Reader;
use super::reply;
use super::slots::{self, SlotMap};
use super::target::{Address, Target};
use super::write::Writer;
use crate::domain::age::millis;
use crate::domain::slot;

/// How often a command is sent on to where it belongs.
const MOST_REDIRECTS: usize = 5;

/// How long a slot is given that is being moved.
const PAUSE: Duration = Duration::from_millis(50);

/// The reply to one command.
pub(super) type Reply = Result<Value, StoreError>;

/// A connection to a server, or to the nodes of a cluster.
#[derive(Clone)]
pub struct Link {
    home: Node,
    topology: Arc<Mutex<Topology>>,
    /// The digests of scripts that every master was told, by their texts; `None` where scripts may not be loaded.
    digests: Arc<Mutex<HashMap<&'static str, Option<String>>>>,
}

/// What is known of the servers behind a link.
#[derive(Clone, Default)]
enum Topology {
    /// Nobody had to know yet.
    #[default]
    Unknown,
    /// One server, with all Redis keys.
    Standalone,
    /// A cluster, and the connections to its nodes by their names.
    Cluster(Arc<SlotMap>, HashMap<String, Node>),
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
    Ok(Link { home: connect::connect(&master).await?, topology: Arc::default(), digests: Arc::default() })
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

    /// The way to the service's master of now, where Sentinels say that it is another than this; `None` where it is the
    /// same, or there are no Sentinels.
    ///
    /// # Errors
    /// No master is to be had.
    pub(super) async fn moved(&self) -> Result<Option<Self>, StoreError> {
        let Some(sentinels) = &self.target().sentinels else { return Ok(None) };
        let master = sentinels.master(self.target()).await?;
        if master.address == self.target().address {
            return Ok(None);
        }
        connect(&master).await.map(Some)
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
                map.master(slot::of(redis_key)).cloned().ok_or_else(|| self.unserved(redis_key))
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
            Topology::Cluster(map, _) => redis_keys.iter().all(|key| map.master(slot::of(key)) == Some(node)),
            _ => true,
        }
    }

    /// True once it is known to be a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.known(), Topology::Cluster(..))
    }

    /// True when it is known to be a cluster, and these Redis keys are in several slots of it.
    pub(super) fn parts(&self, redis_keys: &[Vec<u8>]) -> bool {
        redis_keys.len() > 1 && self.is_cluster() && !slot::is_one(redis_keys.iter().map(Vec::as_slice))
    }

    /// The slot map as it is known; `None` where it is no cluster.
    pub(super) fn slot_map(&self) -> Option<Arc<SlotMap>> {
        match self.known() {
            Topology::Cluster(map, _) => Some(map),
            _ => None,
        }
    }

    /// Asks for the slot map, again where it is known.
    ///
    /// # Errors
    /// As every read; of a cluster whose user may not ask for it.
    pub(super) async fn learn(&self) -> Result<(), StoreError> {
        let reply = self.home.ask(redis::cmd("CLUSTER").arg("SLOTS")).await;
        let map = match reply {
            Ok(slots) => Some(SlotMap::parse(slots, self.target()).ok_or_else(|| self.unexpected("CLUSTER SLOTS"))?),
            Err(error) if error.lost_the_reply() => return Err(error),
            // No cluster, or nobody who may ask: then the replies tell.
            Err(_) => None,
        };
        self.change(|topology| {
            *topology = match (map, std::mem::take(topology)) {
                (Some(map), Topology::Cluster(_, nodes)) => Topology::Cluster(Arc::new(map), nodes),
                (Some(map), _) => Topology::Cluster(Arc::new(map), HashMap::new()),
                (None, _) => Topology::Standalone,
            };
        });
        Ok(())
    }

    /// A replica of a master, which is in step and answers; `None` where there is none, or nobody may ask.
    pub(super) async fn replica_of(&self, master: &Target) -> Option<Target> {
        let role = self.node(master).await.ok()?.ask(&redis::cmd("ROLE")).await.ok()?;
        let replicas = reply::array(reply::array(role)?.into_iter().nth(2)?)?;
        for replica in replicas {
            let mut parts = reply::array(replica)?.into_iter();
            let (host, port) = (reply::word(parts.next()?)?, reply::word(parts.next()?)?.parse().ok()?);
            let target = Target { address: Address::Tcp(host, port), ..master.clone() };
            if connect::connect(&target).await.is_ok() {
                return Some(target);
            }
        }
        None
    }

    /// Waits until so many replicas of every master have what was changed through this link.
    ///
    /// # Errors
    /// Not so many had it in time, or the server could not be asked.
    pub(super) async fn replicated(&self, wanted: u32, wait: Duration) -> Result<(), StoreError> {
        for master in self.masters().await? {
            let node = self.node(&master).await?;
            let have = node.ask(redis::cmd("WAIT").arg(wanted).arg(millis(wait))).await?;
            let have = reply::integer(&have).unwrap_or(0);
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
    pub(super) async fn digest(&self, script: &'static str) -> Result<Option<String>, StoreError> {
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

    /// Sends one command.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command.clone());
        let mut replies = self.ask_all(&pipeline).await?;
        replies.pop().unwrap_or_else(|| Err(self.unexpected("a command")))
    }

    /// Sends commands, in one write a node; each has its own reply or error.
    ///
    /// # Errors
    /// When a node could not be asked at all: what the others answered is lost with it.
    pub(super) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Reply>, StoreError> {
        let commands: Vec<&Cmd> = commands.cmd_iter().collect();
        let mut replies = match self.known() {
            Topology::Cluster(map, _) => self.ask_nodes(&commands, &map).await?,
            _ => self.home.ask_all(pipeline(commands.iter().copied())).await?,
        };
        let apart = |reply: &Reply| matches!(reply, Err(StoreError::Refused { code, .. }) if code == "CROSSSLOT");
        if replies.iter().any(apart) && !self.is_cluster() {
            self.learn().await?;
        }
        for _ in 0..MOST_REDIRECTS {
            let is_redirect = |reply: &Reply| reply.as_ref().is_err_and(StoreError::is_redirect);
            let lost: Vec<_> = (0..replies.len()).filter(|index| is_redirect(&replies[*index])).collect();
            if lost.is_empty() {
                break;
            }
            self.send_on(&commands, &lost, &mut replies).await?;
        }
        Ok(replies)
    }

    /// Sends each command to the node of its Redis key, to all nodes at a time.
    async fn ask_nodes(&self, commands: &[&Cmd], map: &SlotMap) -> Result<Vec<Reply>, StoreError> {
        let mut groups: Vec<(Target, Vec<usize>)> = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let node = match slots::key_of(command) {
                Some(redis_key) => map.master(slot::of(redis_key)).ok_or_else(|| self.unserved(redis_key))?,
                None => self.target(),
            };
            match groups.iter_mut().find(|(target, _)| target == node) {
                Some((_, indexes)) => indexes.push(index),
                None => groups.push((node.clone(), vec![index])),
            }
        }
        let mut replies: Vec<Option<Reply>> = vec![None; commands.len()];
        let asked = groups.iter().map(|(target, indexes)| async move {
            self.node(target).await?.ask_all(pipeline(indexes.iter().map(|index| commands[*index]))).await
        });
        for ((_, indexes), answered) in groups.iter().zip(join_all(asked).await) {
            for (index, reply) in indexes.iter().zip(answered?) {
                replies[*index] = Some(reply);
            }
        }
        Ok(replies.into_iter().map(|reply| reply.unwrap_or_else(|| Err(self.unexpected("a pipeline")))).collect())
    }

    /// Sends commands on that were answered by MOVED, ASK or TRYAGAIN.
    async fn send_on(&self, commands: &[&Cmd], lost: &[usize], replies: &mut [Reply]) -> Result<(), StoreError> {
        self.learn().await?;
        if !self.is_cluster() {
            let why = "this is a node of a cluster, and the user may not ask which node serves a key: it needs +cluster|slots";
            return Err(StoreError::Permission { target: self.name(), why: why.to_owned() });
        }
        for index in lost {
            let Err(StoreError::Refused { code, why, .. }) = &replies[*index] else { continue };
            let redirect = slots::redirect(why, self.target());
            let mut asking = redis::pipe();
            let target = match (code.as_str(), redirect) {
                ("MOVED", Some((slot, target))) => {
                    self.change(|topology| {
                        if let Topology::Cluster(map, _) = topology {
                            Arc::make_mut(map).moved(slot, target.clone());
                        }
                    });
                    target
                }
                ("ASK", Some((_, target))) => {
                    asking.cmd("ASKING").ignore();
                    target
                }
                _ => {
                    tokio::time::sleep(PAUSE).await;
                    self.master_of(slots::key_of(commands[*index]).unwrap_or_default()).await?
                }
            };
            asking.add_command(commands[*index].clone());
            if let Some(reply) = self.node(&target).await?.ask_all(asking).await?.pop() {
                replies[*index] = reply;
            }
        }
        Ok(())
    }

    /// The connection to a node.
    async fn node(&self, target: &Target) -> Result<Node, StoreError> {
        if target == self.target() {
            return Ok(self.home.clone());
        }
        let name = target.to_string();
        if let Topology::Cluster(_, nodes) = self.known()
            && let Some(node) = nodes.get(&name)
        {
            return Ok(node.clone());
        }
        let node = connect::connect(target).await?;
        self.change(|topology| {
            if let Topology::Cluster(_, nodes) = topology {
                nodes.insert(name, node.clone());
            }
        });
        Ok(node)
    }

    /// What did not speak the protocol before anything was read may be no Redis at all.
    pub(super) async fn look_closer(&self, error: StoreError) -> StoreError {
        self.home.look_closer(error).await
    }

    pub(super) fn error(&self, error: &redis::RedisError) -> StoreError {
        self.home.error(error)
    }

    pub(super) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.name(), asked: asked.to_owned() }
    }

    fn unserved(&self, redis_key: &[u8]) -> StoreError {
        let why = format!("no node serves slot {}", slot::of(redis_key));
        StoreError::Refused { target: self.name(), code: "CLUSTERDOWN".to_owned(), why }
    }

    fn known(&self) -> Topology {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Topology)) {
        change(&mut self.topology.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn pipeline<'a>(commands: impl Iterator<Item = &'a Cmd>) -> Pipeline {
    let mut pipeline = redis::pipe();
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline
}
