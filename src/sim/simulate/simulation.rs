//! Runs scenarios with schemas, many at the same time, because most of the time they wait for a
//! lock to expire.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::local_servers::LocalServers;
use super::run::ScenarioRun;
use super::story::{Aborted, ScenarioResult};
use crate::domain::schema::Schema;
use crate::domain::simulation::{Cell, History, Story};
use crate::domain::step::cluster_problem;
use crate::interrupt::Interrupt;
use crate::sim::test_keys::{TEST_KEYS_LIVE, removals};
use crate::store::{Client, Connection, StoreError, Writable};

/// How many scenarios run at the same time. They wait in parallel, but few enough run that they do
/// not delay each other.
const AT_ONCE: usize = 40;

/// The TTLs of locks that expire in a story. If the machine is too slow for one TTL, the next is
/// tried.
const LOCK_TTLS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The idempotency key on a local server, on which no other record exists.
const PRIVATE_KEY: &[u8] = b"order-1";

/// How many names are tried for a key that one node of a cluster serves. With a hundred masters,
/// each serves one name in a hundred.
const MAX_NAMES: usize = 10_000;

/// A story of how idempotency can fail. It can run with any schema.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub story: Story,
    pub(super) run: for<'a, 's> fn(&'a ScenarioEnvironment<'s>) -> RunningScenario<'a>,
}

pub(super) type RunningScenario<'a> = Pin<Box<dyn Future<Output = ScenarioResult> + 'a>>;

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.story.name)
    }
}

/// The parameters of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    pub schemas: Vec<Arc<Schema>>,
    /// Every known schema, because some of them share Redis keys.
    pub all: Vec<Arc<Schema>>,
    pub scenarios: Vec<Scenario>,
    /// How often a scenario that depends on chance is repeated.
    pub repeat: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Debug)]
pub struct Simulated {
    /// A cell for each schema and scenario, ordered by schema. Incomplete after Ctrl-C or an error.
    pub cells: Vec<Cell>,
    /// The error that ended the simulation early.
    pub failed: Option<StoreError>,
    pub interrupted: bool,
    /// Why Redis keys may remain until their TTL expires; `None` if all were deleted.
    pub left_behind: Option<StoreError>,
}

/// The Redis keys on the operator's server that must be deleted.
type MadeKeys = Rc<RefCell<Vec<Vec<u8>>>>;

/// Runs every scenario with every schema on this server. Scenarios that need their own server get a
/// local one. All created Redis keys are deleted before this returns, however the simulation ends.
pub async fn simulate(
    plan: &SimulationPlan,
    client: &Client,
    server: &Writable,
    servers: &LocalServers,
    interrupt: &Interrupt,
    mut on_cell: impl FnMut(),
) -> Simulated {
    let target = match client.playground(server).await {
        Ok(target) => target,
        Err(error) => {
            return Simulated {
                cells: Vec::new(),
                failed: Some(error),
                interrupted: false,
                left_behind: None,
            };
        }
    };
    let made_keys = MadeKeys::default();
    let venue = Venue { client, target: &target };
    let mut runs = Vec::new();
    // The last scenarios take longest, and are therefore started first.
    for (order, scenario) in plan.scenarios.iter().enumerate().rev() {
        for (index, schema) in plan.schemas.iter().enumerate() {
            let made_keys = Rc::clone(&made_keys);
            runs.push(async move {
                ((index, order), run_cell(plan, scenario, schema, venue, servers, &made_keys).await)
            });
        }
    }
    let mut running = stream::iter(runs).buffer_unordered(AT_ONCE);
    let mut cells = Vec::new();
    let mut failed = None;
    let mut interrupted = false;
    loop {
        match interrupt.unless_raised(running.next()).await {
            Some(Some((place, Ok(cell)))) => {
                cells.push((place, cell));
                on_cell();
            }
            Some(Some((_, Err(error)))) => {
                failed = Some(error);
                break;
            }
            Some(None) => break,
            None => {
                interrupted = true;
                break;
            }
        }
    }
    // Scenarios that still run hold connections, and must not create further keys.
    drop(running);
    cells.sort_by_key(|(place, _)| *place);
    let cells = cells.into_iter().map(|(_, cell)| cell).collect();
    let left_behind = remove(venue, &made_keys).await.err();
    Simulated { cells, failed, interrupted, left_behind }
}

