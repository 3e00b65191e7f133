//! One subcommand, one file.

pub mod sandbox;
pub mod schema;
