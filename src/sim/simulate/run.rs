//! One run of a scenario: one take with one key, its time, and its history.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::local_servers::Cluster;
use super::story::{Aborted, ClientRequest, LONG, ScenarioResult};
use crate::domain::record::age::millis;
use crate::domain::record::{Deadline, KeyState, Observation, TimeLeft, decode};
use crate::domain::schema::{Schema, State};
use crate::domain::simulation::{ClientAnswer, Excuse, History, HistoryEvent};
use crate::domain::step::{StepReply, next_request};
use crate::sim::service::{LoadedService, read_content, server_ms, words};
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::{Connection, Packed, StoreError, Writable, pack};

/// The workers to which the parts of a record belong; `None` if no worker of the story made them.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordOwners {
    pub(super) lock: Option<String>,
    pub(super) result: Option<String>,
}

/// One take of a scenario while it is executed.
pub(crate) struct ScenarioRun<'s> {
    pub(super) service: LoadedService<'s>,
    pub(super) key: Vec<u8>,
    pub(super) target: Writable,
    /// The TTL of a lock that expires in the story.
    pub(super) lock_ttl: Duration,
    /// The lock TTL of the schema itself.
    own_lock_ttl: Duration,
    /// The result TTL of the schema that wrote the record's result.
    own_result_ttl: Cell<Duration>,
    /// The server's time when the run began, in milliseconds since the epoch, rounded up.
    pub(super) now_ms: u64,
    pub(super) history: Rc<RefCell<History>>,
    /// True on the scenario's own server, whose refusals are part of the story.
    pub(super) is_private: bool,
    /// Until when the lock that expires in the story is certainly held; `None` if it may expire.
    held_until: Cell<Option<Instant>>,
    /// The time that clients and scripts see, in milliseconds since the epoch; `None` for the
    /// server's own time.
    stopped_at: Cell<Option<u64>>,
    /// The workers that took the lock and stored the result that exist.
    pub(super) owners: RefCell<RecordOwners>,
    cluster: RefCell<Option<Rc<Cluster>>>,
    control: Mutex<Connection>,
    clock: Instant,
}

