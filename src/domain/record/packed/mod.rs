//! Reads and writes MessagePack, PHP's serialization, and Newtonsoft.Json's JSON with type names,
//! as equivalent JSON.
//!
//! The readers are our own code, because a scan has only the beginning of a value, and no crate
//! reads a truncated document. The complete part of the beginning counts, as with JSON.

mod items;
mod msgpack;
mod newtonsoft;
mod php;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use msgpack::parse as msgpack;
pub(crate) use newtonsoft::{changed_time, has_type, parse as newtonsoft, write as to_newtonsoft};
pub(crate) use php::{CLASS as PHP_CLASS, parse as php};
pub(crate) use write::{msgpack as to_msgpack, php as to_php};
