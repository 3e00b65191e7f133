//! Locks that an operator extended.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::key_identity::KeyIdentity;
use super::observation::KeyState;

/// The state in which `extend` left each Redis key.
pub(crate) type Left = HashMap<Vec<u8>, Vec<KeyIdentity>>;

type ReadExtended = Box<dyn FnOnce() -> Left + Send>;

/// The locks that were extended. They are read from the audit log when the first lock stays longer
/// than its TTL allows, because most runs find no such lock.
#[derive(Clone, Default)]
pub struct Extended(Option<Arc<LazyLock<Left, ReadExtended>>>);

impl Extended {
    pub(crate) fn read_by(read: impl FnOnce() -> Left + Send + 'static) -> Self {
        Self(Some(Arc::new(LazyLock::new(Box::new(read)))))
    }

    /// True if the lock expires at the time that an operator gave it.
    pub(crate) fn has(&self, lock: &KeyState) -> bool {
        let Some(left) = &self.0 else { return false };
        let Some(identities) = left.get(&lock.redis_key) else { return false };
        // A lock that a service renewed or acquired since then expires at another time.
        identities.iter().any(|identity| identity.ends_as(lock))
    }
}

impl fmt::Debug for Extended {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Extended")
    }
}
