//! A race: workers that begin at the same time on one key, and the replies that each of them got.

mod connections;
mod race;
mod worker;

pub use self::connections::{Connections, NotConnected};
pub use self::race::{RaceEnd, RaceResult, race};
