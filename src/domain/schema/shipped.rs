//! The schemas that idemctl ships, parsed when they are needed.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::Schema;

type ReadSchemas = Box<dyn FnOnce() -> Vec<Arc<Schema>> + Send>;

/// The schemas that idemctl ships. Most runs need only some of them, so that all are parsed when
/// the first value of another program is found.
#[derive(Clone, Default)]
pub(crate) struct Shipped(Option<Arc<LazyLock<Vec<Arc<Schema>>, ReadSchemas>>>);

impl Shipped {
    pub(crate) fn read_by(read: impl FnOnce() -> Vec<Arc<Schema>> + Send + 'static) -> Self {
        Self(Some(Arc::new(LazyLock::new(Box::new(read)))))
    }

    pub(crate) fn all(&self) -> &[Arc<Schema>] {
        match &self.0 {
            Some(read) => read.as_slice(),
            None => &[],
        }
    }
}

impl fmt::Debug for Shipped {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Shipped")
    }
}
