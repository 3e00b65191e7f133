//! Domain values to text: no Redis, no clap, no terminal.

pub mod audit;
mod bar;
pub mod body;
pub mod change;
pub mod columns;
pub mod coverage;
pub mod document;
pub mod escape;
pub mod exploration;
pub mod fold;
pub mod listing;
mod page;
pub mod plugin;
pub mod race;
pub mod record;
pub mod record_json;
pub mod schema;
pub mod settings;
pub mod simulation;
pub mod stats;
pub mod stranger;
pub mod style;
mod table;
pub mod words;
