//! Workers that play a service against the real server.

mod race;
mod round;
pub mod seed;
mod service;
pub mod simulate;
mod track;
mod worker;

pub use race::{Ended, Raced, race};
pub use track::{NoTrack, Track};
