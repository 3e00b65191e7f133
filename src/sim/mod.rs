//! Workers that play a service against the real server.

mod lifetime;
mod race;
mod round;
pub mod seed;
mod service;
pub mod simulate;
mod track;
mod witness;
mod worker;

pub use lifetime::TEST_KEYS_LIVE;
pub use race::{Ended, Raced, race};
pub use track::{NoTrack, Track};
