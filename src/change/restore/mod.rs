//! Bringing back what a backup holds: the way of `restore`, and of an `undo` of what was removed.

mod bring_back;
mod destination;
mod rows;
mod source;

pub use self::bring_back::{Mode, bring_back, finish};
pub use self::destination::may_go_to;
pub use self::rows::{Ending, RestoredKey, RestoredRows};
pub use self::source::{CheckedBackup, KeysToRestore, check_only, is_of_operation, only_of};
