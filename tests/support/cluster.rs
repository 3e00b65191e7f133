//! A cluster of the test's own: masters on ports of the loopback, each with a part of the slots.

use std::process::Command;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{Run, Server, free_port, idemctl, until};

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// The masters of a cluster, and behind them their replicas.
pub struct Cluster {
    nodes: Vec<(Server, u16)>,
    masters: usize,
}

impl Cluster {
    /// Starts so many masters, all slots spread over them evenly.
    pub fn start(masters: usize) -> Self {
        let nodes: Vec<_> = (0..masters).map(|_| node()).collect();
        let cluster = Self { nodes, masters };
        for index in 0..masters {
            let mut connection = cluster.connect(index);
            let slots: Vec<_> = (index * SLOTS / masters..(index + 1) * SLOTS / masters).collect();
            redis::cmd("CLUSTER").arg("ADDSLOTS").arg(&slots).exec(&mut connection).unwrap();
            redis::cmd("CLUSTER")
                .arg("SET-CONFIG-EPOCH")
                .arg(index + 1)
                .exec(&mut connection)
                .unwrap();
            redis::cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(cluster.port(0))
                .exec(&mut connection)
                .unwrap();
        }
        cluster.settles();
        cluster
    }

    /// Starts so many masters, each with a replica that is in step: the replica of the first is the first one behind the
    /// masters, and so on.
    pub fn start_with_replicas(masters: usize) -> Self {
        let mut cluster = Self::start(masters);
        for index in 0..masters {
            cluster.nodes.push(node());
            let mut connection = cluster.connect(masters + index);
            redis::cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(cluster.port(0))
                .exec(&mut connection)
                .unwrap();
        }
        cluster.settles();
        for index in 0..masters {
            let mut replica = cluster.connect(masters + index);
            redis::cmd("CLUSTER")
                .arg("REPLICATE")
                .arg(cluster.id(index))
                .exec(&mut replica)
                .unwrap();
        }
        for index in 0..masters {
            until("a replica is in step", || {
                cluster.info(masters + index).contains("master_link_status:up")
            });
            until("the nodes know the replica", || {
                let replicas = |node| cluster.ask(node, "NODES").matches("slave ").count();
                replicas(index) == masters && replicas(masters + index) == masters
            });
        }
        cluster
    }

    /// Makes a master's replica the master, as an operator does before maintenance, and waits until it is.
    pub fn fail_over(&self, master: usize) {
        self.fail_over_to(self.masters + master);
    }

    /// Makes a replica the master, whichever of the nodes it is.
    pub fn fail_over_to(&self, replica: usize) {
        self.promote(replica, &[b"CLUSTER", b"FAILOVER"]);
    }

    /// Makes a replica the master of its dead master's slots, as an operator does who does not wait for an election. How
    /// long an election takes, and whether there is one at all, depends on how busy the machine is.
    pub fn take_over(&self, replica: usize) {
        self.promote(replica, &[b"CLUSTER", b"FAILOVER", b"TAKEOVER"]);
    }

    /// Sends a replica a command that makes it a master, and waits until it is one. A server gives up a failover that
    /// the other nodes did not agree to within five seconds, so the command is sent again after that.
    fn promote(&self, replica: usize, command: &[&[u8]]) {
        let mut again = Instant::now();
        until("the replica is promoted", || {
            if self.info(replica).contains("role:master") {
                return true;
            }
            if again <= Instant::now() {
                self.node(replica).send::<()>(command);
                again = Instant::now() + Duration::from_secs(6);
            }
            false
        });
    }

    /// Waits until the first node knows another as a master with slots.
    pub fn until_known(&self, index: usize) {
        let port = format!(":{}@", self.port(index));
        until("the first node hears of the new master", || {
            self.ask(0, "NODES").lines().any(|line| {
                line.contains(&port) && line.contains("master") && line.split(' ').count() > 8
            })
        });
    }

    /// Waits until the first node says that another has failed.
    pub fn until_failed(&self, index: usize) {
        let port = format!(":{}@", self.port(index));
        until("the first node says that a dead one has failed", || {
            let nodes = self.ask(0, "NODES");
            nodes.lines().any(|line| line.contains(&port) && line.contains("fail "))
        });
    }

