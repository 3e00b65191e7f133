//! The way to the nodes of a cluster, or to the one server: which node serves a key, and what each of them can do.

pub(crate) mod client;
pub(crate) mod deadlines;
pub(crate) mod node;
pub(crate) mod own_slots;
mod rights;
pub(crate) mod routing;
pub(crate) mod scripted;
pub(crate) mod slot_map;
pub(crate) mod topology;
