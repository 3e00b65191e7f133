//! Runs scenarios with schemas, many at the same time, because most of the time they wait for a
//! lock to expire.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::job::{Aborted, Played};
use super::local_servers::{Cluster, LocalServer, LocalServers};
use super::play::PlayedTake;
use super::player::Player;
use super::redis_faults::{POLICIES, Replicas};
use crate::domain::exploration::WorkerProgram;
use crate::domain::schema::Schema;
use crate::domain::simulation::{ActKind, Cell, Each, Excuse, History, Place, Scenario, Take};
use crate::domain::step::cluster_problem;
use crate::interrupt::Interrupt;
use crate::sim::test_keys::{TEST_KEYS_LIVE, removals};
use crate::store::{Client, Connection, StoreError, Writable, pack};

/// How many scenarios run at the same time. They wait in parallel, but few enough run that they do
/// not delay each other.
const AT_ONCE: usize = 40;

/// The TTLs of locks. If the machine is too slow for one TTL, the next is tried.
const LOCK_TTLS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// The idempotency key on a local server, on which no other record exists.
const PRIVATE_KEY: &[u8] = b"order-1";

/// How many names are tried for a key that one node of a cluster serves. With a hundred masters,
/// each serves one name in a hundred.
const MAX_NAMES: usize = 10_000;

/// The parameters of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    pub schemas: Vec<Arc<Schema>>,
    /// Every known schema, because some of them share Redis keys.
    pub all: Vec<Arc<Schema>>,
    pub scenarios: Vec<&'static Scenario>,
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
    let mut simulated =
        Simulated { cells: Vec::new(), failed: None, interrupted: false, left_behind: None };
    let target = match client.playground(server).await {
        Ok(target) => target,
        Err(error) => {
            simulated.failed = Some(error);
            return simulated;
        }
    };
    let venue = Venue { plan, client, target: &target, servers, made_keys: RefCell::default() };
    let mut runs = Vec::new();
    // The last scenarios take longest, and are therefore started first.
    for (order, scenario) in plan.scenarios.iter().enumerate().rev() {
        for (index, schema) in plan.schemas.iter().enumerate() {
            let venue = &venue;
            runs.push(async move { ((index, order), venue.play_cell(scenario, schema).await) });
        }
    }
    let mut running = stream::iter(runs).buffer_unordered(AT_ONCE);
    let mut cells = Vec::new();
    loop {
        match interrupt.unless_raised(running.next()).await {
            Some(Some((place, Ok(cell)))) => {
                cells.push((place, cell));
                on_cell();
            }
            Some(Some((_, Err(error)))) => {
                simulated.failed = Some(error);
                break;
            }
            Some(None) => break,
            None => {
                simulated.interrupted = true;
                break;
            }
        }
    }
    // Scenarios that still run hold connections, and must not create further keys.
    drop(running);
    cells.sort_by_key(|(place, _)| *place);
    simulated.cells = cells.into_iter().map(|(_, cell)| cell).collect();
    simulated.left_behind = venue.remove_keys().await.err();
    simulated
}

/// Where the scenarios are played.
struct Venue<'s> {
    plan: &'s SimulationPlan,
    client: &'s Client,
    /// The server, or in a cluster the master on which scenarios run.
    target: &'s Writable,
    servers: &'s LocalServers,
    /// The Redis keys on the operator's server that must be deleted.
    made_keys: RefCell<Vec<Vec<u8>>>,
}

