//! What commands that change records share: accounting for each change, going no faster than asked and stopping between
//! two batches; and doing a service's own step to one record.

pub mod bulk;
mod ending;
mod journal;
mod owner;
mod rate;
mod step;
mod subject;
mod told;
mod trail;

pub use ending::{came_to_its_end, say_coverage, say_read_back, write_report};
pub use journal::Journal;
pub use owner::{of_lock as owner_of_lock, of_new as owner_of_new};
pub use rate::{BATCH, Pace};
pub use step::{Play, Played, play};
pub use subject::{find, show};
pub use told::{rehearsed, told};
pub use trail::{Noted, Trail};
