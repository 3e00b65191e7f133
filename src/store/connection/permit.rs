//! Who may change a server: a type, so that what nobody may change nothing can.
//!
//! Whatever changes records takes a [`Permit`]: a [`crate::store::Writer`], and a [`crate::store::Connection`] as races and simulations
//! use it. There are two ways to one: [`Access::of`], which is asked once, where settings are put together, and a
//! throw-away server's own. In a read-only context there is none, so nothing in the program can be written that changes
//! a record there.

use std::ops::Deref;

use super::target::Target;

/// What may be done to a server.
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

/// Leave to change records.
#[derive(Debug, Clone)]
pub struct Permit(());

impl Permit {
    /// A throw-away server may be changed by whoever has it.
    pub(in crate::store) fn of_sandbox() -> Self {
        Self(())
    }

    /// This server, with leave to change what it holds.
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

    /// Another server, or another way to it, that comes with it.
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
