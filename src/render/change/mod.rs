//! Reports on what many changes found and did: as a table, as JSON, as one line for monitoring.

mod bulk_json;
mod check;
mod found;
pub mod restored;
pub mod step;

pub use self::bulk_json::{purge, sweep};
pub use check::check;
pub use found::{orphans, records};
