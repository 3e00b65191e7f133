//! What needs a lock TTL that the deployment states.

use std::sync::Arc;

use crate::domain::schema::{Schema, TtlOf};
use crate::exit::CommandError;

/// Passes where a lock TTL is stated: a schema's default lock TTL tells neither that a lock stays
/// too long nor how long a worker may still need. `what` begins the message.
///
/// # Errors
/// Usage: none of the schemas has a lock TTL that the deployment states.
pub fn needs_a_stated_lock_ttl(what: &str, schemas: &[Arc<Schema>]) -> Result<(), CommandError> {
    if schemas.iter().any(|schema| schema.states_ttl(TtlOf::Lock)) {
        return Ok(());
    }
    Err(CommandError::usage(format!("{what}, but none is configured")).hint(
        "pass --schema NAME --lock-ttl DURATION, or set it in the context: \
        [contexts.NAME.deployment.SCHEMA] lock_ttl",
    ))
}
