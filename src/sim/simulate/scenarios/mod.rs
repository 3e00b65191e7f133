//! The scenarios, grouped by the kind of failure, and the order in which they are reported.

mod crashes;
mod late_workers;
mod order;
mod redis_faults;
mod requests;

pub use order::ALL;
