//! Checks whether a server supports PEXPIRETIME (Redis 7.0 or later), which returns the deadline of
//! a Redis key.

use std::sync::PoisonError;

use redis::Value;

use super::client::Client;
use crate::domain::record::{Content, Deadline, Observation};
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The Redis key that idemctl tries PEXPIRETIME on. It is not a user's key, because a server before
/// Redis 7 repeats the key in its error reply. That reply has to be text, and user keys may have
/// any bytes.
pub(in crate::store) const TRIED: &str = "idemctl";

impl Client {
    /// True if one attempt showed that the Redis user may send PEXPIRETIME and TIME here. Another
    /// node of a cluster may run an older version, so callers must handle a refusal. The result is
    /// not remembered if a node did not answer.
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
        let has_time = match time {
            Ok(time) => reply::millis(time.clone()).is_some(),
            Err(_) => false,
        };
        let tells = has_time && is_known(deadline.as_ref());
        if !replies.iter().any(|reply| reply.as_ref().is_err_and(StoreError::lost_the_reply)) {
            *self.deadlines.lock().unwrap_or_else(PoisonError::into_inner) = Some(tells);
        }
        tells
    }

    /// Checks that the deadlines and the hashes of these observations are known, because a change
    /// compares with them.
    ///
    /// # Errors
    /// A deadline or a long value is unknown because the Redis user lacks a right, or the fields of a
    /// hash expire, so nothing may be changed.
    pub(in crate::store) fn can_compare<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a Observation>,
    ) -> Result<(), StoreError> {
        for seen in seen {
            for key in &seen.keys {
                if matches!(key.content, Content::Hash(_)) && key.checksum.is_none() {
                    let redis_key = key.redis_key.escape_ascii();
                    let why = format!(
                        "{redis_key} is not changed: its fields have their own expiry, or the \
                        user may not send DUMP"
                    );
                    return Err(StoreError::Missed { why });
                }
                let is_other = key.content.other_type().is_some();
                if key.is_comparable() || (is_other && key.deadline != Deadline::Unknown) {
                    continue;
                }
                let redis_key = key.redis_key.escape_ascii();
                let why = format!(
                    "a change compares the value and the expiry of {redis_key}: +time, and for long \
                    values +strlen and +dump"
                );
                return Err(StoreError::Permission { target: self.name(), why });
            }
        }
        Ok(())
    }
}

/// True if an attempt at PEXPIRETIME shows that the server knows the command and that the Redis
/// user may send it. Redis checks both before it rejects a Redis key of another node or one outside
/// the user's key patterns.
pub(in crate::store) fn is_known(tried: Result<&Value, &StoreError>) -> bool {
    match tried {
        Ok(value) => matches!(value, Value::Int(_)),
        Err(error) if error.is_permission() => !error.is_of_command(),
        Err(error) => error.is_redirect(),
    }
}
