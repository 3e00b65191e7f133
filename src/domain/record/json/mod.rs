//! JSON that is read in place in a value, so that finding a record's state copies almost nothing.
//!
//! A tree takes many times the memory of its text. So arrays and objects within an object stay
//! text, already checked, until a caller asks for their members.
//!
//! `plain` reads what services nearly always write: an object of valid UTF-8. It rejects anything
//! unusual, which [`super::json_prefix`] then reads with more care. If both read a document, they
//! read the same.

mod close;
mod members;
mod plain;
mod pointer;
mod scan;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use close::close;
pub(crate) use members::Members;
pub(crate) use plain::{plain, shallow};
pub use value::Json;
