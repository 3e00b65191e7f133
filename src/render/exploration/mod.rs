//! Explorations for people and programs.

mod exploration_cases;
mod exploration_json;
mod frontier;
mod met_steps;
mod past;
mod remedies;
mod trace;

pub(crate) use self::exploration_cases::suites;
pub(crate) use self::exploration_json::{difference, exploration};
pub(crate) use self::frontier::{ShownExplorations, text};
pub(crate) use self::past::{past, past_json};
