//! A race: rounds on fresh keys, judged one by one, and nothing left behind.

use std::time::Instant;

use uuid::Uuid;

use super::connections::Connections;
use super::round;
use super::witness::Witness;
use crate::domain::race::{Plan, Round, Run, Strategy, Ttls};
use crate::domain::schema::Schema;
use crate::interrupt::Interrupt;
use crate::sim::service::Service;
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::StoreError;

/// Names that are tried at most for a key that a cluster's node serves: of a hundred masters each serves one in a hundred.
const MOST_NAMES: usize = 10_000;

/// In every such round the handler fails for SET NX, unless the operator says otherwise: SET NX is flawed after a release.
const SET_NX_FAILS_EVERY: usize = 4;

pub struct Raced {
    pub run: Run,
    pub ended: Ended,
    /// Why keys may be left behind, until their TTL ends.
    pub left_behind: Option<StoreError>,
}

#[derive(Debug)]
pub enum Ended {
    Played,
    Interrupted,
    Failed(StoreError),
}

/// Races a schema with a strategy. Every key that was made is removed before this returns, however the race ends.
pub async fn race(
    connections: &mut Connections,
    schema: &Schema,
    strategy: Strategy,
    plan: Plan,
    interrupt: &Interrupt,
    mut on_round: impl FnMut(),
) -> Raced {
    let schema = &schema.living_at_most(TEST_KEYS_LIVE);
    let plan = adapted(strategy, plan);
    let ttls = Ttls { lock: schema.lock_ttl, result: schema.result_ttl };
    let mut run = Run::new(&schema.name, strategy, plan, ttls);
    let mut keys = Keys { schema, name: Uuid::new_v4(), made: Vec::new() };
    let ended = rounds(connections, schema, strategy, &mut run, &mut keys, interrupt, &mut on_round).await;
    let ended = ended.unwrap_or_else(Ended::Failed);
    let left_behind = connections.remove(&keys.made).await.err();
    Raced { run, ended, left_behind }
}

async fn rounds(
    connections: &mut Connections,
    schema: &Schema,
    strategy: Strategy,
    run: &mut Run,
    keys: &mut Keys<'_>,
    interrupt: &Interrupt,
    on_round: &mut impl FnMut(),
) -> Result<Ended, StoreError> {
    let service = Service::introduce(schema, strategy, connections.cleanup()).await?;
    let mut witness = Witness::new(schema, &keys.make("witness", connections), "nobody");
    let standing = keys.made.len();
    witness.renew(connections).await?;
    while run.rounds < run.plan.rounds {
        if interrupt.is_raised() {
            return Ok(Ended::Interrupted);
        }
        connections.mend().await?;
        let (number, began) = (run.rounds + 1, Instant::now());
        let key = keys.make(&number.to_string(), connections);
        let played = round::play(&mut connections.workers, &service, &run.plan, number, &key, interrupt).await?;
        let Some(round) = played else { return Ok(Ended::Interrupted) };
        let has_witness = witness.renew(connections).await?;
        run.add(Round { has_witness, lasted: began.elapsed(), ..round });
        on_round();
        // The keys go after each round, so that a killed race leaves the keys of one round.
        connections.remove(&keys.made.split_off(standing)).await?;
    }
    Ok(Ended::Played)
}

/// The plan with what the strategy needs: SET NX shows its flaw only where steps overlap and locks are released.
fn adapted(strategy: Strategy, plan: Plan) -> Plan {
    match strategy {
        Strategy::SetNx if plan.fail_every == 0 => Plan { overlap: true, fail_every: SET_NX_FAILS_EVERY, ..plan },
        Strategy::SetNx => Plan { overlap: true, ..plan },
        _ => plan,
    }
}

/// The keys of a race. Their names hold the race's UUID, so that they are nobody else's, and what each is for.
struct Keys<'a> {
    schema: &'a Schema,
    name: Uuid,
    /// The Redis keys that may be there.
    made: Vec<Vec<u8>>,
}

impl Keys<'_> {
    /// Names a key by what it is for, so that the node serves it that is raced on.
    fn make(&mut self, what: &str, connections: &Connections) -> Vec<u8> {
        let mut key = format!("idemctl-race-{}-{what}", self.name.simple());
        for number in 1..=MOST_NAMES {
            if connections.serves(&self.schema.redis_keys(key.as_bytes())) {
                break;
            }
            key = format!("idemctl-race-{}-{what}-{number}", self.name.simple());
        }
        self.made.extend(self.schema.redis_keys(key.as_bytes()));
        key.into_bytes()
    }
}
