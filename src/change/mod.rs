//! What commands that change records share: accounting for each change, going no faster than asked and stopping between
//! two batches; and doing a service's own step to one record.

mod audit_trail;
pub mod bulk;
pub mod confirm;
mod journal;
mod one_record;
mod owner;
mod pace;
mod step;
mod step_report;
mod summary;

pub use self::audit_trail::{Noted, Trail};
pub use self::one_record::{find, show};
pub use self::pace::{BATCH, Pace};
pub use self::step_report::{rehearsed, told};
pub use self::summary::{came_to_its_end, say_coverage, say_read_back, write_report};
pub use journal::Journal;
pub use owner::{of_lock as owner_of_lock, of_new as owner_of_new};
pub use step::{Play, Played, play};
