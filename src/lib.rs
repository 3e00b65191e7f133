//! idemctl: the idempotency keys that services keep in Redis, inspected, listed, unlocked, swept, purged and raced.
//!
//! The rooms, and the one way imports run: `cli` → `commands` → {`change`, `scan`, `context`, `settings`, `args`, `sim`, `render`,
//! `terminal`, `schemas`, `store`} → `domain`. `domain` does no I/O, `render` turns values into text, `store` alone knows
//! Redis, `terminal` alone prints. docs/architecture.md says more of each room.
//!
//! The crate is a binary. A room that is public and hidden is public for `tests/`, which ask that room directly.

mod args;
mod change;
pub mod cli;
mod commands;
mod context;
#[doc(hidden)]
pub mod domain;
#[doc(hidden)]
pub mod exit;
#[doc(hidden)]
pub mod explore;
mod files;
mod interrupt;
mod owner_check;
mod render;
mod scan;
#[doc(hidden)]
pub mod schemas;
mod settings;
#[doc(hidden)]
pub mod sim;
#[doc(hidden)]
pub mod store;
mod terminal;
#[doc(hidden)]
pub mod version;
mod watch;
