//! Where a scenario is played with one schema: the server, the time there is, and what came of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::private_servers::Servers;
use super::run::Take;
use crate::domain::schema::Schema;
use crate::domain::simulation::History;
use crate::domain::step::cluster_fit;
use crate::store::{Link, StoreError, Writable};

/// Why a scenario was not played to its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// It says nothing of this schema, and why.
    NotApplicable(String),
    /// The machine was too slow: a lock ended before its moment in the story. It is played again with more time.
    Late,
    /// The server went away or refused service.
    Store(StoreError),
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What playing a scenario gives.
pub(super) type Played<T = ()> = Result<T, Cut>;

/// The Redis keys that may have been left behind on the operator's server.
pub(super) type Left = Rc<RefCell<Vec<Vec<u8>>>>;

/// The idempotency key on a private server, where it meets no other.
const PRIVATE_KEY: &[u8] = b"order-1";

/// How many names are tried for a key that a cluster's node serves.
const MOST_NAMES: usize = 10_000;

/// The operator's server.
#[derive(Clone, Copy)]
pub(super) struct Venue<'s> {
    /// The way to it.
    pub(super) link: &'s Link,
    /// The server, or in a cluster the master that is played on.
    pub(super) target: &'s Writable,
}

/// One scenario, one schema.
pub(super) struct Stage<'s> {
    /// The schema whose service plays, with the TTLs that it plays with.
    pub(super) schema: &'s Schema,
    /// The same schema with its own TTLs: those that are told of.
    own: &'s Schema,
    /// Every schema there is.
    pub(super) all: &'s [Arc<Schema>],
    venue: Venue<'s>,
    /// Where private servers come from.
    pub(super) servers: &'s Servers,
    /// How long a lock lives that is to run out.
    pub(super) lock_ttl: Duration,
    /// How often what depends on chance is played.
    pub(super) repeat: usize,
    /// What chance there is comes from this.
    pub(super) seed: u64,
    left: Left,
    histories: RefCell<Vec<Rc<RefCell<History>>>>,
}

impl<'s> Stage<'s> {
    pub(super) fn new(
        (schema, own, all): (&'s Schema, &'s Schema, &'s [Arc<Schema>]),
        (venue, servers): (Venue<'s>, &'s Servers),
        lock_ttl: Duration,
        (repeat, seed): (usize, u64),
        left: &Left,
    ) -> Self {
        let (left, histories) = (Rc::clone(left), RefCell::default());
        Self { schema, own, all, venue, servers, lock_ttl, repeat, seed, left, histories }
    }

    /// A take on the operator's server, on a key of its own.
    pub(super) async fn take(&self, title: &str) -> Played<Rc<Take<'s>>> {
        let key = self.key()?;
        self.left.borrow_mut().extend(self.schema.redis_keys(&key));
        self.roll(title, key, (self.venue.target, false)).await
    }

    /// A key that the node serves which is played on.
    fn key(&self) -> Played<Vec<u8>> {
        let Venue { link, target } = self.venue;
        if link.is_cluster()
            && let Some(problem) = cluster_fit::problem(self.schema, PRIVATE_KEY)
        {
            return Err(Cut::NotApplicable(format!("this server is a cluster: {problem}")));
        }
        for _ in 0..MOST_NAMES {
            let key = format!("idemctl-simulate-{}", Uuid::new_v4().simple()).into_bytes();
            if link.serves(target, &self.schema.redis_keys(&key)) {
                return Ok(key);
            }
        }
        Err(Cut::NotApplicable("no key was found whose Redis keys one node of the cluster serves".to_owned()))
    }

    /// A take on a private server.
    pub(super) async fn take_on(&self, title: &str, target: &Writable) -> Played<Rc<Take<'s>>> {
        self.roll(title, PRIVATE_KEY.to_vec(), (target, true)).await
    }

    async fn roll(&self, title: &str, key: Vec<u8>, server: (&Writable, bool)) -> Played<Rc<Take<'s>>> {
        let history = Rc::new(RefCell::new(History { take: title.to_owned(), ..History::default() }));
        self.histories.borrow_mut().push(Rc::clone(&history));
        Ok(Rc::new(Take::begin((self.schema, self.own), key, server, self.lock_ttl, history).await?))
    }

    /// What happened in all takes.
    pub(super) fn histories(self) -> Vec<History> {
        self.histories.into_inner().iter().map(|history| history.take()).collect()
    }
}
