//! idemctl: the idempotency keys that services keep in Redis, inspected, listed, unlocked, swept, purged and raced.
//!
//! The rooms, and the one way imports run: `cli` → `commands` → {`context`, `args`, `sim`, `render`, `store`} →
//! `domain`. `domain` does no I/O, `render` turns values into text, `store` alone knows Redis, `ui` alone prints.

pub mod args;
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
pub mod settings;
pub mod sim;
pub mod store;
mod terminal;
