//! One run: the story once on one key, the time that passes in it, and what is noted of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::abort::{Abort, Played};
use super::cluster::Cluster;
use super::story::{LONG, Operation};
use crate::domain::race::Strategy;
use crate::domain::record::age::millis;
use crate::domain::record::{Deadline, Expiry, Observation, SeenKey, decode};
use crate::domain::schema::Schema;
use crate::domain::simulation::{Event, History, Told};
use crate::domain::step::{StepReply, next_request};
use crate::sim::content;
use crate::sim::service::{Service, server_ms, words};
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::{Connection, Packed, StoreError, Writable, pack};

pub(super) struct Run<'s> {
    pub(super) service: Service<'s>,
    pub(super) key: Vec<u8>,
    pub(super) target: Writable,
    /// How long a lock lives that is to run out.
    pub(super) lock_ttl: Duration,
    /// How long a lock of the schema lives, in the schema's own time.
    own_lock_ttl: Duration,
    /// How long the record's result lives, in the time of the schema that wrote it.
    own_result_ttl: Cell<Duration>,
    /// The server's time when the run began, in milliseconds since the epoch.
    pub(super) now_ms: u64,
    pub(super) history: Rc<RefCell<History>>,
    /// True on a server of the scenario's own, where whatever happens is a part of the story.
    pub(super) is_private: bool,
    /// Until when the lock that is to run out is held for certain.
    held_until: RefCell<Option<Instant>>,
    cluster: RefCell<Option<Rc<Cluster>>>,
    control: Mutex<Connection>,
    clock: Instant,
}

impl<'s> Run<'s> {
    pub(super) async fn begin(
        schema: &'s Schema,
        own: &Schema,
        key: Vec<u8>,
        target: &Writable,
        is_private: bool,
        lock_ttl: Duration,
        history: Rc<RefCell<History>>,
    ) -> Result<Self, StoreError> {
        let mut control = Connection::connect(target).await?;
        let service = Service::introduce(schema, Strategy::Schema, &mut control).await?;
        let now_ms = server_ms(&control.ask(&pack(["TIME"])).await?);
        Ok(Self {
            service,
            key,
            target: target.clone(),
            lock_ttl,
            own_lock_ttl: own.lock_ttl,
            own_result_ttl: Cell::new(own.result_ttl),
            now_ms,
            history,
            is_private,
            held_until: RefCell::default(),
            cluster: RefCell::default(),
            control: Mutex::new(control),
            clock: Instant::now(),
        })
    }

    /// From here on each call meets the node of its Redis keys.
    pub(super) fn runs_on(&self, cluster: &Rc<Cluster>) {
        *self.cluster.borrow_mut() = Some(Rc::clone(cluster));
    }

    /// On a cluster, makes sure that a call with these Redis keys meets their node.
    pub(super) async fn meets(&self, named: &[Vec<u8>]) -> Played {
        let cluster = self.cluster.borrow().clone();
        match cluster {
            Some(cluster) => cluster.serves(named, &self.schema().redis_keys(&self.key)).await,
            None => Ok(()),
        }
    }

