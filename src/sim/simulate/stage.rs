//! Where a scenario is played with one schema: the server, the time there is, and what came of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::schema::Schema;
use crate::domain::simulation::History;
use crate::sim::simulate::servers::Servers;
use crate::sim::simulate::take::Take;
use crate::store::{StoreError, Writable};

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

/// One scenario, one schema.
pub(super) struct Stage<'s> {
    /// The schema whose service plays.
    pub(super) schema: &'s Schema,
    /// Every schema there is.
    pub(super) all: &'s [Arc<Schema>],
    /// The server to play on.
    pub(super) target: Writable,
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
        (schema, all): (&'s Schema, &'s [Arc<Schema>]),
        (target, servers): (&Writable, &'s Servers),
        lock_ttl: Duration,
        (repeat, seed): (usize, u64),
        left: &Left,
    ) -> Self {
        let (target, left, histories) = (target.clone(), Rc::clone(left), RefCell::default());
        Self { schema, all, target, servers, lock_ttl, repeat, seed, left, histories }
    }

    /// A take on the operator's server, on a key of its own.
    pub(super) async fn take(&self, title: &str) -> Played<Rc<Take<'s>>> {
        let key = format!("idemctl-simulate-{}", Uuid::new_v4().simple()).into_bytes();
        self.left.borrow_mut().extend(self.schema.redis_keys(&key));
        self.roll(title, key, &self.target).await
    }

    /// A take on a private server.
    pub(super) async fn take_on(&self, title: &str, target: &Writable) -> Played<Rc<Take<'s>>> {
        self.roll(title, PRIVATE_KEY.to_vec(), target).await
    }

    async fn roll(&self, title: &str, key: Vec<u8>, target: &Writable) -> Played<Rc<Take<'s>>> {
        let history = Rc::new(RefCell::new(History { take: title.to_owned(), ..History::default() }));
        self.histories.borrow_mut().push(Rc::clone(&history));
        Ok(Rc::new(Take::begin(self.schema, key, target, self.lock_ttl, history).await?))
    }

    /// What happened in all takes.
    pub(super) fn histories(self) -> Vec<History> {
        self.histories.into_inner().iter().map(|history| history.take()).collect()
    }
}
