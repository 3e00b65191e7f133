//! JSON as it lies in a value: looked at in place, so that telling a record's state copies next to nothing.
//!
//! A tree of what stands in a value takes many times the value's memory. So arrays and objects within an object stay the
//! text that they are, which is known to be sound, until somebody asks for what is in them.
//!
//! `plain` reads what services write nearly always: an object of sound UTF-8. It gives up on anything odd, which
//! [`super::json_prefix`] then reads with all care; where both read something they read the same.

mod close;
mod plain;
mod pointer;
mod scan;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use close::close;
pub(crate) use plain::{plain, shallow};
pub use value::Json;
