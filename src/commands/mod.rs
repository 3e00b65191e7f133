//! One subcommand, one file.

pub mod backup;
pub mod begin;
pub mod check;
pub mod complete;
pub mod completions;
pub mod config;
pub mod context;
pub mod detect;
pub mod diff;
pub mod doctor;
pub mod duplicates;
pub mod explore;
pub mod extend;
pub mod force_unlock;
pub mod inspect;
pub mod list;
pub mod log;
pub mod man;
pub mod probe;
pub mod purge;
pub mod race;
pub mod reconcile;
pub mod release;
pub mod restore;
pub mod sandbox;
pub mod schema;
pub mod simulate;
pub mod stats;
pub mod sweep;
pub mod undo;

pub use self::purge::apply;
