//! Races: what the workers did, whether the steps can have been atomic, and the result of a whole
//! race.

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
