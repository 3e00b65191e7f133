//! The errors of a server, classified by what they mean for the caller.

pub(crate) mod acl;
mod error;
pub(crate) mod from_redis;
pub(crate) mod from_tls;
mod hint;
mod kind;
pub(crate) mod without_effect;

pub use error::{ErrorClass, RefusedAt, StoreError};
