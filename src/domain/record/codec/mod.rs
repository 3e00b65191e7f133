//! Undoing what a service put around a value, and doing it: compression, hex, base64, a version in front or behind.
//!
//! A scan reads the beginning of a value. The beginning of what was compressed opens to the beginning of what is in it, as
//! far as the bytes go.

mod inflate;
mod undo;
mod wrap;

pub(crate) use undo::{Plain, undo};
pub(crate) use wrap::wrap;
