//! MessagePack and CBOR, read as the JSON that they stand for.
//!
//! Both are read by hand, for a walk has the beginning of a value alone: what is complete in the beginning counts, as with
//! JSON. No crate reads a cut document.

mod cbor;
mod items;
mod msgpack;
#[cfg(test)]
mod tests;

pub(crate) use cbor::parse as cbor;
pub(crate) use msgpack::parse as msgpack;
