//! A race: workers that begin at the same time with one key, and the replies that they get.

mod connections;
mod race;
mod worker;

pub use self::connections::{Connections, NotConnected};
pub use self::race::{RaceEnd, RaceResult, race};
