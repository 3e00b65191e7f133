//! Explorations on a real server: executes the calls that the search requests, and the schedules of
//! violations.

mod culprit;
mod fault_alone;
mod task;
mod test_server;
mod workers;

pub(crate) use self::fault_alone::FaultExplorer;
pub(crate) use self::task::{
    ExplorationPlace, ExplorationTask, NotExplained, explain, unexplorable_because,
};
pub(crate) use self::workers::usual_faults;
