//! Plays scenarios with schemas, many at a time, for most of the time they wait for a lock to run out.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::abort::Abort;
use super::environment::{Environment, Left, Venue};
use super::private_servers::Servers;
use crate::domain::schema::Schema;
use crate::domain::simulation::Cell;
use crate::interrupt::Interrupt;
use crate::sim::simulate::Scenario;
use crate::sim::test_keys::{TEST_KEYS_LIVE, removals};
use crate::store::{Client, Connection, StoreError, Writable};

const AT_ONCE: usize = 40;

/// How long locks live that are to run out. Where the machine is too slow for the first, the next is played.
const LOCK_TTLS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(10)];

#[derive(Debug, Clone)]
pub struct Plan {
    pub schemas: Vec<Arc<Schema>>,
    /// Every schema there is, for some share Redis keys.
    pub all: Vec<Arc<Schema>>,
    pub scenarios: Vec<Scenario>,
    /// How often a scenario is played that depends on chance.
    pub repeat: usize,
    /// The seed of all chance.
    pub seed: u64,
}

#[derive(Debug)]
pub struct Simulated {
    /// A cell for each schema and scenario, by schema; fewer after Ctrl-C or an error.
    pub cells: Vec<Cell>,
    /// The error that ended the simulation early.
    pub failed: Option<StoreError>,
    pub interrupted: bool,
    /// Why Redis keys may be left behind, until their TTL ends.
    pub left_behind: Option<StoreError>,
}

/// Plays every scenario with every schema on this server; scenarios that need a server of their own get a private one. Every
/// Redis key that was made is removed before this returns, however the simulation ends.
pub async fn simulate(
    plan: &Plan,
    client: &Client,
    server: &Writable,
    servers: &Servers,
    interrupt: &Interrupt,
    mut on_cell: impl FnMut(),
) -> Simulated {
    let left = Left::default();
    let target = match client.playground(server).await {
        Ok(target) => target,
        Err(error) => {
            return Simulated { cells: Vec::new(), failed: Some(error), interrupted: false, left_behind: None };
        }
    };
    let venue = Venue { client, target: &target };
    let schemas = &plan.schemas;
    let pairs = plan.scenarios.iter().enumerate().rev().flat_map(|(order, scenario)| {
        schemas.iter().enumerate().map(move |(index, schema)| ((index, order), scenario, schema))
    });
    // The scenarios that take longest stand last in the order of telling, and are played first.
    let playing = pairs.map(|(place, scenario, schema)| {
        let left = Rc::clone(&left);
        async move { (place, cell(plan, scenario, schema, venue, servers, &left).await) }
    });
    let mut playing = stream::iter(playing).buffer_unordered(AT_ONCE);
    let mut cells = Vec::new();
    let (mut failed, mut interrupted) = (None, false);
    loop {
        match interrupt.unless_raised(playing.next()).await {
            None => interrupted = true,
            Some(None) => {}
            Some(Some((place, Ok(cell)))) => {
                cells.push((place, cell));
                on_cell();
                continue;
            }
            Some(Some((_, Err(error)))) => failed = Some(error),
        }
        break;
    }
    drop(playing);
    cells.sort_by_key(|(place, _)| *place);
    let cells = cells.into_iter().map(|(_, cell)| cell).collect();
    let left_behind = remove(venue, &left).await.err();
    Simulated { cells, failed, interrupted, left_behind }
}

async fn cell(
    plan: &Plan,
    scenario: &Scenario,
    schema: &Schema,
    venue: Venue<'_>,
    servers: &Servers,
    left: &Left,
) -> Result<Cell, StoreError> {
    let played = schema.living_at_most(TEST_KEYS_LIVE);
    for lock_ttl in LOCK_TTLS {
        let environment = Environment {
            schema: &played,
            own: schema,
            all: &plan.all,
            venue,
            servers,
            lock_ttl,
            repeat: plan.repeat,
            seed: plan.seed,
            left: Rc::clone(left),
            histories: RefCell::default(),
        };
        match (scenario.play)(&environment).await {
            Ok(()) => return Ok(Cell::played(&schema.name, scenario.story, environment.histories())),
            Err(Abort::NotApplicable(why)) => return Ok(Cell::not_applicable(&schema.name, scenario.story, why)),
            Err(Abort::Store(error)) => return Err(error),
            Err(Abort::Late) => {}
        }
    }
    let why = "this machine is too slow to tell: locks ended before their moment".to_owned();
    Ok(Cell::not_applicable(&schema.name, scenario.story, why))
}

async fn remove(venue: Venue<'_>, left: &RefCell<Vec<Vec<u8>>>) -> Result<(), StoreError> {
    let redis_keys = left.take();
    if redis_keys.is_empty() {
        return Ok(());
    }
    let mut connection = Connection::connect(venue.target).await?;
    for removal in removals(&redis_keys, venue.client.is_cluster()) {
        connection.ask(&removal).await?;
    }
    Ok(())
}
