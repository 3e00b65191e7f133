//! Explorations on a real server: the calls that the search asks for, and the histories that workers play again.

mod cast;
mod explain;
mod freeze;
mod run;
mod stage;

pub(crate) use self::explain::{NotExplained, explain};
pub(crate) use self::run::{Place, Task};
