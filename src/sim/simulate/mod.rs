//! Stories of how idempotency fails, played through a schema's own steps on a real server.

mod abort;
mod client;
mod cluster;
mod environment;
mod job;
mod leftovers;
mod play;
mod private_servers;
mod retell;
mod retold;
mod run;
mod scenario;
mod scenarios;
mod story;
mod worker;
mod worker_calls;

pub(super) use self::abort::{Abort, Played};
pub(super) use self::environment::Environment;
pub(super) use self::job::Job;
pub use self::private_servers::Servers;
pub(super) use self::retell::{Retelling, Retold};
pub use play::{Plan, Simulated, simulate};
pub use scenario::Scenario;
pub use scenarios::ALL as SCENARIOS;
pub(super) use story::{Begun, Lock, OTHER_PAYMENT, Operation, PAYMENT};
