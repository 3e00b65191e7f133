//! Whether a server tells the moment at which a Redis key expires: PEXPIRETIME, from Redis 7.0 on.

use std::sync::PoisonError;

use redis::Value;

use super::client::Client;
use crate::domain::record::{Content, Deadline, KeyState, Observation};
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The Redis key that PEXPIRETIME is tried on. None of the user's: before Redis 7 a server that does not know the command
/// repeats the key in its answer, whatever bytes the key has, and an answer has to be text.
pub(in crate::store) const TRIED: &str = "idemctl";

impl Client {
    /// True when the server tells deadlines and its time to this user, as one try showed. A node of a cluster may be of
    /// another version than the one that was asked: whoever reads has to put up with a refusal. Where nobody answers this
    /// is no word for the next time.
    pub(in crate::store) async fn tells_deadlines(&self) -> bool {
        let known = *self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known {
            return known;
        }
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        pipeline.cmd("PEXPIRETIME").arg(TRIED);
        let replies = self.ask_each(&pipeline).await;
        let [time, deadline] = &replies[..] else { return false };
        let tells = matches!(time.as_ref().map(|time| reply::millis(time.clone())), Ok(Some(_)))
            && is_known(deadline.as_ref());
        if !replies.iter().any(|reply| reply.as_ref().is_err_and(StoreError::lost_the_reply)) {
            *self.deadlines.lock().unwrap_or_else(PoisonError::into_inner) = Some(tells);
        }
        tells
    }

    /// Passes when the deadlines of these looks are known, so that a change can be compared with them.
    ///
    /// # Errors
    /// The user may not ask for one: nothing is to be changed.
    pub(in crate::store) fn can_compare<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a Observation>,
    ) -> Result<(), StoreError> {
        let mut keys = seen.into_iter().flat_map(|seen| &seen.keys);
        let is_unknown =
            |key: &&KeyState| key.content != Content::Absent && key.deadline == Deadline::Unknown;
        let Some(key) = keys.find(is_unknown) else { return Ok(()) };
        let redis_key = key.redis_key.escape_ascii();
        let why = format!(
            "when {redis_key} expires has to be known for a change: +eval, and +pexpiretime or +time"
        );
        Err(StoreError::Permission { target: self.name(), why })
    }
}

/// True when a try of PEXPIRETIME says that the server knows the command and that the user may send it. A Redis key that is
/// another node's, or out of the user's bounds, is refused only after both were found to be so.
pub(in crate::store) fn is_known(tried: Result<&Value, &StoreError>) -> bool {
    match tried {
        Ok(value) => matches!(value, Value::Int(_)),
        Err(error) if error.is_permission() => !error.is_of_command(),
        Err(error) => error.is_redirect(),
    }
}
