//! Stories of how idempotency fails, played through a schema's own steps on a real server.

mod cluster;
mod instance;
mod play;
mod scenario;
mod scenarios;
mod servers;
mod stage;
mod take;

pub use play::{Plan, Simulated, simulate};
pub use scenario::Scenario;
pub use scenarios::ALL as SCENARIOS;
pub use servers::Servers;
