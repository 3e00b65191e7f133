//! Workers that play a service against the real server.

mod lifetime;
mod race;
pub mod seed;
mod service;
pub(crate) mod simulate;

pub(crate) use self::lifetime::TEST_KEYS_LIVE;
pub(crate) use self::race::{Connections, Ended, NotConnected, Raced, race};
