//! A lock that nobody races for: whatever ends or removes the locks of a round ends or removes this lock, too.
//!
//! Locks end while a race is on when idemctl or the server is stopped, when the machine sleeps, when somebody flushes the
//! database or removes keys by a pattern. A second worker that then gets the lock says nothing about the schema's steps.

use super::connections::Connections;
use crate::domain::record::Response;
use crate::domain::schema::Schema;
use crate::domain::step::{Request, StepReply};
use crate::store::{Packed, StoreError, pack};

/// The lock, as the schema's service would write it, at a key of its own.
pub(super) struct Witness {
    /// Sets the lock anew, and asks what was there.
    renew: Packed,
    /// False where this user may not set the lock, or the server cannot set and ask in one command.
    is_of_use: bool,
}

impl Witness {
    /// A lock that is not there yet. The lock lives no longer than the first of a round's keys to end.
    pub(super) fn new(schema: &Schema, key: &[u8], owner: &str) -> Self {
        let redis_key = schema.keys[schema.lock_role()].template.redis_key(key);
        let value = Request::new(schema, key, owner, &Response::default()).lock_value();
        let lives = schema.lock_ttl.min(schema.result_ttl).as_millis().to_string();
        Self { renew: pack([b"SET", &redis_key[..], &value, b"PX", lives.as_bytes(), b"GET"]), is_of_use: true }
    }

    /// Sets the lock anew for the next round; false when the lock was not there any more.
    pub(super) async fn renew(&mut self, connections: &mut Connections) -> Result<bool, StoreError> {
        if !self.is_of_use {
            return Ok(true);
        }
        match connections.ask(&self.renew).await {
            Ok(StepReply::Text(_)) => Ok(true),
            Ok(StepReply::Nil) => Ok(false),
            Err(error) if !error.is_permission() => Err(error),
            _ => {
                self.is_of_use = false;
                Ok(true)
            }
        }
    }
}