impl Venue<'_> {
    async fn play_cell(
        &self,
        scenario: &'static Scenario,
        schema: &Arc<Schema>,
    ) -> Result<Cell, StoreError> {
        for lock_ttl in LOCK_TTLS {
            let why = match self.play_takes(scenario, schema, lock_ttl).await {
                Ok(takes) if takes.is_empty() => scenario.otherwise.clone(),
                Ok(takes) => return Ok(Cell::from_takes(&schema.name, scenario, takes)),
                Err(Aborted::NotApplicable(why)) => why,
                Err(Aborted::Store(error)) => return Err(error),
                // The next attempt uses a longer TTL.
                Err(Aborted::Late) => continue,
            };
            return Ok(Cell::not_applicable(&schema.name, scenario, why));
        }
        let why = "this machine is too slow to tell: locks ended before their moment".to_owned();
        Ok(Cell::not_applicable(&schema.name, scenario, why))
    }

    async fn play_takes(
        &self,
        scenario: &'static Scenario,
        schema: &Arc<Schema>,
        lock_ttl: Duration,
    ) -> Played<Vec<History>> {
        let mut others = Vec::new();
        for other in &self.plan.all {
            let is_other = other.name != schema.name && other.unplayable_because().is_none();
            if is_other && schema.has_templates_of(other) {
                others.push(&**other);
            }
        }
        let mut takes = Vec::new();
        let mut local = None;
        for take in &scenario.takes {
            if take.needs.is_some_and(|need| !need.is_met(schema)) {
                continue;
            }
            let between =
                |calls: usize| (1..calls).map(|call| format!("{call} of {calls}")).collect();
            let words: Vec<String> = match take.each {
                Each::Once => vec!["1".to_owned()],
                Each::Round => (1..=self.plan.repeat).map(|round| round.to_string()).collect(),
                Each::BeginCall => between(schema.begin_calls().len()),
                Each::CompleteCall => between(schema.complete_calls().len()),
                Each::OtherSchema => others.iter().map(|other| other.name.clone()).collect(),
                Each::Policy => POLICIES.map(str::to_owned).to_vec(),
            };
            for (index, word) in words.into_iter().enumerate() {
                if scenario.place == Place::Local && local.is_none() {
                    local = Some(self.servers.start(&[]).await?);
                }
                let mut own = vec![&**schema];
                if take.each == Each::OtherSchema {
                    own.push(others[index]);
                }
                let run = TakeRun { place: scenario.place, take, word, index, own, lock_ttl };
                takes.push(self.play_take(run, local.as_ref()).await?);
            }
        }
        Ok(takes)
    }

    async fn play_take(&self, run: TakeRun<'_>, local: Option<&LocalServer>) -> Played<History> {
        let TakeRun { place, take, word, index, own, lock_ttl } = run;
        let schema = own[0];
        // The TTL of a result must not be longer than the story waits for its end.
        let waits = take.acts.iter().any(|act| act.kind == ActKind::ResultExpiry);
        let longest = if waits { 2 * lock_ttl } else { TEST_KEYS_LIVE };
        let played = own.iter().map(|schema| Arc::new(schema.living_at_most(longest))).collect();
        let program = WorkerProgram::new(played).map_err(Aborted::NotApplicable)?;
        let mut cluster = None;
        let mut replicas = None;
        let mut key = PRIVATE_KEY.to_vec();
        let target = match place {
            Place::Given => {
                key = self.served_key(schema)?;
                // Recorded before the first request, because a cancelled run may have set the keys.
                self.made_keys.borrow_mut().extend(schema.redis_keys(&key));
                self.target
            }
            Place::Local => local.map_or(self.target, |server| &server.target),
            Place::Cluster => cluster.insert(Cluster::start(self.servers).await?).target(),
            Place::Replicated => replicas.insert(Replicas::start(self.servers).await?).target(),
        };
        let mut player = Player::new(&program, &key, target, place != Place::Given).await?;
        if place == Place::Local {
            // The takes of a scenario use the same key.
            player.send(&pack(["FLUSHALL"])).await?;
        }
        if take.each == Each::Policy {
            player.send(&pack(["CONFIG", "SET", "maxmemory-policy", &word])).await?;
        }
        if let Some(replicas) = &replicas {
            replicas.cut_link(&mut player).await?;
        }
        player.cluster = cluster;
        let history = player.history();
        history.take = take.title.replace("{}", &word);
        // If the schema compares payloads, a mistake is its own.
        let is_own = take.excuse == Some(Excuse::NotCompared) && schema.tells_payloads_apart();
        history.excuse = if is_own { None } else { take.excuse };
        let played = PlayedTake {
            player,
            take,
            calls: index + 1,
            seed: self.plan.seed.wrapping_add(index as u64),
            own,
            lock_ttl,
            replicas,
            workers: Vec::new(),
            has_client: false,
            held_until: None,
            lock_of: None,
            result_of: None,
        };
        played.play().await
    }

    /// A key whose Redis keys are served by the node of the scenario.
    fn served_key(&self, schema: &Schema) -> Played<Vec<u8>> {
        if self.client.is_cluster()
            && let Some(problem) = cluster_problem(schema, PRIVATE_KEY)
        {
            return Err(Aborted::NotApplicable(format!("this server is a cluster: {problem}")));
        }
        for _ in 0..MAX_NAMES {
            let key = format!("idemctl-simulate-{}", Uuid::new_v4().simple()).into_bytes();
            if self.client.serves(self.target, &schema.redis_keys(&key)) {
                return Ok(key);
            }
        }
        Err(Aborted::NotApplicable(
            "no key was found whose Redis keys one node of the cluster serves".to_owned(),
        ))
    }

    async fn remove_keys(&self) -> Result<(), StoreError> {
        let redis_keys = self.made_keys.take();
        if redis_keys.is_empty() {
            return Ok(());
        }
        // The connections of the scenarios are closed by now.
        let mut connection = Connection::connect(self.target).await?;
        for removal in removals(&redis_keys, self.client.is_cluster()) {
            connection.ask(&removal).await?;
        }
        Ok(())
    }
}

/// One take with one schema.
struct TakeRun<'s> {
    place: Place,
    take: &'static Take,
    /// What differs in each repetition, in a word.
    word: String,
    /// The index of the repetition.
    index: usize,
    own: Vec<&'s Schema>,
    lock_ttl: Duration,
}
