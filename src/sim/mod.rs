//! Workers that play a service against the real server.

mod lifetime;
pub mod race;
pub mod seed;
mod service;
pub mod simulate;
mod witness;

pub use self::race::connections::{NoTrack, Track};
pub use self::race::{Ended, Raced, race};
pub use lifetime::TEST_KEYS_LIVE;
