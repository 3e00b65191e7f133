//! What each check says of the facts, by subject.

mod cluster;
mod keys;
mod memory;
pub(super) mod registry;
mod rights;
mod server;
mod ttl;
mod ttl_observed;
