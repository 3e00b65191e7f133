//! What commands that change many records share: accounting for each change, going no faster than asked, and stopping
//! between two batches.

mod ending;
mod journal;
mod rate;
mod trail;

pub use ending::{came_to_its_end, write_report};
pub use journal::Journal;
pub use rate::{BATCH, Pace, Rate};
pub use trail::{Noted, Trail};
