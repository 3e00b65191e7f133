//! Moments: what records were there at one time, compared with another time.

mod difference;
mod known;
mod print;
mod sighting;

pub(crate) use difference::{Counts, What};
pub(crate) use known::Known;
pub(crate) use print::KeyPrint;
pub(crate) use sighting::Sighting;