    /// The indexes of the nodes that are masters now.
    pub fn masters_now(&self) -> Vec<usize> {
        let is_master = |index: &usize| {
            std::os::unix::net::UnixStream::connect(self.node(*index).socket()).is_ok()
                && self.info(*index).contains("role:master")
        };
        (0..self.nodes.len()).filter(is_master).collect()
    }

    fn info(&self, index: usize) -> String {
        redis::cmd("INFO").arg("replication").query(&mut self.connect(index)).unwrap()
    }

    /// Waits until every node sees all others and all slots.
    pub fn settles(&self) {
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        let signs = ["cluster_state:ok", "cluster_slots_assigned:16384", &known];
        for index in 0..self.nodes.len() {
            until("the cluster is up", || {
                let info = self.ask(index, "INFO");
                signs.iter().all(|sign| info.contains(sign))
            });
        }
    }

    /// What a node answers to `CLUSTER word`.
    fn ask(&self, index: usize, word: &str) -> String {
        redis::cmd("CLUSTER").arg(word).query(&mut self.connect(index)).unwrap()
    }

    /// A node, by its index.
    pub fn node(&self, index: usize) -> &Server {
        &self.nodes[index].0
    }

    /// Kills a node, as a crash would.
    pub fn kill(&mut self, index: usize) {
        self.nodes[index].0.kill();
    }

    /// A node's port.
    pub fn port(&self, index: usize) -> u16 {
        self.nodes[index].1
    }

    /// A node's id.
    pub fn id(&self, index: usize) -> String {
        self.ask(index, "MYID")
    }

    /// Lets a node's clients come by another port: a way to it. Waits until the first node names that.
    pub fn announce(&self, index: usize, port: u16) {
        redis::cmd("CONFIG")
            .arg("SET")
            .arg("cluster-announce-port")
            .arg(port)
            .exec(&mut self.connect(index))
            .unwrap();
        until("the first node hears of the port", || {
            self.ask(0, "NODES").contains(&format!(":{port}@"))
        });
    }

    /// A connection to one node.
    pub fn connect(&self, index: usize) -> Connection {
        self.nodes[index].0.connect()
    }

    /// The index of the node that serves a Redis key.
    pub fn owner(&self, redis_key: &str) -> usize {
        let slot = usize::from(idemctl::domain::hash_slot::of(redis_key.as_bytes()));
        (0..self.masters).find(|index| slot < (index + 1) * SLOTS / self.masters).unwrap()
    }

    /// `SET key value PX ttl`, where the key belongs; 0 is no TTL.
    pub fn set(&self, redis_key: &str, value: &str, ttl_ms: u64) {
        let mut set = redis::cmd("SET");
        set.arg(redis_key).arg(value);
        if ttl_ms > 0 {
            set.arg("PX").arg(ttl_ms);
        }
        set.exec(&mut self.connect(self.owner(redis_key))).unwrap();
    }

