//! What each check says of the facts, by subject.

mod cluster;
mod keys_and_schemas;
mod memory;
pub(super) mod registry;
mod rights;
mod server_state;
mod ttl;
mod ttl_observed;
