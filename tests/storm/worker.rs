//! A worker: one connection, many operations at a time, each played as its service plays it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Meaning, Schema, Step};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;
use redis::Connection;

use crate::callers::WORKER;
use crate::deployment::Deployment;
use crate::event::What;
use crate::operation::{self, Ending, Operation, Phase};
use crate::shared::{Herald, Shared};
use crate::support::wire;

/// Operations a worker has in hand at most; of those that work long fewer.
const AT_A_TIME: usize = 14;

/// Keys that are fought for at a time, for each service.
const HOT: u64 = 3;

/// What a node says that is not the master of a key, or not ready to be.
const ELSEWHERE: [&str; 7] =
    ["MOVED", "ASK", "READONLY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "TRYAGAIN"];

/// The reply was lost, or the node is not the one to ask.
pub(crate) struct Lost;

/// One worker of a service.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) herald: Herald,
    pub(crate) rng: fastrand::Rng,
    service: usize,
    connections: HashMap<usize, Connection>,
    agenda: BinaryHeap<Reverse<(Instant, u64)>>,
    operations: HashMap<u64, Operation>,
    begun: u64,
    /// Keys that it has in hand, or was never to touch again.
    avoids: HashSet<String>,
}

impl Worker {
    /// A worker of the service with this place among all.
    pub(crate) fn new(
        number: usize,
        service: usize,
        (shared, herald): (Arc<Shared>, Herald),
        seed: u64,
    ) -> Self {
        Self {
            number,
            shared,
            herald,
            rng: fastrand::Rng::with_seed(seed),
            service,
            connections: HashMap::new(),
            agenda: BinaryHeap::new(),
            operations: HashMap::new(),
            begun: 0,
            avoids: HashSet::new(),
        }
    }

    /// Works until the storm is over.
    pub(crate) fn work(mut self) {
        let mut next = Instant::now();
        while !self.shared.is_over() {
            let now = Instant::now();
            if now >= next && self.operations.len() < AT_A_TIME {
                next = now + Duration::from_millis(self.rng.u64(20..400));
                self.take_on(now);
            }
            let due = self.agenda.peek().map(|Reverse((due, _))| *due);
            match due.filter(|due| *due <= now) {
                Some(_) => self.go_on(now),
                None => std::thread::sleep(
                    due.map_or(next, |due| due.min(next)).saturating_duration_since(now),
                ),
            }
        }
    }

    pub(crate) fn deployment(&self) -> &Deployment {
        &self.shared.deployments.all()[self.service]
    }

    fn take_on(&mut self, now: Instant) {
        self.begun += 1;
        let number = self.begun;
        let name = match self.rng.bool() {
            true => format!("hot.{}.{}", self.shared.round(), self.rng.u64(0..HOT)),
            false => format!("cold.{}.{number}", self.number),
        };
        let key = self.deployment().key(&name);
        if !self.avoids.insert(key.clone()) {
            return;
        }
        let slow = if self.rng.u8(0..10) == 0 { "-slow" } else { "" };
        let owner = format!("w{}-{number}{slow}", self.number);
        // Longer than what a page reads of a value, and the same length for all.
        let body = format!("\"{}{number:020}\"", "x".repeat(90));
        let response =
            Response { status: Some(201), body: body.into_bytes(), ..Response::default() };
        let until = now + Duration::from_millis(self.rng.u64(0..4_000));
        let is_stillborn = self.rng.u8(0..40) == 0;
        let phase = Phase::Begins { until };
        let ending = Ending::Complete;
        let operation = Operation { key, owner, response, phase, ending, is_stillborn };
        std::fs::write(self.shared.life(&operation.owner), "").unwrap();
        self.shared.count("operations begun");
        self.operations.insert(number, operation);
        self.agenda.push(Reverse((now, number)));
    }

