//! How a server describes itself, and which commands its user may send. The check changes nothing,
//! because Redis checks the rights for a command when it queues the command after MULTI, and
//! DISCARD drops the queue.

use redis::Value;

use super::client::Client;
use crate::store::connection::{Connection, client_options, pack};
use crate::store::error::StoreError;

/// The server's description of itself in its reply to HELLO.
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
    /// The server's description of itself; `None` if the Redis user may not send HELLO.
    ///
    /// # Errors
    /// There is no reply, the log-in is missing, or the server temporarily refuses commands.
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
        Ok(Some(Greeting {
            server: field_of(&reply, "server"),
            version: field_of(&reply, "version"),
            mode: field_of(&reply, "mode"),
            role: field_of(&reply, "role"),
        }))
    }

    /// Checks whether the Redis user may scan each master.
    ///
    /// # Errors
    /// The Redis user may not, or a master does not answer.
    pub(crate) async fn may_scan(&self) -> Result<(), StoreError> {
        for node in self.masters().await? {
            let mut pipeline = redis::pipe();
            pipeline.cmd("SCAN").arg(0).arg("COUNT").arg(1);
            if let Some(reply) = self.ask_node(&node, pipeline, 1).await.pop() {
                reply?;
            }
        }
        Ok(())
    }

    /// The errors with which the server would refuse these commands; empty if it would accept all
    /// of them.
    ///
    /// # Errors
    /// There is no reply.
    pub(crate) async fn refusals(
        &self,
        redis_key: &[u8],
        commands: &[Vec<&[u8]>],
    ) -> Result<Vec<StoreError>, StoreError> {
        let master = self.master_of(redis_key).await?;
        let mut connection = Connection::dial(&master).await?;
        // Stop if MULTI is refused: without it, the server would execute the commands that follow.
        if let Err(refused) = connection.call_ok(&pack(["MULTI"])).await {
            return if refused.lost_the_reply() { Err(refused) } else { Ok(vec![refused]) };
        }
        let mut refusals = Vec::new();
        for command in commands {
            let reply = connection.call(&pack(command)).await?;
            refusals.extend(connection.no_error(reply).err());
        }
        connection.call(&pack(["DISCARD"])).await?;
        Ok(refusals)
    }
}

/// A field of the reply to HELLO; `unknown` if the reply does not contain it.
fn field_of(greeting: &Value, name: &str) -> String {
    client_options::hello_field(greeting.clone(), name).unwrap_or_else(|| "unknown".to_owned())
}
