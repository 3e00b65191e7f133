//! Races: what the workers did, whether that can have been atomic, and what a whole run comes to.

mod event;
mod latency;
mod run;
mod strategy;
mod verdict;

pub use event::{Act, Answer, Event};
pub use latency::Latencies;
pub use run::{Offending, Plan, Round, Run, Verdict};
pub use strategy::Strategy;
pub use verdict::{Offence, Rule, Ruling, Ttls, judge};
