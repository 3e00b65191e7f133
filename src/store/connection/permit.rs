//! Permission to change a server, as a type: code without it cannot make changes.
//!
//! Code that changes records takes a [`Permit`]: a [`crate::store::Writer`], and a
//! [`crate::store::Connection`] as races and simulations use it. A permit comes from one of two
//! places. [`Access::of`] is called once, when settings are resolved; the temporary local Redis
//! grants its own. In a read-only context there is no permit, so no code can change a record there.

use std::ops::Deref;

use super::target::Target;

/// What idemctl may do on a server.
#[derive(Debug, Clone)]
pub enum Access {
    ReadOnly,
    Full(Permit),
}

impl Access {
    pub fn of(read_only: bool) -> Self {
        if read_only { Self::ReadOnly } else { Self::Full(Permit(())) }
    }
}

/// Permission to change records.
#[derive(Debug, Clone)]
pub struct Permit(());

impl Permit {
    /// The permit of the temporary local Redis, which its owner may change.
    pub(in crate::store) fn of_sandbox() -> Self {
        Self(())
    }

    /// This server, with permission to change its data.
    pub fn over(self, target: Target) -> Writable {
        Writable { target, permit: self }
    }
}

/// A server that may be changed.
#[derive(Debug, Clone)]
pub struct Writable {
    target: Target,
    permit: Permit,
}

impl Writable {
    pub fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Another server or another address under the same permission, such as a node of the same
    /// cluster.
    #[must_use]
    pub(in crate::store) fn instead(&self, target: Target) -> Self {
        Self { target, permit: self.permit.clone() }
    }
}

impl Deref for Writable {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}
