//! What commands that change records share: confirmation, accounting for each change,
//! changing many records, and making a service's own step on one record.

mod audit_command;
mod audit_log;
pub mod bulk;
pub(crate) mod completion;
mod confirm;
mod journal;
mod manual_step;
pub mod named_locks;
mod one_record;
mod owner;
mod rate_limiter;
mod removal_hint;
pub mod removal_plan;
pub mod restore;
mod stated_ttl;
mod summary;

pub use self::audit_log::{AuditLog, Noted};
pub use self::journal::{Journal, JournalStep};
pub use self::manual_step::ManualStep;
pub use self::one_record::{
    check_creates_lock, check_ttls, described_step, find_record, show_record, time_for, undescribed,
};
pub use self::owner::{because_of_owner, check_owner_has_name, owner_of_lock, owner_of_new_lock};
pub use self::rate_limiter::RateLimiter;
pub use self::removal_hint::{freeing_hint, removal_hint};
pub use self::stated_ttl::needs_a_stated_lock_ttl;
pub(crate) use self::summary::DRY_RUN;
pub use self::summary::{
    in_backup, print_left, print_read_back, print_way_back, require_finished, write_report,
};
