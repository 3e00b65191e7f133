//! What commands that change many records share: accounting for each change, going no faster than asked, and stopping
//! between two batches.

mod journal;
mod rate;
mod trail;

pub use journal::Journal;
pub use rate::{BATCH, Pace, Rate};
pub use trail::{Noted, Trail};
