//! A node of a cluster that owns the slots of one call and no others, as if every slot had a node of its own.
//!
//! A real cluster spreads its slots over a few nodes, so that a script with keys in several slots runs all the same where its
//! keys happen to meet on one node. Here such a script is always refused.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::abort::{Abort, Played};
use super::private_servers::{PrivateServer, Servers, password};
use crate::domain::step::StepReply;
use crate::store::{Connection, Writable, pack};

/// How long a node may take to serve; it takes some two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Cluster {
    server: PrivateServer,
    connection: Mutex<Connection>,
    owned: RefCell<Vec<i64>>,
    /// The Redis keys of the last call with their slots, and whether the call names them.
    last: RefCell<Vec<(String, i64, bool)>>,
}

impl Cluster {
    /// Starts the node, and waits until it serves.
    pub(super) async fn start(servers: &Servers) -> Played<Self> {
        let config = ["cluster-enabled yes", "cluster-require-full-coverage no", "cluster-node-timeout 2000"];
        let server = servers.start_with_port(&config, &password()).await?;
        let connection = Connection::connect(&server.target).await?;
        let cluster =
            Self { server, connection: Mutex::new(connection), owned: RefCell::default(), last: RefCell::default() };
        cluster.own(&[0]).await?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let StepReply::Text(info) = cluster.ask(&["CLUSTER", "INFO"]).await? else { break };
            if String::from_utf8_lossy(&info).contains("cluster_state:ok") {
                return Ok(cluster);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Abort::NotApplicable("a private node with cluster-enabled did not come up".to_owned()))
    }

    pub(super) fn target(&self) -> &Writable {
        &self.server.target
    }

    /// Makes this the node of a call that names some of a record's Redis keys; the record's other Redis keys are elsewhere,
    /// unless they share a slot.
    pub(super) async fn serves(&self, named: &[Vec<u8>], record: &[Vec<u8>]) -> Played {
        let mut last = Vec::new();
        for redis_key in named.iter().chain(record.iter().filter(|redis_key| !named.contains(redis_key))) {
            let slot = self.slot(redis_key).await?;
            last.push((String::from_utf8_lossy(redis_key).into_owned(), slot, named.contains(redis_key)));
        }
        let slots: Vec<_> = last.iter().filter(|(_, _, is_named)| *is_named).map(|(_, slot, _)| *slot).collect();
        *self.last.borrow_mut() = last;
        self.own(&slots).await
    }

    /// Where the Redis keys of the last call are, when they are not all in one slot.
    pub(super) fn slots(&self) -> Option<String> {
        let last = self.last.borrow();
        let (_, first, _) = last.first()?;
        if last.iter().all(|(_, slot, _)| slot == first) {
            return None;
        }
        let one = |(redis_key, slot, is_named): &(String, i64, bool)| {
            let unnamed = if *is_named { "" } else { ", not in KEYS" };
            format!("{redis_key} is in slot {slot}{unnamed}")
        };
        Some(last.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    async fn own(&self, slots: &[i64]) -> Played {
        let before = self.owned.replace(slots.to_vec());
        let mut fresh: Vec<_> = slots.iter().filter(|slot| !before.contains(slot)).map(i64::to_string).collect();
        fresh.dedup();
        let stale: Vec<_> = before.iter().filter(|slot| !slots.contains(slot)).map(i64::to_string).collect();
        // First the new ones: without any slot the node would be down for a moment.
        for (command, slots) in [("ADDSLOTS", fresh), ("DELSLOTS", stale)] {
            if !slots.is_empty() {
                let words: Vec<_> = ["CLUSTER", command].into_iter().chain(slots.iter().map(String::as_str)).collect();
                self.ask(&words).await?;
            }
        }
        Ok(())
    }

    async fn slot(&self, redis_key: &[u8]) -> Played<i64> {
        match self.connection.lock().await.ask(&pack([b"CLUSTER", b"KEYSLOT", redis_key])).await? {
            StepReply::Integer(slot) => Ok(slot),
            _ => Ok(0),
        }
    }

    async fn ask(&self, words: &[&str]) -> Played<StepReply> {
        Ok(self.connection.lock().await.ask(&pack(words)).await?)
    }
}
