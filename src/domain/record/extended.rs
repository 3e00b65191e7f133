//! Locks to which an operator gave their expiry.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::key_identity::KeyIdentity;
use super::observation::KeyState;

/// The state in which `extend`, `reconcile` or `sweep --action expire` left each Redis key.
pub(crate) type Left = HashMap<Vec<u8>, Vec<KeyIdentity>>;

type ReadExtended = Box<dyn FnOnce() -> Left + Send>;

/// The locks to which an operator gave their expiry. They are read when the first lock with an
/// expiry is found, because some runs find no such lock.
#[derive(Clone, Default)]
pub struct Extended(Option<Arc<LazyLock<Left, ReadExtended>>>);

impl Extended {
    pub(crate) fn read_by(read: impl FnOnce() -> Left + Send + 'static) -> Self {
        Self(Some(Arc::new(LazyLock::new(Box::new(read)))))
    }

    /// True if an operator once gave this Redis key an expiry. It may have another one now.
    pub(crate) fn names(&self, redis_key: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|left| left.contains_key(redis_key))
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