async fn run_cell(
    plan: &SimulationPlan,
    scenario: &Scenario,
    schema: &Schema,
    venue: Venue<'_>,
    servers: &LocalServers,
    made_keys: &MadeKeys,
) -> Result<Cell, StoreError> {
    let simulated = schema.living_at_most(TEST_KEYS_LIVE);
    for lock_ttl in LOCK_TTLS {
        let environment = ScenarioEnvironment {
            schema: &simulated,
            own: schema,
            all: &plan.all,
            venue,
            servers,
            lock_ttl,
            repeat: plan.repeat,
            seed: plan.seed,
            made_keys: Rc::clone(made_keys),
            histories: RefCell::default(),
        };
        match (scenario.run)(&environment).await {
            Ok(()) => {
                return Ok(Cell::from_takes(
                    &schema.name,
                    scenario.story,
                    environment.into_histories(),
                ));
            }
            Err(Aborted::NotApplicable(why)) => {
                return Ok(Cell::not_applicable(&schema.name, scenario.story, why));
            }
            Err(Aborted::Store(error)) => return Err(error),
            // The histories of this attempt are dropped with its environment, and the next attempt
            // uses a longer TTL.
            Err(Aborted::Late) => {}
        }
    }
    let why = "this machine is too slow to tell: locks ended before their moment".to_owned();
    Ok(Cell::not_applicable(&schema.name, scenario.story, why))
}

async fn remove(venue: Venue<'_>, made_keys: &MadeKeys) -> Result<(), StoreError> {
    let redis_keys = made_keys.take();
    if redis_keys.is_empty() {
        return Ok(());
    }
    // The connections of the scenarios are closed by now.
    let mut connection = Connection::connect(venue.target).await?;
    for removal in removals(&redis_keys, venue.client.is_cluster()) {
        connection.ask(&removal).await?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Venue<'s> {
    client: &'s Client,
    /// The server, or in a cluster the master on which scenarios run.
    target: &'s Writable,
}

/// The parameters of a scenario: one schema, the servers and the TTL of locks. It collects the
/// history of each run.
pub(crate) struct ScenarioEnvironment<'s> {
    /// The schema with TTLs that are short enough for a simulation.
    pub(super) schema: &'s Schema,
    /// The schema with its own TTLs, in which times are reported.
    own: &'s Schema,
    pub(super) all: &'s [Arc<Schema>],
    venue: Venue<'s>,
    pub(super) servers: &'s LocalServers,
    /// The TTL of a lock that expires in the story.
    pub(super) lock_ttl: Duration,
    pub(super) repeat: usize,
    pub(super) seed: u64,
    made_keys: MadeKeys,
    histories: RefCell<Vec<Rc<RefCell<History>>>>,
}

impl<'s> ScenarioEnvironment<'s> {
    /// Begins a run on the operator's server, with a new key.
    pub(super) async fn run(&self, title: &str) -> ScenarioResult<Rc<ScenarioRun<'s>>> {
        let key = self.served_key()?;
        // Recorded before the first request, because a cancelled run may have set the keys.
        self.made_keys.borrow_mut().extend(self.schema.redis_keys(&key));
        self.begin(title, key, self.venue.target, false).await
    }

    /// Begins a run on a local server.
    pub(super) async fn run_on(
        &self,
        title: &str,
        target: &Writable,
    ) -> ScenarioResult<Rc<ScenarioRun<'s>>> {
        // Not recorded in `made_keys`, because the key disappears with the local server.
        self.begin(title, PRIVATE_KEY.to_vec(), target, true).await
    }

    async fn begin(
        &self,
        title: &str,
        key: Vec<u8>,
        target: &Writable,
        is_private: bool,
    ) -> ScenarioResult<Rc<ScenarioRun<'s>>> {
        let history =
            Rc::new(RefCell::new(History { take: title.to_owned(), ..History::default() }));
        self.histories.borrow_mut().push(Rc::clone(&history));
        let run = ScenarioRun::begin(
            self.schema,
            self.own,
            key,
            target,
            is_private,
            self.lock_ttl,
            history,
        )
        .await?;
        Ok(Rc::new(run))
    }

    /// A key whose Redis keys are served by the node of the scenario.
    fn served_key(&self) -> ScenarioResult<Vec<u8>> {
        let Venue { client, target } = self.venue;
        if client.is_cluster()
            && let Some(problem) = cluster_problem(self.schema, PRIVATE_KEY)
        {
            return Err(Aborted::NotApplicable(format!("this server is a cluster: {problem}")));
        }
        for _ in 0..MAX_NAMES {
            let key = format!("idemctl-simulate-{}", Uuid::new_v4().simple()).into_bytes();
            if client.serves(target, &self.schema.redis_keys(&key)) {
                return Ok(key);
            }
        }
        Err(Aborted::NotApplicable(
            "no key was found whose Redis keys one node of the cluster serves".to_owned(),
        ))
    }

    fn into_histories(self) -> Vec<History> {
        self.histories.into_inner().iter().map(|history| history.take()).collect()
    }
}