    /// Sets many Redis keys, each where it belongs; `FOREVER` is no TTL.
    pub fn fill<K: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        ttl_ms: u64,
    ) {
        let mut of_node: Vec<_> = (0..self.masters).map(|_| Vec::new()).collect();
        for (redis_key, value) in entries {
            of_node[self.owner(redis_key.as_ref())].push((redis_key.as_ref().to_owned(), value));
        }
        for (index, entries) in
            of_node.into_iter().enumerate().filter(|(_, entries)| !entries.is_empty())
        {
            self.node(index).fill(entries, ttl_ms);
        }
    }

    /// `GET key`, where the key belongs.
    pub fn get(&self, redis_key: &str) -> Option<String> {
        redis::cmd("GET").arg(redis_key).query(&mut self.connect(self.owner(redis_key))).unwrap()
    }

    /// How many Redis keys there are on all nodes.
    pub fn size(&self) -> usize {
        (0..self.masters)
            .map(|index| redis::cmd("DBSIZE").query::<usize>(&mut self.connect(index)).unwrap())
            .sum()
    }

    /// Moves a slot with all that is in it to another node, as `redis-cli --cluster reshard` does: while both serve it.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_to_move(slot, from, to);
        let mut source = self.connect(from);
        loop {
            let keys: Vec<Vec<u8>> = redis::cmd("CLUSTER")
                .arg("GETKEYSINSLOT")
                .arg(slot)
                .arg(10)
                .query(&mut source)
                .unwrap();
            if keys.is_empty() {
                break;
            }
            let mut migrate = redis::cmd("MIGRATE");
            migrate
                .arg("127.0.0.1")
                .arg(self.port(to))
                .arg("")
                .arg(0)
                .arg(5_000)
                .arg("KEYS")
                .arg(keys);
            migrate.exec(&mut source).unwrap();
        }
        for node in [to, from]
            .into_iter()
            .chain((0..self.nodes.len()).filter(|node| ![to, from].contains(node)))
        {
            self.set_slot(slot, node, "NODE", to);
        }
    }

    /// A node that has not joined a cluster: it knows of no slots.
    pub fn not_joined() -> Self {
        Self { nodes: vec![node()], masters: 1 }
    }

    /// Moves Redis keys of a slot that is being moved, and leaves the others where they are.
    pub fn migrate(&self, redis_keys: &[&str], from: usize, to: usize) {
        let mut migrate = redis::cmd("MIGRATE");
        migrate
            .arg("127.0.0.1")
            .arg(self.port(to))
            .arg("")
            .arg(0)
            .arg(5_000)
            .arg("KEYS")
            .arg(redis_keys);
        migrate.exec(&mut self.connect(from)).unwrap();
    }

    /// Kills a master, and makes all others forget it: then no node serves its slots.
    pub fn lose(&mut self, index: usize) {
        let id = self.id(index);
        self.kill(index);
        for other in (0..self.masters).filter(|other| *other != index) {
            redis::cmd("CLUSTER").arg("FORGET").arg(&id).exec(&mut self.connect(other)).unwrap();
        }
        until("nobody serves its slots", || {
            !self.ask(0, "INFO").contains("cluster_slots_assigned:16384")
        });
    }

    /// Opens a slot for moving, and moves nothing yet.
    pub fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        self.set_slot(slot, to, "IMPORTING", from);
        self.set_slot(slot, from, "MIGRATING", to);
    }

    /// Tells a node what another one is to a slot.
    fn set_slot(&self, slot: u16, told: usize, state: &str, other: usize) {
        let mut set = redis::cmd("CLUSTER");
        set.arg("SETSLOT")
            .arg(slot)
            .arg(state)
            .arg(self.id(other))
            .exec(&mut self.connect(told))
            .unwrap();
    }

    /// The slot of a Redis key.
    pub fn slot(&self, redis_key: &str) -> u16 {
        redis::cmd("CLUSTER").arg("KEYSLOT").arg(redis_key).query(&mut self.connect(0)).unwrap()
    }

    /// The binary on the first node.
    pub fn idemctl(&self, words: &[&str]) -> Run {
        self.idemctl_at(0, words)
    }

    /// The binary on the first node, before it runs.
    pub fn command(&self) -> Command {
        let mut command = idemctl(self.nodes[0].0.folder());
        command.args(["-p", &self.port(0).to_string()]);
        command
    }

    /// The binary on a node.
    pub fn idemctl_at(&self, index: usize, words: &[&str]) -> Run {
        self.nodes[0].0.at(self.port(index), words)
    }
}

fn node() -> (Server, u16) {
    let port = free_port();
    let config = [
        format!("port {port}"),
        "bind 127.0.0.1".to_owned(),
        "cluster-enabled yes".to_owned(),
        "cluster-config-file nodes.conf".to_owned(),
        "cluster-node-timeout 3000".to_owned(),
        "cluster-require-full-coverage no".to_owned(),
        "repl-diskless-sync-delay 0".to_owned(),
    ];
    (Server::start_with(&config.each_ref().map(String::as_str)), port)
}
