//! idemctl inspects, lists, unlocks, sweeps, purges and races the idempotency keys that services
//! keep in Redis.
//!
//! The modules, and the only direction of imports: `cli` → `commands` → {`change`, `scan`,
//! `session`, `settings`, `args`, `sim`, `render`, `terminal`, `schemas`, `store`} → `domain`.
//! `domain` does no I/O, `render` turns values into text, only `store` knows Redis, and only
//! `terminal` prints. docs/architecture.md describes each module.
//!
//! The crate is a binary. A module that is public and hidden is public for `tests/`, which call it
//! directly.

mod args;
mod ask_program;
mod change;
pub mod cli;
mod commands;
#[doc(hidden)]
pub mod domain;
#[doc(hidden)]
pub mod exit;
#[doc(hidden)]
pub mod explore;
mod files;
mod http;
mod interrupt;
mod owner_check;
mod render;
mod scan;
#[doc(hidden)]
pub mod schemas;
mod session;
mod settings;
#[doc(hidden)]
pub mod sim;
#[doc(hidden)]
pub mod store;
mod terminal;
#[doc(hidden)]
pub mod version;
mod watch;
