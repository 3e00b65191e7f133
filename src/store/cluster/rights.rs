//! What a server says of itself, and what its user may do. Nothing is changed: Redis checks the rights to a command when the
//! command is queued behind MULTI, and DISCARD drops the queue.

use super::client::Client;
use crate::store::connection::{Connection, client_options, pack};
use crate::store::error::StoreError;

/// What a server says of itself in its answer to HELLO.
pub(crate) struct Greeting {
    /// `redis` or `valkey`.
    pub(crate) server: String,
    pub(crate) version: String,
    /// `standalone` or `cluster`.
    pub(crate) mode: String,
    /// `master` or `replica`.
    pub(crate) role: String,
}

impl Client {
    /// What the server says of itself; `None` if the user may not ask.
    ///
    /// # Errors
    /// No reply, the log-in is missing, or the server refuses for now.
    pub(crate) async fn greeting(&self) -> Result<Option<Greeting>, StoreError> {
        let reply = match self.home.ask(&redis::cmd("HELLO")).await {
            Ok(reply) => reply,
            Err(error)
                if error.is_permission() && !matches!(error, StoreError::Authentication { .. }) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let told = |field: &str| {
            client_options::told(reply.clone(), field).unwrap_or_else(|| "unknown".to_owned())
        };
        Ok(Some(Greeting {
            server: told("server"),
            version: told("version"),
            mode: told("mode"),
            role: told("role"),
        }))
    }

    /// Whether the user may scan the keyspace.
    ///
    /// # Errors
    /// The user may not, or the server gives no answer.
    pub(crate) async fn may_scan(&self) -> Result<(), StoreError> {
        self.home.ask(redis::cmd("SCAN").arg(0).arg("COUNT").arg(1)).await?;
        Ok(())
    }

    /// Why the server would refuse these commands, each with its words; none if it takes them all.
    ///
    /// # Errors
    /// No reply.
    pub(crate) async fn refusals(
        &self,
        redis_key: &[u8],
        commands: &[Vec<&[u8]>],
    ) -> Result<Vec<StoreError>, StoreError> {
        let master = self.master_of(redis_key).await?;
        let mut connection = Connection::dial(&master).await?;
        // A server that refuses MULTI would run the commands behind it.
        if let Err(refused) = connection.tell(&pack(["MULTI"])).await {
            return if refused.lost_the_reply() { Err(refused) } else { Ok(vec![refused]) };
        }
        let mut refusals = Vec::new();
        for command in commands {
            let reply = connection.exchange(&pack(command)).await?;
            refusals.extend(connection.no_error(reply).err());
        }
        connection.exchange(&pack(["DISCARD"])).await?;
        Ok(refusals)
    }
}
