//! Workers that play a service against the real server.

pub(crate) mod exploration;
mod race;
pub mod seed;
mod service;
pub(crate) mod simulate;
mod test_keys;

pub(crate) use self::race::{Connections, Ended, NotConnected, Raced, race};
pub(crate) use self::test_keys::TEST_KEYS_LIVE;
