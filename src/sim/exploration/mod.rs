//! Explorations on a real server: the calls that the search asks for, and the schedules that workers execute again.

mod task;
mod test_server;
mod workers;

pub(crate) use self::task::{ExplorationPlace, ExplorationTask, NotExplained, explain};
