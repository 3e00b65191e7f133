//! Which nodes hold the keys: the one place that lists the nodes to scan.

use super::connect::Link;
use super::target::Target;

impl Link {
    /// The nodes that hold a part of the keyspace; a standalone server is one.
    pub(super) fn nodes(&self) -> Vec<Target> {
        vec![self.target().clone()]
    }
}
