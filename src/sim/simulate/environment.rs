//! What a scenario is played with: one schema, the servers, the time that there is, and what came of each run.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::abort::{Abort, Played};
use super::private_servers::Servers;
use super::run::Run;
use crate::domain::schema::Schema;
use crate::domain::simulation::History;
use crate::domain::step::cluster_fit;
use crate::store::{Client, Writable};

/// The Redis keys that may have been left behind on the operator's server.
pub(super) type Left = Rc<RefCell<Vec<Vec<u8>>>>;

/// The idempotency key on a private server, where it meets no other.
const PRIVATE_KEY: &[u8] = b"order-1";

/// How many names are tried for a key that a cluster's node serves.
const MOST_NAMES: usize = 10_000;

#[derive(Clone, Copy)]
pub(super) struct Venue<'s> {
    pub(super) client: &'s Client,
    /// The server, or in a cluster the master on which is played.
    pub(super) target: &'s Writable,
}

pub(crate) struct Environment<'s> {
    /// The schema whose service plays, with the TTLs that it plays with.
    pub(super) schema: &'s Schema,
    /// The schema with its own TTLs, in which times are told.
    pub(super) own: &'s Schema,
    pub(super) all: &'s [Arc<Schema>],
    pub(super) venue: Venue<'s>,
    pub(super) servers: &'s Servers,
    /// How long a lock lives that is to run out.
    pub(super) lock_ttl: Duration,
    pub(super) repeat: usize,
    pub(super) seed: u64,
    pub(super) left: Left,
    pub(super) histories: RefCell<Vec<Rc<RefCell<History>>>>,
}

impl<'s> Environment<'s> {
    /// Begins a run on the operator's server, on a key of its own.
    pub(super) async fn run(&self, title: &str) -> Played<Rc<Run<'s>>> {
        let key = self.key()?;
        self.left.borrow_mut().extend(self.schema.redis_keys(&key));
        self.begin(title, key, self.venue.target, false).await
    }

    /// A key that is served by the node on which the story is played.
    fn key(&self) -> Played<Vec<u8>> {
        let Venue { client, target } = self.venue;
        if client.is_cluster()
            && let Some(problem) = cluster_fit::problem(self.schema, PRIVATE_KEY)
        {
            return Err(Abort::NotApplicable(format!("this server is a cluster: {problem}")));
        }
        for _ in 0..MOST_NAMES {
            let key = format!("idemctl-simulate-{}", Uuid::new_v4().simple()).into_bytes();
            if client.serves(target, &self.schema.redis_keys(&key)) {
                return Ok(key);
            }
        }
        Err(Abort::NotApplicable("no key was found whose Redis keys one node of the cluster serves".to_owned()))
    }

    /// Begins a run on a private server.
    pub(super) async fn run_on(&self, title: &str, target: &Writable) -> Played<Rc<Run<'s>>> {
        self.begin(title, PRIVATE_KEY.to_vec(), target, true).await
    }

    async fn begin(&self, title: &str, key: Vec<u8>, target: &Writable, is_private: bool) -> Played<Rc<Run<'s>>> {
        let history = Rc::new(RefCell::new(History { take: title.to_owned(), ..History::default() }));
        self.histories.borrow_mut().push(Rc::clone(&history));
        let run = Run::begin(self.schema, self.own, key, target, is_private, self.lock_ttl, history).await?;
        Ok(Rc::new(run))
    }

    pub(super) fn histories(self) -> Vec<History> {
        self.histories.into_inner().iter().map(|history| history.take()).collect()
    }
}
