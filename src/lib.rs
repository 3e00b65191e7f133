//! idemctl: the idempotency keys that services keep in Redis, inspected, listed, unlocked, swept, purged and raced.
//!
//! The rooms, and the one way imports run: `cli` → `commands` → {`context`, `change`, `settings`, `args`, `sim`, `render`,
//! `terminal`, `schemas`, `store`} → `domain`. `domain` does no I/O, `render` turns values into text, `store` alone knows
//! Redis, `terminal` alone prints. docs/architecture.md says more of each room.
//!
//! The crate is a binary: a room is public only where a test of `tests/` asks that room directly.

mod args;
mod change;
pub mod cli;
mod commands;
mod context;
pub mod domain;
pub mod exit;
mod files;
mod interrupt;
mod render;
pub mod schemas;
mod settings;
pub mod sim;
pub mod store;
mod terminal;
