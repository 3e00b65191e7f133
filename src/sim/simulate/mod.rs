//! Scenarios in which idempotency can fail, executed with a schema's own steps on a real server.

mod client;
mod local_servers;
mod replay;
mod run;
mod scenarios;
mod simulation;
mod story;
mod worker;
mod worker_calls;

pub use self::local_servers::LocalServers;
pub(super) use self::replay::{Replayed, ScheduleReplay};
use self::run::ScenarioRun;
pub use self::scenarios::ALL as SCENARIOS;
use self::simulation::ScenarioEnvironment;
pub use self::simulation::{Scenario, Simulated, SimulationPlan, simulate};
pub(super) use self::story::{
    Aborted, ClientRequest, OTHER_PAYMENT, PAYMENT, owner_of, unused_payment,
};
use self::story::{BeginOutcome, LockLifetime, ScenarioResult};
pub(super) use self::worker::Job;
use self::worker::ScenarioWorker;
