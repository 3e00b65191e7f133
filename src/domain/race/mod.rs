//! Races: what the workers did, whether that can have been atomic, and what a whole run comes to.

mod event;
mod latency;
mod run;
mod strategy;
mod verdict;

pub use event::Answer;
pub(crate) use event::{Act, Event};
pub(crate) use run::{Offending, Round, Verdict};
pub use run::{Plan, Run};
pub use strategy::Strategy;
pub(crate) use verdict::Ttls;
