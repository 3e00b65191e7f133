//! Undoes and applies the codecs around a value: compression, hex, base64, a version before or
//! after it.
//!
//! A scan reads only the beginning of a value. The beginning of a compressed value decompresses to
//! the beginning of its content.

mod inflate;
mod undo;
mod wrap;

pub(crate) use undo::{Plain, begins_so, undo};
pub(crate) use wrap::wrap;
