//! Schedules that real workers play on a real server: the scenarios in which idempotency can fail,
//! and the schedules of explorations.

mod job;
mod local_servers;
mod outcome;
mod play;
mod player;
mod redis_faults;
mod replay;
mod simulation;

pub(super) use self::job::{
    Aborted, ClientRequest, Job, OTHER_PAYMENT, PAYMENT, owner_of, unused_payment,
};
pub use self::local_servers::LocalServers;
pub(super) use self::player::Player;
pub(super) use self::replay::{Replayed, replay};
pub use self::simulation::{Simulated, SimulationPlan, simulate};
