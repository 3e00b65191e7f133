//! Reports on what many changes found and did: as a table, as JSON, as one line for monitoring.

mod check;
mod found;
mod json;

pub use check::check;
pub use found::{orphans, records};
pub use json::{purge, sweep};
