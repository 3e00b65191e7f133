//! A race: rounds with fresh keys. Each round is judged, and its keys are deleted afterwards.

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

/// How many names are tried for a key that one node of a cluster serves. With a hundred masters,
/// each serves one name in a hundred.
const MAX_NAMES: usize = 10_000;

/// With SET NX the handler fails in every such round, unless the operator sets another number. The
/// flaw of SET NX shows after a release.
const SET_NX_FAILS_EVERY: usize = 4;

/// The result of a race.
pub struct RaceResult {
    pub run: RaceRun,
    pub end: RaceEnd,
    /// Why keys may remain until their TTL expires; `None` if all were deleted.
    pub left_behind: Option<StoreError>,
}

/// How a race ended.
#[derive(Debug)]
pub enum RaceEnd {
    Finished,
    Interrupted,
    Failed(StoreError),
}

/// Races a schema with a strategy. All created keys are deleted before this returns, however the
/// race ends.
pub async fn race(
    connections: &mut Connections,
    schema: &Schema,
    strategy: Strategy,
    plan: RacePlan,
    interrupt: &Interrupt,
    on_round: impl FnMut(),
) -> RaceResult {
    // Shorter TTLs: keys expire soon if idemctl is killed before it deletes them.
    let schema = &schema.living_at_most(TEST_KEYS_LIVE);
    let plan = plan_for_strategy(strategy, plan);
    let ttls = Ttls { lock: schema.lock_ttl, result: schema.result_ttl };
    let steps = RaceSteps::new(schema, strategy);
    let mut run = RaceRun::new(&schema.name, strategy, plan, ttls, steps.locks_first);
    let mut keys = RaceKeys { schema, name: Uuid::new_v4(), made: Vec::new() };
    let rounds = Rounds { schema, steps: &steps, interrupt };
    let end = match run_rounds(connections, rounds, &mut run, &mut keys, on_round).await {
        Ok(end) => end,
        Err(error) => RaceEnd::Failed(error),
    };
    // Also after an error or Ctrl-C: a race must leave nothing on a server that others use.
    let left_behind = connections.remove(&keys.made).await.err();
    RaceResult { run, end, left_behind }
}

/// The plan with the settings that the strategy needs. The flaw of SET NX shows only if steps
/// overlap and locks are released.
fn plan_for_strategy(strategy: Strategy, mut plan: RacePlan) -> RacePlan {
    if strategy == Strategy::SetNx {
        plan.overlap = true;
        if plan.fail_every == 0 {
            plan.fail_every = SET_NX_FAILS_EVERY;
        }
    }
    plan
}

/// What all rounds of a race share.
#[derive(Clone, Copy)]
struct Rounds<'r> {
    schema: &'r Schema,
    steps: &'r RaceSteps,
    interrupt: &'r Interrupt,
}

async fn run_rounds(
    connections: &mut Connections,
    rounds: Rounds<'_>,
    run: &mut RaceRun,
    keys: &mut RaceKeys<'_>,
    mut on_round: impl FnMut(),
) -> Result<RaceEnd, StoreError> {
    let Rounds { schema, steps, interrupt } = rounds;
    let service = LoadedService::load(schema, connections.cleanup()).await?;
    // The witness is set before the first round, so that this round has one too.
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
        let course = Course { service: &service, steps, plan: &run.plan, key: &key };
        let round = run_round(&mut connections.workers, course, number, interrupt).await?;
        let Some(mut round) = round else { return Ok(RaceEnd::Interrupted) };
        round.has_witness = witness.renew(connections).await?;
        // Measured last, so that it includes the time until the witness was checked.
        round.lasted = began.elapsed();
        run.add(round);
        on_round();
        // Deleted after each round, so that a killed race leaves the keys of only one round.
        connections.remove(&keys.made.split_off(keys_of_witness)).await?;
    }
    Ok(RaceEnd::Finished)
}

/// Runs one round: all workers begin with one fresh key, the winner finishes, and the losers retry.
/// `None` after Ctrl-C.
///
/// No request is in flight between two phases. With `overlap`, a winner finishes in the phase in
/// which it won.
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
        // No worker got a reply, so that any of their errors explains why.
        for worker in &mut workers {
            if let Some(error) = worker.error.take() {
                return Err(error);
            }
        }
        return Ok(None);
    }
    if interrupt.is_raised() {
        return Ok(None);
    }
    run_phase(&mut workers, &mut round, finish, |worker| worker.holds_lock).await?;
    // Neither the retries nor the handlers of their winners fail.
    let retry = Turn { fails: false, ..begin };
    let finish_retry = Turn { fails: false, ..finish };
    run_phase(&mut workers, &mut round, retry, |worker| !worker.won && worker.is_connected())
        .await?;
    run_phase(&mut workers, &mut round, finish_retry, |worker| worker.holds_lock).await?;
    for worker in workers {
        round.events.extend(worker.events);
    }
    Ok(if interrupt.is_raised() { None } else { Some(round) })
}

/// A worker for each connection. Each round starts with another worker.
fn workers_of_round<'r>(
    connections: &'r mut [WorkerConnection],
    course: Course<'r>,
    number: usize,
) -> Vec<RaceWorker<'r>> {
    let count = u32::try_from(connections.len()).unwrap_or(u32::MAX);
    let mut workers: Vec<_> =
        connections.iter_mut().map(|connection| RaceWorker::new(connection, course)).collect();
    let first = number % workers.len().max(1);
    // The first worker to send usually wins. Without the rotation, one connection would win every
    // round.
    workers.rotate_left(first);
    let clock = Instant::now();
    // The pauses differ, because workers with equal pauses would run at the same time again.
    for (place, worker) in (1..).zip(&mut workers) {
        worker.pause = course.plan.think_time * place / count;
        worker.clock = clock;
    }
    workers
}

/// Releases some of the workers at the same time, and waits for all of them.
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
    // Unconstrained, so that every worker sends its request before the first reply is read. This is
    // the barrier.
    tokio::task::unconstrained(join_all(ready.iter_mut().map(|worker| worker.run(turn)))).await;
    if turn.begins {
        round.released += released.elapsed();
        round.raced += (count_events(&ready) - events_before) as u64;
    }
    for worker in ready {
        // A lost reply is an event of the round. Any other error means that the server cannot serve
        // the race.
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

/// The keys of a race. Their names contain the race's UUID, so that no other client uses them, and
/// their purpose.
struct RaceKeys<'a> {
    schema: &'a Schema,
    name: Uuid,
    /// The Redis keys that may exist, and must be deleted.
    made: Vec<Vec<u8>>,
}

impl RaceKeys<'_> {
    /// Chooses a key for a purpose, whose Redis keys the node of the race serves.
    fn make(&mut self, purpose: &str, connections: &Connections) -> Vec<u8> {
        let mut key = format!("idemctl-race-{}-{purpose}", self.name.simple());
        for number in 1..=MAX_NAMES {
            if connections.serves(&self.schema.redis_keys(key.as_bytes())) {
                break;
            }
            key = format!("idemctl-race-{}-{purpose}-{number}", self.name.simple());
        }
        // Recorded before the key is used, so that it is deleted even if the race fails.
        self.made.extend(self.schema.redis_keys(key.as_bytes()));
        key.into_bytes()
    }
}
