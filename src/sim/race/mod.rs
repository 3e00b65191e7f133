//! A race: workers that begin at one moment on one key, and what each of them was told.

mod connections;
mod race;
mod round;
mod witness;
mod worker;

pub use self::connections::{Connections, NotConnected};
pub use self::race::{Ended, Raced, race};
