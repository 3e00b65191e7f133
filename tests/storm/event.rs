//! What happens in a storm, from every side, in the order of the one clock that all have.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::command::{Command, Who};
use crate::judge::Rule;
use crate::run::Ended;

/// Something that happened.
#[derive(Debug)]
pub struct Event {
    /// Microseconds since the epoch.
    pub at: u64,
    pub what: What,
}

/// What happened.
#[derive(Debug)]
pub enum What {
    /// A node executed a command.
    Command { node: usize, who: Who, command: Command },
    /// Nothing more comes of a node.
    Silent { node: usize },
    /// From here on a worker does nothing about a Redis key any more, whatever stands there.
    Dead { worker: usize, key: Vec<u8> },
    /// A worker is done with a Redis key: what it wrote there before is nobody's, should a failover bring it back.
    Done { worker: usize, key: Vec<u8> },
    /// A run of idemctl is about to start.
    Begins { operator: usize, rule: Rule },
    /// Its question is on the terminal.
    Asks { operator: usize },
    /// It is over.
    Ends { operator: usize, ended: Ended },
    /// The stream of a node broke off and goes on: a part of it may be lost.
    Missed { node: usize },
    /// A master is about to be replaced.
    FailsOver,
    /// A replica holds what its master holds.
    Follows { master: usize, replica: usize },
}

impl Event {
    /// What happens now.
    pub fn now(what: What) -> Self {
        Self { at: now(), what }
    }
}

/// Microseconds since the epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}
