//! Races: what the workers did, whether that can have been atomic, and what a whole run comes to.

mod event;
mod latency;
mod run;
mod strategy;
mod verdict;

pub use event::RaceAnswer;
pub(crate) use event::{RaceAct, RaceEvent};
pub(crate) use run::{Offending, RaceVerdict, Round};
pub use run::{RacePlan, RaceRun};
pub(crate) use strategy::RaceSteps;
pub use strategy::Strategy;
pub(crate) use verdict::Ttls;
