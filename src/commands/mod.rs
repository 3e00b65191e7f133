//! One subcommand, one file.

pub mod force_unlock;
pub mod inspect;
pub mod list;
pub mod race;
pub mod schema;
