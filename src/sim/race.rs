//! A race: rounds on fresh keys, judged one by one, and nothing left behind.

use uuid::Uuid;

use crate::domain::race::{Plan, Run, Strategy, Ttls};
use crate::domain::schema::Schema;
use crate::interrupt::Interrupt;
use crate::sim::round;
use crate::sim::service::Service;
use crate::sim::track::Track;
use crate::store::StoreError;

/// After how many rounds their keys are removed, so that a long race does not fill the server.
const ROUNDS_BETWEEN_CLEANING: usize = 200;

/// How many names are tried for a key that a cluster's node serves: of a hundred masters each serves one in a hundred.
const MOST_NAMES: usize = 10_000;

/// In which rounds the handler fails for SET NX, unless the operator says: its flaw is what comes after a release.
const SET_NX_FAILS_EVERY: usize = 4;

/// A race that is over.
pub struct Raced {
    /// What the rounds played come to.
    pub run: Run,
    /// How it ended.
    pub ended: Ended,
    /// Why keys may be left behind, if they are; each still has its TTL.
    pub left_behind: Option<StoreError>,
}

/// How a race ended.
#[derive(Debug)]
pub enum Ended {
    /// Every round was played.
    Played,
    /// The operator stopped it.
    Interrupted,
    /// The server went away or refused service.
    Failed(StoreError),
}

/// Races a schema with a strategy. Every key made is removed before it returns, however it ends.
pub async fn race(
    track: &mut Track,
    schema: &Schema,
    (strategy, plan): (Strategy, Plan),
    interrupt: &Interrupt,
    mut on_round: impl FnMut(),
) -> Raced {
    let plan = adapted(strategy, plan);
    let ttls = Ttls { lock: schema.lock_ttl, result: schema.result_ttl };
    let mut run = Run::new(&schema.name, strategy, plan, ttls);
    let mut keys = Keys { schema, name: Uuid::new_v4(), made: Vec::new() };
    let (mut left_behind, mut ended) = (None, Ended::Played);
    match Service::introduce(schema, strategy, track.broom()).await {
        Ok(service) => {
            while run.rounds < run.plan.rounds && matches!(ended, Ended::Played) {
                ended = one_round(track, &service, &mut run, &mut keys, interrupt).await;
                on_round();
                if keys.made.len() >= ROUNDS_BETWEEN_CLEANING {
                    left_behind = track.remove(&keys.take()).await.err().or(left_behind);
                }
            }
        }
        Err(error) => ended = Ended::Failed(error),
    }
    left_behind = track.remove(&keys.take()).await.err().or(left_behind);
    Raced { run, ended, left_behind }
}

async fn one_round(
    track: &mut Track,
    service: &Service<'_>,
    run: &mut Run,
    keys: &mut Keys<'_>,
    interrupt: &Interrupt,
) -> Ended {
    if interrupt.is_raised() {
        return Ended::Interrupted;
    }
    if let Err(error) = track.mend().await {
        return Ended::Failed(error);
    }
    let (number, key) = (run.rounds + 1, keys.make(run.rounds + 1, |redis_keys| track.serves(redis_keys)));
    match round::play(&mut track.workers, service, (&run.plan, number), &key, interrupt).await {
        Ok(Some(round)) => {
            run.add(round);
            Ended::Played
        }
        Ok(None) => Ended::Interrupted,
        Err(error) => Ended::Failed(error),
    }
}

/// SET NX shows its flaw only where steps overlap and locks are released.
fn adapted(strategy: Strategy, plan: Plan) -> Plan {
    match strategy {
        Strategy::SetNx if plan.fail_every == 0 => Plan { overlap: true, fail_every: SET_NX_FAILS_EVERY, ..plan },
        Strategy::SetNx => Plan { overlap: true, ..plan },
        _ => plan,
    }
}

/// The keys of a race: named by it, so that they are nobody else's, and by the round.
struct Keys<'a> {
    schema: &'a Schema,
    name: Uuid,
    /// The Redis keys that may be there.
    made: Vec<Vec<u8>>,
}

impl Keys<'_> {
    /// A round's key: one of those that the track's node serves.
    fn make(&mut self, round: usize, is_served: impl Fn(&[Vec<u8>]) -> bool) -> Vec<u8> {
        let mut key = format!("idemctl-race-{}-{round}", self.name.simple());
        for number in 1..=MOST_NAMES {
            if is_served(&self.schema.redis_keys(key.as_bytes())) {
                break;
            }
            key = format!("idemctl-race-{}-{round}-{number}", self.name.simple());
        }
        self.made.extend(self.schema.redis_keys(key.as_bytes()));
        key.into_bytes()
    }

    /// Every Redis key that may be there; from here on they count as removed.
    fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.made)
    }
}
