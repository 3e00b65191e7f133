//! Whose the addresses are that MONITOR names. A storm's clients log in as users of their own, so that CLIENT LIST tells.

use std::collections::HashMap;
use std::path::PathBuf;

use redis::{Connection, RedisResult};

use crate::command::{Line, Who};
use crate::event;
use crate::stage;
use crate::support::Server;

/// The users of workers and of idemctl, each with a number behind.
pub const WORKER: &str = "worker-";
pub const OPERATOR: &str = "operator-";

/// The clients of a node.
pub struct Callers {
    node: Connection,
    socket: PathBuf,
    known: HashMap<String, Who>,
    /// Addresses from which somebody logged in, and how often they were asked for in vain.
    logged_in: HashMap<String, u32>,
}

/// So often an address is asked for whose client is not there, it seems.
const ASKED: u32 = 5;

/// CLIENT LIST tells the age of a client in whole seconds of a clock that is read ten times a second: an age may be so much too
/// small. In microseconds.
const AGE_IS_LATE: u64 = 1_200_000;

impl Callers {
    /// Asks this server.
    pub fn of(server: &Server) -> Self {
        let (node, socket) = (server.connect(), server.socket());
        Self { node, socket, known: HashMap::new(), logged_in: HashMap::new() }
    }

    /// Who says this from this address.
    pub fn who(&mut self, address: &str, line: &Line<'_>) -> Who {
        if address.starts_with("unix:") {
            return Who::UnclaimedKey;
        }
        // An address may be another client's by now, which logs in first.
        if line.is("AUTH") || line.is("HELLO") {
            self.known.remove(address);
            self.logged_in.insert(address.to_owned(), 0);
            self.ask(line.at);
            return Who::UnclaimedKey;
        }
        if let Some(who) = self.known.get(address) {
            return *who;
        }
        let Some(asked) = self.logged_in.get_mut(address).filter(|asked| **asked < ASKED) else {
            return self.nobody(address, line.at);
        };
        *asked += 1;
        self.ask(line.at);
        self.known.get(address).copied().unwrap_or(Who::Gone)
    }

    /// Who did not log in is a stranger, or the master that the node follows.
    fn nobody(&mut self, address: &str, at: u64) -> Who {
        if self.logged_in.contains_key(address) {
            return Who::Gone;
        }
        self.ask(at);
        *self.known.entry(address.to_owned()).or_insert(Who::UnclaimedKey)
    }

    /// Learns whose the addresses were at this moment of the stream, in microseconds.
    fn ask(&mut self, at: u64) {
        let mut list = self.list();
        while list.is_err() {
            if let Ok(anew) = stage::by_socket(&self.socket) {
                self.node = anew;
            }
            list = self.list();
        }
        for client in list.unwrap_or_default().lines() {
            let field = |name: &str| {
                client.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default()
            };
            let number = |user: &str| field("user=").strip_prefix(user)?.parse().ok();
            let who = match (number(WORKER), number(OPERATOR)) {
                (Some(worker), _) => Who::Worker(worker),
                (_, Some(operator)) => Who::Operator(operator),
                _ if field("flags=").contains('M') => Who::Master,
                // Who has not logged in yet is nobody yet.
                _ => continue,
            };
            // What MONITOR tells may lie seconds behind, and the address may be another client's by now: that one came later. And
            // whose an address was stays so until a line says that somebody logs in there.
            let came = field("age=")
                .parse::<u64>()
                .map_or(0, |age| event::now().saturating_sub(age * 1_000_000));
            if came > at + AGE_IS_LATE {
                continue;
            }
            self.known.entry(field("addr=").to_owned()).or_insert(who);
        }
    }

    fn list(&mut self) -> RedisResult<String> {
        redis::cmd("CLIENT").arg("LIST").query(&mut self.node)
    }
}
