//! Domain values to text: no Redis, no clap, no terminal.

pub mod body;
pub mod escape;
pub mod fold;
pub mod json;
pub mod listing;
pub mod race;
pub mod record;
pub mod schema;
pub mod style;
pub mod words;
