//! Access to one server or to the nodes of a cluster: which node serves a key, and what each node
//! supports.

pub(crate) mod client;
pub(crate) mod deadlines;
pub(crate) mod node;
pub(crate) mod own_slots;
mod rights;
pub(crate) mod routing;
pub(crate) mod scripted;
pub(crate) mod slot_map;
pub(crate) mod topology;
