//! A race: workers that begin at one moment on one key, and what each of them was told.

mod connections;
#[expect(clippy::module_inception, reason = "the file has the type that the room is about")]
mod race;
mod round;
mod witness;
mod worker;

pub use self::connections::{Connections, NotConnected};
pub use self::race::{Ended, Raced, race};
