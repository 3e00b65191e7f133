//! One subcommand, one file.

pub mod schema;
