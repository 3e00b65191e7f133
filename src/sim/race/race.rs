//! A race: rounds on fresh keys, judged one by one, and every key removed afterwards.

use std::time::Instant;

use futures_util::future::join_all;
use uuid::Uuid;

use super::connections::{Connections, WitnessLock};
use super::worker::{Course, RaceWorker, Turn, WorkerConnection};
use crate::domain::race::{RaceAnswer, RacePlan, RaceRun, RaceSteps, Round, Strategy, Ttls};
use crate::domain::schema::Schema;
use crate::interrupt::Interrupt;
use crate::sim::service::LoadedService;
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::StoreError;

/// Names that are tried at most for a key that a cluster's node serves: of a hundred masters each serves one in a hundred.
const MOST_NAMES: usize = 10_000;

/// In every such round the handler fails for SET NX, unless the operator says otherwise: SET NX is flawed after a release.
const SET_NX_FAILS_EVERY: usize = 4;

/// What came of a race.
pub struct RaceResult {
    pub run: RaceRun,
    pub end: RaceEnd,
    /// Why keys may be left behind, until their TTL ends.
    pub left_behind: Option<StoreError>,
}

/// How a race ended.
#[derive(Debug)]
pub enum RaceEnd {
    Finished,
    Interrupted,
    Failed(StoreError),
}

/// Races a schema with a strategy. Every key that was made is removed before this returns, however the race ends.
pub async fn race(
    connections: &mut Connections,
    schema: &Schema,
    strategy: Strategy,
    plan: RacePlan,
    interrupt: &Interrupt,
    on_round: impl FnMut(),
) -> RaceResult {
    let schema = &schema.living_at_most(TEST_KEYS_LIVE);
    let plan = plan_for_strategy(strategy, plan);
    let ttls = Ttls { lock: schema.lock_ttl, result: schema.result_ttl };
    let mut run = RaceRun::new(&schema.name, strategy, plan, ttls);
    let mut keys = RaceKeys { schema, name: Uuid::new_v4(), made: Vec::new() };
    let end = match run_rounds(connections, schema, &mut run, &mut keys, interrupt, on_round).await
    {
        Ok(end) => end,
        Err(error) => RaceEnd::Failed(error),
    };
    // Also after an error or Ctrl-C: nothing of a race may stay on a server that others use.
    let left_behind = connections.remove(&keys.made).await.err();
    RaceResult { run, end, left_behind }
}

/// The plan with what the strategy needs: SET NX shows its flaw only if steps overlap and locks are released.
fn plan_for_strategy(strategy: Strategy, mut plan: RacePlan) -> RacePlan {
    if strategy == Strategy::SetNx {
        plan.overlap = true;
        if plan.fail_every == 0 {
            plan.fail_every = SET_NX_FAILS_EVERY;
        }
    }
    plan
}

async fn run_rounds(
    connections: &mut Connections,
    schema: &Schema,
    run: &mut RaceRun,
    keys: &mut RaceKeys<'_>,
    interrupt: &Interrupt,
    mut on_round: impl FnMut(),
) -> Result<RaceEnd, StoreError> {
    let service = LoadedService::load(schema, connections.cleanup()).await?;
    let steps = RaceSteps::new(schema, run.strategy);
    // Set before the first round, so that the first round has a witness, too.
    let mut witness = WitnessLock::new(schema, &keys.make("witness", connections), "nobody");
    let keys_of_witness = keys.made.len();
    witness.renew(connections).await?;
    while run.rounds < run.plan.rounds {
        if interrupt.is_raised() {
            return Ok(RaceEnd::Interrupted);
        }
        connections.reconnect_workers().await?;
        let number = run.rounds + 1;
        let began = Instant::now();
        let key = keys.make(&number.to_string(), connections);
        let course = Course { service: &service, steps: &steps, plan: &run.plan, key: &key };
        let round = run_round(&mut connections.workers, course, number, interrupt).await?;
        let Some(mut round) = round else { return Ok(RaceEnd::Interrupted) };
        round.has_witness = witness.renew(connections).await?;
        round.lasted = began.elapsed();
        run.add(round);
        on_round();
        // The keys are removed after each round, so that a killed race leaves the keys of one round.
        connections.remove(&keys.made.split_off(keys_of_witness)).await?;
    }
    Ok(RaceEnd::Finished)
}