impl<'s> ScenarioRun<'s> {
    pub(super) async fn begin(
        schema: &'s Schema,
        own: &Schema,
        key: Vec<u8>,
        target: &Writable,
        is_private: bool,
        lock_ttl: Duration,
        history: Rc<RefCell<History>>,
    ) -> Result<Self, StoreError> {
        // Separate from the workers' connections, which scenarios cut off or use for slow scripts.
        let mut control = Connection::connect(target).await?;
        let service = LoadedService::load(schema, &mut control).await?;
        // The clock starts before the server is asked, and the answer is rounded up: this run's
        // time is never behind the server's. If it were, a lock of 30 seconds would have 30,001 ms
        // left.
        let clock = Instant::now();
        let now_ms = server_ms(&control.ask(&pack(["TIME"])).await?) + 1;
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
            held_until: Cell::default(),
            stopped_at: Cell::default(),
            owners: RefCell::default(),
            cluster: RefCell::default(),
            control: Mutex::new(control),
            clock,
        })
    }

    pub(super) fn schema(&self) -> &'s Schema {
        self.service.schema
    }

    /// From now on, clients and scripts see this time, in milliseconds since the epoch.
    pub(super) fn stop_clock(&self, now_ms: u64) {
        self.stopped_at.set(Some(now_ms));
    }

    /// The time that clients and scripts see; `None` for the server's own time.
    pub(super) fn stopped_at(&self) -> Option<u64> {
        self.stopped_at.get()
    }

    /// From now on, each call runs on the node of its Redis keys.
    pub(super) fn run_on_cluster(&self, cluster: &Rc<Cluster>) {
        *self.cluster.borrow_mut() = Some(Rc::clone(cluster));
    }

    /// In a cluster, makes sure that a call with these Redis keys runs on their node.
    pub(super) async fn prepare_node(&self, named: &[Vec<u8>]) -> ScenarioResult {
        let cluster = self.cluster.borrow().clone();
        match cluster {
            Some(cluster) => cluster.serve(named, &self.schema().redis_keys(&self.key)).await,
            None => Ok(()),
        }
    }

    /// How many milliseconds the next request gets the same answer as now; `None` if it never
    /// changes.
    pub(super) async fn predict_block(&self) -> ScenarioResult<Option<u64>> {
        self.shorten_long_lock().await?;
        let seen = self.observe().await?;
        let readings = decode::decode_all(self.schema(), &seen);
        let next = next_request::of(self.schema(), &readings, &seen);
        // The next request rejects nobody for longer than the TTL that it gives the lock.
        if next.gives_ttl {
            return Ok(Some(millis(self.lock_ttl)));
        }
        Ok(next.until.unwrap_or(TimeLeft::Millis(0)).millis())
    }

    /// Shortens a long lock that remains at the end of the story, because the simulation does not
    /// wait a minute for it.
    async fn shorten_long_lock(&self) -> ScenarioResult {
        let lock = self.lock_key();
        self.prepare_node(std::slice::from_ref(&lock)).await?;
        let StepReply::Integer(left) = self.send(&pack([b"PTTL", &lock[..]])).await? else {
            return Ok(());
        };
        let short = millis(self.lock_ttl);
        // A negative number is not a TTL: the lock does not exist, or it never expires.
        let Ok(left) = u64::try_from(left) else { return Ok(()) };
        // A longer TTL is not that of a story's lock. It may be the TTL of a result.
        if left > short && left <= millis(LONG) {
            self.send(&pack([b"PEXPIRE", &lock[..], short.to_string().as_bytes()])).await?;
            self.note("time", "most of the lock's TTL passes", None, None);
        }
        Ok(())
    }

    fn lock_key(&self) -> Vec<u8> {
        self.schema().keys[self.schema().lock_key_index()].template.redis_key(&self.key)
    }

    /// Reads the record's Redis keys.
    pub(super) async fn observe(&self) -> ScenarioResult<Observation> {
        let mut keys = Vec::new();
        for redis_key in self.schema().redis_keys(&self.key) {
            self.prepare_node(std::slice::from_ref(&redis_key)).await?;
            let StepReply::Integer(pttl) = self.send(&pack([b"PTTL", &redis_key[..]])).await?
            else {
                continue;
            };
            // PTTL is read first. A key that expires in between is then absent, and not a key
            // without a TTL.
            let content = read_content(&mut *self.control.lock().await, &redis_key).await?;
            keys.push(KeyState::new(
                &redis_key,
                content,
                TimeLeft::from_pttl(pttl),
                Deadline::Unknown,
            ));
        }
        Ok(Observation { server_ms: Some(self.time_ms()), atomic: false, keys })
    }

    /// The current time, which is the same by all clocks of the run, in milliseconds since the
    /// epoch, rounded up.
    pub(super) fn time_ms(&self) -> u64 {
        self.now_ms + millis(self.clock.elapsed()) + 1
    }

    /// The milliseconds until the lock's contained expiry, which its value holds; `None` if it
    /// holds none.
    async fn lock_expires_in(&self) -> ScenarioResult<Option<i64>> {
        if !self.schema().contains_expiry() {
            return Ok(None);
        }
        let seen = self.observe().await?;
        let readings = decode::decode_all(self.schema(), &seen);
        let lock = &readings[self.schema().lock_key_index()];
        let Some(decoded) = lock.decoded() else { return Ok(None) };
        let Some(expires_ms) = decoded.expires_ms else { return Ok(None) };
        let left = expires_ms.saturating_sub(self.time_ms());
        Ok(Some(i64::try_from(left).unwrap_or(i64::MAX)))
    }

    /// The milliseconds that are left of a lock whose script gives every lock the same time, which
    /// the simulation cannot shorten; `None` for any other lock, and without one.
    pub(super) async fn fixed_lease_ms(&self) -> ScenarioResult<Option<u64>> {
        let seen = self.observe().await?;
        let readings = decode::decode_all(self.schema(), &seen);
        let lock = &readings[self.schema().lock_key_index()];
        let Some(decoded) = lock.decoded() else { return Ok(None) };
        let Some(expires_ms) = decoded.expires_ms else { return Ok(None) };
        if self.schema().values[decoded.format].state != State::InProgress {
            return Ok(None);
        }
        let left = expires_ms.saturating_sub(self.time_ms());
        // A TTL may be sent in whole seconds, rounded up.
        let follows_short = left <= millis(self.lock_ttl) + 1_000;
        let is_fixed = !follows_short && !self.is_of_long_lock(left);
        Ok(if is_fixed { Some(left.div_ceil(1_000) * 1_000) } else { None })
    }

    /// True if a lock with this much time left was taken in this run with the TTL of a long lock.
    fn is_of_long_lock(&self, ms: u64) -> bool {
        let passed = millis(self.clock.elapsed()) + 1_000;
        let long = millis(LONG);
        (long.saturating_sub(passed)..=long).contains(&ms)
    }

    /// Converts a time of the simulation to the time of the schema. Locks and results live much
    /// shorter here than in a service.
    pub(super) fn to_time_of_schema(&self, ms: u64) -> u64 {
        if ms <= millis(self.lock_ttl) {
            return millis(self.own_lock_ttl);
        }
        // The contained expiry of a lock's value is not shortened when its TTL is.
        if self.schema().contains_expiry() && self.is_of_long_lock(ms) {
            return millis(self.own_lock_ttl);
        }
        let own = millis(self.own_result_ttl.get());
        let simulated = own.min(millis(TEST_KEYS_LIVE));
        // A Redis key with this much time left was set during this run, with the TTL of a result.
        let passed = millis(self.clock.elapsed()) + 1_000;
        if (simulated.saturating_sub(passed)..=simulated).contains(&ms) {
            // The elapsed time is real time, so it is not subtracted from the schema's TTL.
            return own;
        }
        ms.div_ceil(1_000) * 1_000
    }

    /// From now on, the record's result is that of another schema.
    pub(super) fn has_result_of(&self, other: &Schema) {
        self.own_result_ttl.set(other.result_ttl);
    }

    /// Waits until the lock has expired.
    pub(super) async fn wait_for_lock_expiry(&self) -> ScenarioResult {
        let lock = self.lock_key();
        loop {
            let StepReply::Integer(ttl) = self.send(&pack([b"PTTL", &lock[..]])).await? else {
                continue;
            };
            // The lock ends with its TTL or with the expiry in its value, whichever comes first.
            let left = match self.lock_expires_in().await? {
                Some(0) => break,
                Some(expires) if ttl < 0 || expires < ttl => expires,
                _ => ttl,
            };
            if left == -2 {
                break;
            }
            // Any other negative number means that the lock has no TTL.
            let Ok(left) = u64::try_from(left) else {
                return Err(Aborted::NotApplicable(
                    "its lock never expires, because it has no TTL".to_owned(),
                ));
            };
            if left > 2 * millis(self.lock_ttl) {
                return Err(Aborted::NotApplicable(
                    "its lock does not use the TTL that is sent to begin, so it outlives the \
                    simulation"
                        .to_owned(),
                ));
            }
            // One more millisecond, so that the lock has expired when it is checked again.
            tokio::time::sleep(Duration::from_millis(left + 1)).await;
        }
        self.let_lock_expire();
        self.note("time", "the lock's TTL ends", None, None);
        Ok(())
    }

    /// Records that a lock with the TTL `lives`, requested at `since`, was acquired. Only half of
    /// the TTL counts as certain, because the machine may be slow.
    pub(super) fn lock_is_held(&self, since: Instant, lives: Duration) {
        // A lock without a TTL never expires.
        self.held_until.set(since.checked_add(lives / 2));
    }

    /// From now on, the story expects that the lock may expire.
    pub(super) fn let_lock_expire(&self) {
        self.held_until.set(None);
    }

    /// Checks that the lock of the story has not expired too early.
    ///
    /// # Errors
    /// `Late`: a lock may have expired that should expire later.
    pub(super) fn check_in_time(&self) -> ScenarioResult {
        match self.held_until.get() {
            Some(until) if Instant::now() > until => Err(Aborted::Late),
            _ => Ok(()),
        }
    }

    /// Adds a line to the history.
    pub(super) fn note(
        &self,
        actor: &str,
        step: &str,
        reply: Option<String>,
        client: Option<String>,
    ) {
        let at_us = u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        let event =
            HistoryEvent { at_us, actor: actor.to_owned(), step: step.to_owned(), reply, client };
        self.history.borrow_mut().events.push(event);
    }

    /// Adds a remark to the reason of the verdict.
    pub(super) fn remark(&self, note: String) {
        self.history.borrow_mut().notes.push(note);
    }

    /// From now on, a harm is not a failure of the schema, for this reason.
    pub(super) fn excuse(&self, excuse: Excuse) {
        self.history.borrow_mut().excuse = Some(excuse);
    }

    /// Records an answer to a client.
    pub(super) fn note_client_answer(&self, client_request: ClientRequest, answer: ClientAnswer) {
        self.history.borrow_mut().answer(client_request.operation, answer);
    }

    /// Sends a request that no worker sends, and adds it to the history as an event of the
    /// environment.
    pub(super) async fn apply_fault(
        &self,
        what: &str,
        request: &Packed,
    ) -> ScenarioResult<StepReply> {
        let reply = self.send(request).await?;
        self.note("world", what, Some(words(&reply)), None);
        Ok(reply)
    }

    /// Sends a request that is not part of the story.
    pub(super) async fn send(&self, request: &Packed) -> ScenarioResult<StepReply> {
        Ok(self.control.lock().await.ask(request).await?)
    }
}
