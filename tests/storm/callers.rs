//! Whose the addresses are that MONITOR names. A storm's clients log in as users of their own, so that CLIENT LIST tells.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use redis::{Connection, RedisResult};

use crate::command::{Line, Who};
use crate::support::Server;

/// The users of workers and of idemctl, each with a number behind.
pub const WORKER: &str = "worker-";
pub const OPERATOR: &str = "operator-";

/// The clients of a node.
pub struct Callers {
    node: Connection,
    socket: PathBuf,
    known: HashMap<String, Who>,
    /// Addresses from which somebody logged in.
    logged_in: HashSet<String>,
}

impl Callers {
    /// Asks this server.
    pub fn of(server: &Server) -> Self {
        let (node, socket) = (server.connect(), server.socket());
        Self { node, socket, known: HashMap::new(), logged_in: HashSet::new() }
    }

    /// Who says this from this address.
    pub fn who(&mut self, address: &str, line: &Line<'_>) -> Who {
        if address.starts_with("unix:") {
            return Who::Stranger;
        }
        // An address may be another client's by now, which logs in first.
        if line.is("AUTH") || line.is("HELLO") {
            self.known.remove(address);
            self.logged_in.insert(address.to_owned());
            self.ask();
            return Who::Stranger;
        }
        if let Some(who) = self.known.get(address) {
            return *who;
        }
        self.ask();
        let who = if self.logged_in.contains(address) { Who::Gone } else { Who::Stranger };
        *self.known.entry(address.to_owned()).or_insert(who)
    }

    fn ask(&mut self) {
        let list = self.list().or_else(|_| {
            // A node that changes its role ends its clients' connections.
            let url = format!("unix://{}", self.socket.display());
            self.node = redis::Client::open(url).unwrap().get_connection().unwrap();
            self.list()
        });
        for client in list.unwrap().lines() {
            let field = |name: &str| client.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default();
            let number = |user: &str| field("user=").strip_prefix(user)?.parse().ok();
            let who = match (number(WORKER), number(OPERATOR)) {
                (Some(worker), _) => Who::Worker(worker),
                (_, Some(operator)) => Who::Operator(operator),
                _ if field("flags=").contains('M') => Who::Master,
                // Who has not logged in yet is nobody yet.
                _ => continue,
            };
            self.known.insert(field("addr=").to_owned(), who);
        }
    }

    fn list(&mut self) -> RedisResult<String> {
        redis::cmd("CLIENT").arg("LIST").query(&mut self.node)
    }
}
