//! MessagePack, what PHP serializes and the JSON with types of Newtonsoft.Json, read and written as the JSON that they
//! stand for.
//!
//! All are read by hand, for a scan has the beginning of a value alone: what is complete in the beginning counts, as with
//! JSON. No crate reads a cut document.

mod items;
mod msgpack;
mod newtonsoft;
mod php;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use msgpack::parse as msgpack;
pub(crate) use newtonsoft::{has_type, parse as newtonsoft, write as to_newtonsoft};
pub(crate) use php::parse as php;
pub(crate) use write::{msgpack as to_msgpack, php as to_php};
