//! Which nodes hold the keys: the one place that lists the nodes to scan.

use super::connect::Link;
use super::error::StoreError;
use super::scan::Scan;

impl Link {
    /// A scan for every node that holds a part of the keyspace; a standalone server is one.
    ///
    /// # Errors
    /// None for a standalone server; asking a cluster for its nodes can fail.
    pub async fn scans(&self, pattern: &[u8]) -> Result<Vec<Scan>, StoreError> {
        Ok(vec![Scan::new(self.clone(), pattern)])
    }
}