    pub(super) fn schema(&self) -> &'s Schema {
        self.service.schema
    }

    /// How many milliseconds the next request gets the answer that it gets now; `None` for ever.
    pub(super) async fn until(&self) -> Played<Option<u64>> {
        self.most_of_a_long_lock_passes().await?;
        let seen = self.observe().await?;
        let schema = self.schema();
        let readings = decode::read_all(schema, &seen);
        let until = next_request::of(schema, &readings, &seen).until;
        Ok(until.unwrap_or(Expiry::In(0)).millis())
    }

    /// Shortens a long lock that is left at the end of the story, for nobody waits a minute for it here.
    async fn most_of_a_long_lock_passes(&self) -> Played {
        let lock = self.lock();
        self.meets(std::slice::from_ref(&lock)).await?;
        let StepReply::Integer(left) = self.ask(&pack([b"PTTL", &lock[..]])).await? else { return Ok(()) };
        let long = millis(self.lock_ttl).saturating_add(1)..=millis(LONG);
        if u64::try_from(left).is_ok_and(|left| long.contains(&left)) {
            let ms = millis(self.lock_ttl).to_string();
            self.ask(&pack([b"PEXPIRE", &lock[..], ms.as_bytes()])).await?;
            self.note("time", "most of the lock's TTL passes", None, None);
        }
        Ok(())
    }

    fn lock(&self) -> Vec<u8> {
        self.schema().keys[self.schema().lock_role()].template.redis_key(&self.key)
    }

    /// What stands at the record's Redis keys.
    pub(super) async fn observe(&self) -> Played<Observation> {
        let mut keys = Vec::new();
        for redis_key in self.schema().redis_keys(&self.key) {
            self.meets(std::slice::from_ref(&redis_key)).await?;
            let StepReply::Integer(pttl) = self.ask(&pack([b"PTTL", &redis_key[..]])).await? else { continue };
            let content = match content::of_text(self.ask(&pack([b"GET", &redis_key[..]])).await?) {
                Some(content) => content,
                None => content::of_hash(self.ask(&pack([b"HGETALL", &redis_key[..]])).await?),
            };
            keys.push(SeenKey::new(&redis_key, content, Expiry::from_pttl(pttl), Deadline::Unknown));
        }
        Ok(Observation { server_ms: Some(self.time_ms()), atomic: false, keys })
    }

    /// The time by every clock, in milliseconds since the epoch.
    pub(super) fn time_ms(&self) -> u64 {
        self.now_ms + millis(self.clock.elapsed())
    }

    /// How many milliseconds are left of the lock by what the lock holds; `None` where it holds no such moment.
    async fn lapses_in(&self) -> Played<Option<i64>> {
        if !self.schema().lapses() {
            return Ok(None);
        }
        let seen = self.observe().await?;
        let readings = decode::read_all(self.schema(), &seen);
        let lapses = readings[self.schema().lock_role()].decoded().and_then(|value| value.expires_ms);
        let left = |at: u64| at.saturating_sub(self.time_ms());
        Ok(lapses.map(|at| i64::try_from(left(at)).unwrap_or(i64::MAX)))
    }

    /// A time that was played, in the time of the schema: locks and results live much shorter here than at a service.
    pub(super) fn in_the_schemas_time(&self, ms: u64) -> u64 {
        if ms <= millis(self.lock_ttl) {
            return millis(self.own_lock_ttl);
        }
        // A lock that ends by what it holds is not shortened by its TTL.
        if self.schema().lapses() && ms <= millis(LONG) {
            return millis(self.own_lock_ttl);
        }
        let own = millis(self.own_result_ttl.get());
        let played = own.min(millis(TEST_KEYS_LIVE));
        // A Redis key with this much time left was set within this run, with the TTL of a result.
        let passed = millis(self.clock.elapsed()) + 1_000;
        let is_a_results = (played.saturating_sub(passed)..=played).contains(&ms);
        // How long the story took by then is the machine's time, not the schema's.
        if is_a_results { own } else { ms.div_ceil(1_000) * 1_000 }
    }

    /// From here on the record's result is another schema's.
    pub(super) fn has_result_of(&self, other: &Schema) {
        self.own_result_ttl.set(other.result_ttl);
    }

    /// Time passes until the lock is gone.
    pub(super) async fn lock_runs_out(&self) -> Played {
        let lock = self.lock();
        loop {
            let StepReply::Integer(left) = self.ask(&pack([b"PTTL", &lock[..]])).await? else { continue };
            let left = match self.lapses_in().await? {
                Some(0) => break,
                Some(lapses) if left < 0 || lapses < left => lapses,
                _ => left,
            };
            match left {
                -2 => break,
                -1 => return Err(Abort::NotApplicable("its lock never runs out: it has no TTL".to_owned())),
                left if u64::try_from(left).is_ok_and(|left| left > 2 * millis(self.lock_ttl)) => {
                    return Err(Abort::NotApplicable(
                        "its lock does not take the TTL that begin is sent: it outlives the simulation".to_owned(),
                    ));
                }
                left => tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0) + 1)).await,
            }
        }
        self.may_run_out();
        self.note("time", "the lock's TTL ends", None, None);
        Ok(())
    }

    /// Notes that a lock which `lives` that long was asked for at `since`, and was got. Half of that is left for a slow machine.
    pub(super) fn is_held(&self, since: Instant, lives: Duration) {
        // A lock without a TTL never runs out.
        *self.held_until.borrow_mut() = since.checked_add(lives / 2);
    }

    /// Lets time pass: whoever goes on from here reckons with the end of the lock.
    pub(super) fn may_run_out(&self) {
        *self.held_until.borrow_mut() = None;
    }

    /// # Errors
    /// Late: a lock that was to run out later may be gone.
    pub(super) fn in_time(&self) -> Played {
        let held_until = *self.held_until.borrow();
        if held_until.is_some_and(|until| Instant::now() > until) { Err(Abort::Late) } else { Ok(()) }
    }

    pub(super) fn note(&self, actor: &str, step: &str, reply: Option<String>, client: Option<String>) {
        let at_us = u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (actor, step) = (actor.to_owned(), step.to_owned());
        self.history.borrow_mut().events.push(Event { at_us, actor, step, reply, client });
    }

    pub(super) fn remark(&self, note: String) {
        self.history.borrow_mut().notes.push(note);
    }

    pub(super) fn told(&self, operation: Operation, told: Told) {
        self.history.borrow_mut().answer(operation.what, told);
    }

    /// Sends what no worker sends, and tells the sequence of it.
    pub(super) async fn happens(&self, what: &str, request: &Packed) -> Played<StepReply> {
        let reply = self.ask(request).await?;
        self.note("world", what, Some(words(&reply)), None);
        Ok(reply)
    }

    /// Sends what is no part of the story.
    pub(super) async fn ask(&self, request: &Packed) -> Played<StepReply> {
        Ok(self.control.lock().await.ask(request).await?)
    }
}
