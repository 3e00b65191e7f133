//! The servers of a storm: one, a cluster, or a service behind Sentinel; and the way to the master of a Redis key.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::cluster::Cluster;
use crate::support::sentinel::Watched;
use crate::support::{Server, free_port};

/// What the users of a storm log in with.
pub const PASSWORD: &str = "pw";

/// Which servers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    One,
    Cluster,
    ClusterWithReplicas,
    Sentinel,
}

impl Mode {
    /// By its name; panics when there is none of that name.
    pub fn named(name: &str) -> Self {
        match name {
            "server" => Self::One,
            "cluster" => Self::Cluster,
            "cluster-replicas" => Self::ClusterWithReplicas,
            "sentinel" => Self::Sentinel,
            other => {
                panic!("no mode is called {other}: server, cluster, cluster-replicas, sentinel")
            }
        }
    }
}

enum Servers {
    One(Server, u16),
    Cluster(Cluster),
    Watched(Watched),
}

/// The servers, and which of them are masters.
pub struct Stage {
    pub mode: Mode,
    servers: Servers,
    /// For each part of the Redis keys the node that has it.
    masters: Vec<AtomicUsize>,
}

const MASTERS: usize = 3;

/// A connection to whatever listens on a socket; a node that changes its role ends its clients' connections.
pub fn by_socket(socket: &Path) -> redis::RedisResult<Connection> {
    redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()
}

impl Stage {
    /// Starts the servers, on which these users may do all.
    pub fn start(mode: Mode, users: &[String]) -> Self {
        let servers = match mode {
            Mode::One => {
                let port = free_port();
                Servers::One(Server::start_with(&[&format!("port {port}"), "bind 127.0.0.1"]), port)
            }
            Mode::Cluster => Servers::Cluster(Cluster::start(MASTERS)),
            Mode::ClusterWithReplicas => Servers::Cluster(Cluster::start_with_replicas(MASTERS)),
            Mode::Sentinel => Servers::Watched(Watched::start(1)),
        };
        let parts = if matches!(servers, Servers::Cluster(_)) { MASTERS } else { 1 };
        let stage = Self { mode, servers, masters: (0..parts).map(AtomicUsize::new).collect() };
        for node in 0..stage.nodes() {
            for user in users {
                let rules = ["on", &format!(">{PASSWORD}"), "~*", "&*", "+@all"];
                redis::cmd("ACL")
                    .arg("SETUSER")
                    .arg(user)
                    .arg(&rules)
                    .exec(&mut stage.node(node).connect())
                    .unwrap();
            }
        }
        stage
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match self.mode {
            Mode::One => 1,
            Mode::Cluster => MASTERS,
            Mode::ClusterWithReplicas => 2 * MASTERS,
            Mode::Sentinel => 2,
        }
    }

    /// A node.
    pub fn node(&self, index: usize) -> &Server {
        match &self.servers {
            Servers::One(server, _) => server,
            Servers::Cluster(cluster) => cluster.node(index),
            Servers::Watched(watched) => watched.server(index),
        }
    }

    fn port(&self, index: usize) -> u16 {
        match &self.servers {
            Servers::One(_, port) => *port,
            Servers::Cluster(cluster) => cluster.port(index),
            Servers::Watched(watched) => watched.port(index),
        }
    }

    /// The other node of a pair; the node itself where it is alone.
    pub fn peer(&self, node: usize) -> usize {
        match self.mode {
            Mode::One | Mode::Cluster => node,
            Mode::ClusterWithReplicas => (node + MASTERS) % (2 * MASTERS),
            Mode::Sentinel => 1 - node,
        }
    }

    /// The node that is the master of a Redis key, as far as is known.
    pub fn master(&self, redis_key: &str) -> usize {
        self.masters[self.part(redis_key)].load(Ordering::Relaxed)
    }

    /// The nodes that are masters, as far as is known.
    pub fn masters(&self) -> Vec<usize> {
        self.masters.iter().map(|master| master.load(Ordering::Relaxed)).collect()
    }

    /// Finds out anew which node is the master of a Redis key.
    pub fn find_master(&self, redis_key: &str) {
        self.find_master_of(self.part(redis_key));
    }

    fn find_master_of(&self, part: usize) {
        let master = match &self.servers {
            Servers::One(..) => 0,
            Servers::Watched(watched) => usize::from(watched.master_port() == watched.port(1)),
            Servers::Cluster(_) if self.mode == Mode::Cluster => part,
            Servers::Cluster(cluster) => cluster
                .masters_now()
                .into_iter()
                .find(|node| node % MASTERS == part)
                .unwrap_or(part),
        };
        self.masters[part].store(master, Ordering::Relaxed);
    }

    fn part(&self, redis_key: &str) -> usize {
        match &self.servers {
            Servers::Cluster(cluster) => cluster.owner(redis_key),
            _ => 0,
        }
    }

    /// A user's connection to a node.
    pub fn connect(&self, node: usize, user: &str) -> redis::RedisResult<Connection> {
        let url = format!("redis://{user}:{PASSWORD}@127.0.0.1:{}", self.port(node));
        let limit = Duration::from_secs(30);
        let connection = redis::Client::open(url)?.get_connection_with_timeout(limit)?;
        connection.set_read_timeout(Some(limit))?;
        Ok(connection)
    }

    /// Where idemctl finds the servers.
    pub fn url(&self) -> String {
        match &self.servers {
            Servers::Watched(watched) => watched.url(),
            _ => format!("redis://127.0.0.1:{}", self.port(0)),
        }
    }

    /// Makes a replica the master, and waits until the one before follows it; gives both, the new one first.
    pub fn fail_over(&self, part: usize) -> (usize, usize) {
        let part = part % self.masters.len();
        let old = self.masters[part].load(Ordering::Relaxed);
        let new = self.peer(old);
        match &self.servers {
            Servers::One(..) => panic!("a single server has no replica"),
            Servers::Watched(watched) => watched.fail_over_to(new),
            Servers::Cluster(cluster) => cluster.fail_over_to(new),
        }
        self.find_master_of(part);
        let since = Instant::now();
        crate::support::until("the old master follows", || {
            // Sentinels that were stopped for two seconds do nothing for the next thirty (TILT).
            if since.elapsed() > Duration::from_secs(20)
                && let Ok(mut node) = by_socket(&self.node(old).socket())
                && matches!(self.servers, Servers::Watched(_))
            {
                let port = self.port(new);
                let _ = redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec(&mut node);
            }
            let info = by_socket(&self.node(old).socket()).and_then(|mut node| {
                redis::cmd("INFO").arg("replication").query::<String>(&mut node)
            });
            info.is_ok_and(|info| {
                info.contains("role:slave") && info.contains("master_link_status:up")
            })
        });
        (new, old)
    }
}