    fn go_on(&mut self, now: Instant) {
        let Some(Reverse((_, number))) = self.agenda.pop() else { return };
        let Some(mut operation) = self.operations.remove(&number) else { return };
        match self.step(&mut operation, now) {
            Ok(Some(due)) => {
                self.operations.insert(number, operation);
                self.agenda.push(Reverse((due, number)));
            }
            Ok(None) => self.is_done_with(&operation),
            Err(Lost) => {
                self.shared.count("operations that lost their server");
                self.dies(&operation);
                self.look_for(&operation.key);
            }
        }
    }

    /// Nothing more is done about it: what stands there is nobody's.
    pub(crate) fn dies(&mut self, operation: &Operation) {
        let key = self.redis_keys(&operation.key).remove(0).into_bytes();
        self.herald.say(What::Dead { worker: self.number, key });
        // Others may die with the same key; this one never has it in hand again.
        let _ = std::fs::remove_file(self.shared.life(&operation.owner));
    }

    fn is_done_with(&mut self, operation: &Operation) {
        let key = self.redis_keys(&operation.key).remove(0).into_bytes();
        self.herald.say(What::Done { worker: self.number, key });
        let _ = std::fs::remove_file(self.shared.life(&operation.owner));
        if !self.died(operation) {
            self.avoids.remove(&operation.key);
        }
    }

    fn died(&self, operation: &Operation) -> bool {
        matches!(operation.ending, Ending::Crash | Ending::CrashForEver) || operation.is_stillborn
    }

    /// The Redis keys of a record, the lock's first.
    pub(crate) fn redis_keys(&self, key: &str) -> Vec<String> {
        let keys = self.deployment().schema.redis_keys(key.as_bytes()).into_iter();
        keys.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    fn look_for(&mut self, key: &str) {
        self.connections.clear();
        std::thread::sleep(Duration::from_millis(20));
        let redis_key = self.redis_keys(key).remove(0);
        self.shared.stage.find_master(&redis_key);
    }

    /// Sends a command to the master of a Redis key.
    pub(crate) fn ask<W: AsRef<[u8]>>(
        &mut self,
        redis_key: &str,
        words: &[W],
    ) -> Result<StepReply, Lost> {
        let node = self.shared.stage.master(redis_key);
        if !self.connections.contains_key(&node) {
            let user = format!("{WORKER}{}", self.number);
            let connection = self.shared.stage.connect(node, &user).map_err(|_| Lost)?;
            self.connections.insert(node, connection);
        }
        let connection = self.connections.get_mut(&node).ok_or(Lost)?;
        match wire::try_ask(connection, words).map_err(|_| Lost)? {
            StepReply::Error { code, .. } if ELSEWHERE.contains(&code.as_str()) => Err(Lost),
            reply => Ok(reply),
        }
    }

    /// Plays a step, call after call, until one's reply decides.
    pub(crate) fn play(
        &mut self,
        operation: &Operation,
        step: impl Fn(&Schema) -> &Step,
        error: Option<&str>,
    ) -> Result<Meaning, Lost> {
        let shared = Arc::clone(&self.shared);
        let schema = &shared.deployments.all()[self.service].schema;
        let Operation { key, owner, response, .. } = operation;
        let request =
            StepInputs { error, ..StepInputs::new(schema, key.as_bytes(), owner, response) };
        let redis_key = self.redis_keys(key).remove(0);
        for call in &step(schema).calls {
            let reply = self.ask(&redis_key, &wire::words(call, &request))?;
            let known = request.matcher().match_reply(call, &reply);
            let known = known.unwrap_or_else(|| {
                panic!("{}: {} answers {reply:?}", schema.name, call_name(call))
            });
            if known.meaning() != Meaning::Next {
                return Ok(known.meaning());
            }
        }
        panic!("no call decides")
    }
}

fn call_name(call: &idemctl::domain::schema::Call) -> String {
    format!("{:?}", call.action)
}

/// How an operation is planned once it has its lock.
pub(crate) fn planned(worker: &mut Worker, now: Instant) -> (Phase, Ending) {
    let lock_ttl = worker.deployment().schema.lock_ttl;
    let (work, renews, ending) = operation::plan(&mut worker.rng, lock_ttl);
    (Phase::Works { until: now + work, renews }, ending)
}
