//! A race: rounds on fresh keys, judged one by one, and nothing left behind.

use std::time::Instant;

use uuid::Uuid;

use super::connections::Track;
use super::round;
use crate::domain::race::{Plan, Round, Run, Strategy, Ttls};
use crate::domain::schema::Schema;
use crate::interrupt::Interrupt;
use crate::sim::lifetime::TEST_KEYS_LIVE;
use crate::sim::service::Service;
use crate::sim::witness::Witness;
use crate::store::StoreError;

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
    let schema = &schema.living_at_most(TEST_KEYS_LIVE);
    let plan = adapted(strategy, plan);
    let ttls = Ttls { lock: schema.lock_ttl, result: schema.result_ttl };
    let mut run = Run::new(&schema.name, strategy, plan, ttls);
    let mut keys = Keys { schema, name: Uuid::new_v4(), made: Vec::new() };
    let ended = rounds(track, (schema, strategy), (&mut run, &mut keys), interrupt, &mut on_round).await;
    let ended = ended.unwrap_or_else(Ended::Failed);
    let left_behind = track.remove(&keys.made).await.err();
    Raced { run, ended, left_behind }
}

async fn rounds(
    track: &mut Track,
    (schema, strategy): (&Schema, Strategy),
    (run, keys): (&mut Run, &mut Keys<'_>),
    interrupt: &Interrupt,
    on_round: &mut impl FnMut(),
) -> Result<Ended, StoreError> {
    let service = Service::introduce(schema, strategy, track.broom()).await?;
    let mut witness = Witness::new(schema, &keys.make("witness", track), "nobody");
    let standing = keys.made.len();
    witness.renew(track).await?;
    while run.rounds < run.plan.rounds {
        if interrupt.is_raised() {
            return Ok(Ended::Interrupted);
        }
        track.mend().await?;
        let (number, began) = (run.rounds + 1, Instant::now());
        let key = keys.make(&number.to_string(), track);
        let played = round::play(&mut track.workers, &service, (&run.plan, number), &key, interrupt).await?;
        let Some(round) = played else { return Ok(Ended::Interrupted) };
        let has_witness = witness.renew(track).await?;
        run.add(Round { has_witness, lasted: began.elapsed(), ..round });
        on_round();
        // At once, so that a killed race leaves the keys of one round.
        track.remove(&keys.made.split_off(standing)).await?;
    }
    Ok(Ended::Played)
}

/// SET NX shows its flaw only where steps overlap and locks are released.
fn adapted(strategy: Strategy, plan: Plan) -> Plan {
    match strategy {
        Strategy::SetNx if plan.fail_every == 0 => Plan { overlap: true, fail_every: SET_NX_FAILS_EVERY, ..plan },
        Strategy::SetNx => Plan { overlap: true, ..plan },
        _ => plan,
    }
}

/// The keys of a race: named by it, so that they are nobody else's, and by what they are for.
struct Keys<'a> {
    schema: &'a Schema,
    name: Uuid,
    /// The Redis keys that may be there.
    made: Vec<Vec<u8>>,
}

impl Keys<'_> {
    /// A key by what it is for: one of those that the track's node serves.
    fn make(&mut self, what: &str, track: &Track) -> Vec<u8> {
        let mut key = format!("idemctl-race-{}-{what}", self.name.simple());
        for number in 1..=MOST_NAMES {
            if track.serves(&self.schema.redis_keys(key.as_bytes())) {
                break;
            }
            key = format!("idemctl-race-{}-{what}-{number}", self.name.simple());
        }
        self.made.extend(self.schema.redis_keys(key.as_bytes()));
        key.into_bytes()
    }
}
