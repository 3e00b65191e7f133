//! MessagePack, CBOR and what PHP serializes, read as the JSON that they stand for. MessagePack and what PHP serializes are
//! written, too.
//!
//! All are read by hand, for a walk has the beginning of a value alone: what is complete in the beginning counts, as with
//! JSON. No crate reads a cut document.

mod cbor;
mod items;
mod msgpack;
mod php;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use cbor::parse as cbor;
pub(crate) use msgpack::parse as msgpack;
pub(crate) use php::parse as php;
pub(crate) use write::{msgpack as to_msgpack, php as to_php};
