//! Tries the steps of a schema on a temporary local Redis.

use crate::domain::schema::Schema;
use crate::sim::claims::try_claims;
use crate::sim::completable::try_complete;
use crate::sim::trial::{StrayReply, try_steps};
use crate::sim::ttls::try_ttls;
use crate::store::{Connection, StoreError};

/// Tries the steps of a schema. Each part of the trials assumes what the parts before it check.
///
/// # Errors
/// An error of the server.
pub(crate) async fn try_schema(
    schema: &Schema,
    connection: &mut Connection,
) -> Result<Vec<StrayReply>, StoreError> {
    let mut found = try_steps(schema, connection).await?;
    if found.is_empty() {
        found = try_complete(schema, connection).await?;
    }
    if found.is_empty() {
        found = try_ttls(schema, connection).await?;
        found.extend(try_claims(schema, connection).await?);
    }
    Ok(found)
}
