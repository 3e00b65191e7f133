//! Undoing what a service put around a value: compression, hex and base64.
//!
//! A walk reads the beginning of a value. The beginning of what was compressed opens to the beginning of what is in it, as
//! far as the bytes go.

mod inflate;
mod letters;
mod undo;

pub(crate) use undo::{Plain, undo};
