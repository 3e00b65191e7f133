//! Explorations on a real server: the calls that the search asks for, and the histories that workers play again.

mod cast;
mod explain;
mod freeze;
mod stage;
mod task;

pub(crate) use self::explain::{NotExplained, explain};
pub(crate) use self::task::{Place, Task};
