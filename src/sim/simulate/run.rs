//! One run of a scenario: the story once on one key, the time that passes in it, and what is noted of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::local_servers::Cluster;
use super::story::{Aborted, ClientRequest, LONG, ScenarioResult};
use crate::domain::record::age::millis;
use crate::domain::record::{Deadline, Expiry, Observation, SeenKey, decode};
use crate::domain::schema::Schema;
use crate::domain::simulation::{ClientAnswer, History, HistoryEvent};
use crate::domain::step::{StepReply, next_request};
use crate::sim::service::{LoadedService, read_content, server_ms, words};
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::{Connection, Packed, StoreError, Writable, pack};

pub(crate) struct ScenarioRun<'s> {
    pub(super) service: LoadedService<'s>,
    pub(super) key: Vec<u8>,
    pub(super) target: Writable,
    /// How long a lock lives that expires in the story.
    pub(super) lock_ttl: Duration,
    /// How long a lock of the schema lives, in the schema's own time.
    own_lock_ttl: Duration,
    /// How long the record's result lives, in the time of the schema that wrote it.
    own_result_ttl: Cell<Duration>,
    /// The server's time when the run began, in milliseconds since the epoch.
    pub(super) now_ms: u64,
    pub(super) history: Rc<RefCell<History>>,
    /// True on a server of the scenario's own, whose refusals are part of the story.
    pub(super) is_private: bool,
    /// Until when the lock that expires in the story is certainly held.
    held_until: Cell<Option<Instant>>,
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
        // Apart from the workers' connections, which scenarios cut off or send slow scripts over.
        let mut control = Connection::connect(target).await?;
        let service = LoadedService::load(schema, &mut control).await?;
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
            held_until: Cell::default(),
            cluster: RefCell::default(),
            control: Mutex::new(control),
            clock: Instant::now(),
        })
    }

    pub(super) fn schema(&self) -> &'s Schema {
        self.service.schema
    }

    /// From here on each call runs on the node of its Redis keys.
    pub(super) fn run_on_cluster(&self, cluster: &Rc<Cluster>) {
        *self.cluster.borrow_mut() = Some(Rc::clone(cluster));
    }

    /// On a cluster, makes sure that a call with these Redis keys runs on their node.
    pub(super) async fn prepare_node(&self, named: &[Vec<u8>]) -> ScenarioResult {
        let cluster = self.cluster.borrow().clone();
        match cluster {
            Some(cluster) => cluster.serve(named, &self.schema().redis_keys(&self.key)).await,
            None => Ok(()),
        }
    }

    /// How many milliseconds the next request gets the answer that it gets now; `None` for ever.
    pub(super) async fn predict_block(&self) -> ScenarioResult<Option<u64>> {
        self.shorten_long_lock().await?;
        let seen = self.observe().await?;
        let readings = decode::read_all(self.schema(), &seen);
        let until = next_request::of(self.schema(), &readings, &seen).until;
        Ok(until.unwrap_or(Expiry::In(0)).millis())
    }

    /// Shortens a long lock that is left at the end of the story, because nobody waits a minute for it here.
    async fn shorten_long_lock(&self) -> ScenarioResult {
        let lock = self.lock_key();
        self.prepare_node(std::slice::from_ref(&lock)).await?;
        let StepReply::Integer(left) = self.send(&pack([b"PTTL", &lock[..]])).await? else {
            return Ok(());
        };
        let short = millis(self.lock_ttl);
        let is_long = u64::try_from(left).is_ok_and(|left| left > short && left <= millis(LONG));
        if is_long {
            self.send(&pack([b"PEXPIRE", &lock[..], short.to_string().as_bytes()])).await?;
            self.note("time", "most of the lock's TTL passes", None, None);
        }
        Ok(())
    }

    fn lock_key(&self) -> Vec<u8> {
        self.schema().keys[self.schema().lock_role()].template.redis_key(&self.key)
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
            // PTTL first: a key that expires in between is read as absent and not as one without a TTL.
            let content = read_content(&mut *self.control.lock().await, &redis_key).await?;
            keys.push(SeenKey::new(
                &redis_key,
                content,
                Expiry::from_pttl(pttl),
                Deadline::Unknown,
            ));
        }
        Ok(Observation { server_ms: Some(self.time_ms()), atomic: false, keys })
    }

    /// The time by every clock, in milliseconds since the epoch.
    pub(super) fn time_ms(&self) -> u64 {
        self.now_ms + millis(self.clock.elapsed())
    }

    /// How many milliseconds are left of the lock by the expiry that its value holds; `None` if it holds none.
    async fn lock_lapses_in(&self) -> ScenarioResult<Option<i64>> {
        if !self.schema().lapses() {
            return Ok(None);
        }
        let seen = self.observe().await?;
        let readings = decode::read_all(self.schema(), &seen);
        let lock = readings[self.schema().lock_role()].decoded();
        let Some(expires_ms) = lock.and_then(|value| value.expires_ms) else { return Ok(None) };
        let left = expires_ms.saturating_sub(self.time_ms());
        Ok(Some(i64::try_from(left).unwrap_or(i64::MAX)))
    }

    /// A time of the simulation in the time of the schema: locks and results live much shorter here than at a service.
    pub(super) fn to_time_of_schema(&self, ms: u64) -> u64 {
        if ms <= millis(self.lock_ttl) {
            return millis(self.own_lock_ttl);
        }
        // A lock that ends by what it holds is not shortened by its TTL.
        if self.schema().lapses() && ms <= millis(LONG) {
            return millis(self.own_lock_ttl);
        }
        let own = millis(self.own_result_ttl.get());
        let simulated = own.min(millis(TEST_KEYS_LIVE));
        // A Redis key with this much time left was set within this run, with the TTL of a result.
        let passed = millis(self.clock.elapsed()) + 1_000;
        if (simulated.saturating_sub(passed)..=simulated).contains(&ms) {
            // How long the story took until then is the machine's time, not the schema's.
            return own;
        }
        ms.div_ceil(1_000) * 1_000
    }

    /// From here on the record's result is another schema's.
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
            // The lock ends with its TTL, or by the expiry that its value holds, whichever comes first.
            let left = match self.lock_lapses_in().await? {
                Some(0) => break,
                Some(lapses) if ttl < 0 || lapses < ttl => lapses,
                _ => ttl,
            };
            if left == -2 {
                break;
            }
            // Any other negative number is a lock without a TTL.
            let Ok(left) = u64::try_from(left) else {
                return Err(Aborted::NotApplicable(
                    "its lock never runs out: it has no TTL".to_owned(),
                ));
            };
            if left > 2 * millis(self.lock_ttl) {
                return Err(Aborted::NotApplicable(
                    "its lock does not take the TTL that begin is sent: it outlives the simulation"
                        .to_owned(),
                ));
            }
            tokio::time::sleep(Duration::from_millis(left + 1)).await;
        }
        self.let_lock_expire();
        self.note("time", "the lock's TTL ends", None, None);
        Ok(())
    }

    /// Notes that a lock which `lives` that long was asked for at `since`, and was got. Half of that is left for a slow
    /// machine.
    pub(super) fn lock_is_held(&self, since: Instant, lives: Duration) {
        // A lock without a TTL never expires.
        self.held_until.set(since.checked_add(lives / 2));
    }

    /// From here on the story expects that the lock may expire.
    pub(super) fn let_lock_expire(&self) {
        self.held_until.set(None);
    }

    /// # Errors
    /// Late: a lock that was to expire later may be gone.
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

    /// Adds a remark to the verdict.
    pub(super) fn remark(&self, note: String) {
        self.history.borrow_mut().notes.push(note);
    }

    pub(super) fn note_client_answer(&self, client_request: ClientRequest, answer: ClientAnswer) {
        self.history.borrow_mut().answer(client_request.operation, answer);
    }

    /// Sends what no worker sends, and adds it to the history.
    pub(super) async fn apply_fault(
        &self,
        what: &str,
        request: &Packed,
    ) -> ScenarioResult<StepReply> {
        let reply = self.send(request).await?;
        self.note("world", what, Some(words(&reply)), None);
        Ok(reply)
    }

    /// Sends what is not part of the story.
    pub(super) async fn send(&self, request: &Packed) -> ScenarioResult<StepReply> {
        Ok(self.control.lock().await.ask(request).await?)
    }
}
