//! What can go wrong at a server, by what it means for whoever asked.

pub(crate) mod acl;
#[expect(clippy::module_inception, reason = "the file has the type that the room is about")]
mod error;
pub(crate) mod from_redis;
pub(crate) mod from_tls;
mod hint;
mod kind;
pub(crate) mod without_effect;

pub use error::{ErrorClass, Place, StoreError};
