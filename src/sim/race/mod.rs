//! A race: workers that begin at one moment on one key, and what each of them was told.

pub(crate) mod connections;
mod race;
pub(crate) mod round;
pub(crate) mod worker;

pub use race::{Ended, Raced, race};