/// Runs one round: everybody begins on one fresh key, the winner finishes, the losers retry; `None` after Ctrl-C.
///
/// Between two phases no request is in flight. With `overlap` a winner finishes within the phase in which it won.
async fn run_round(
    connections: &mut [WorkerConnection],
    course: Course<'_>,
    number: usize,
    interrupt: &Interrupt,
) -> Result<Option<Round>, StoreError> {
    let plan = course.plan;
    let fails = plan.fail_every > 0 && number.is_multiple_of(plan.fail_every);
    let mut workers = workers_of_round(connections, course, number);
    let mut round = Round::default();
    let begin = Turn { begins: true, finishes: plan.overlap, fails };
    let finish = Turn { begins: false, finishes: true, fails };

    run_phase(&mut workers, &mut round, begin, |_| true).await?;
    if !workers.iter().any(got_a_reply) {
        // No worker got a reply: the error of any of them will do.
        let error = workers.iter_mut().find_map(|worker| worker.error.take());
        return error.map_or(Ok(None), Err);
    }
    if interrupt.is_raised() {
        return Ok(None);
    }
    run_phase(&mut workers, &mut round, finish, |worker| worker.holds_lock).await?;
    // The retries, and then the handlers of whoever got the lock with one, do not fail.
    let retry = Turn { fails: false, ..begin };
    let finish_retry = Turn { fails: false, ..finish };
    run_phase(&mut workers, &mut round, retry, |worker| !worker.won && worker.is_connected())
        .await?;
    run_phase(&mut workers, &mut round, finish_retry, |worker| worker.holds_lock).await?;
    round.events = workers.into_iter().flat_map(|worker| worker.events).collect();
    Ok(if interrupt.is_raised() { None } else { Some(round) })
}

/// A worker for each connection; in every round another one is first.
fn workers_of_round<'r>(
    connections: &'r mut [WorkerConnection],
    course: Course<'r>,
    number: usize,
) -> Vec<RaceWorker<'r>> {
    let count = u32::try_from(connections.len()).unwrap_or(u32::MAX);
    let mut workers: Vec<_> =
        connections.iter_mut().map(|connection| RaceWorker::new(connection, course)).collect();
    let first = number % workers.len().max(1);
    // The first one to send usually wins: without the rotation, one connection would win every round.
    workers.rotate_left(first);
    let clock = Instant::now();
    // The pauses differ, because workers that all pause equally long would meet again after the pause.
    for (place, worker) in (1..).zip(&mut workers) {
        worker.pause = course.plan.think_time * place / count;
        worker.clock = clock;
    }
    workers
}

/// Releases some of the workers at the same time and waits for all of them.
async fn run_phase(
    workers: &mut [RaceWorker<'_>],
    round: &mut Round,
    turn: Turn,
    takes_part: impl Fn(&RaceWorker<'_>) -> bool,
) -> Result<(), StoreError> {
    let mut ready: Vec<_> = workers.iter_mut().filter(|worker| takes_part(worker)).collect();
    if ready.is_empty() {
        return Ok(());
    }
    let events_before = count_events(&ready);
    let released = Instant::now();
    // Unconstrained, so that every worker has sent its request before the first reply is read: that is the barrier.
    tokio::task::unconstrained(join_all(ready.iter_mut().map(|worker| worker.run(turn)))).await;
    if turn.begins {
        round.released += released.elapsed();
        round.raced += (count_events(&ready) - events_before) as u64;
    }
    for worker in ready {
        // A lost reply is an event of the round. Any other error means that the server does not serve the race.
        if let Some(error) = worker.error.take_if(|error| !error.lost_the_reply()) {
            return Err(error);
        }
    }
    Ok(())
}

fn count_events(workers: &[&mut RaceWorker<'_>]) -> usize {
    workers.iter().map(|worker| worker.events.len()).sum()
}

fn got_a_reply(worker: &RaceWorker<'_>) -> bool {
    worker.events.iter().any(|event| !matches!(event.answer, RaceAnswer::Lost(_)))
}

/// The keys of a race. Their names hold the race's UUID, so that they are nobody else's, and the purpose of each.
struct RaceKeys<'a> {
    schema: &'a Schema,
    name: Uuid,
    /// The Redis keys that may exist.
    made: Vec<Vec<u8>>,
}

impl RaceKeys<'_> {
    /// Names a key by its purpose, so that the node that is raced on serves it.
    fn make(&mut self, purpose: &str, connections: &Connections) -> Vec<u8> {
        let mut key = format!("idemctl-race-{}-{purpose}", self.name.simple());
        for number in 1..=MOST_NAMES {
            if connections.serves(&self.schema.redis_keys(key.as_bytes())) {
                break;
            }
            key = format!("idemctl-race-{}-{purpose}-{number}", self.name.simple());
        }
        self.made.extend(self.schema.redis_keys(key.as_bytes()));
        key.into_bytes()
    }
}
