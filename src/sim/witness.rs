//! A lock that nobody races for: what ends or removes the locks of a round ends or removes this one, too.
//!
//! Locks end while a race is on when idemctl or the server is stopped, when the machine sleeps, when somebody flushes the
//! database or removes keys by a pattern. A second worker that then gets the lock says nothing about the schema's steps.

use crate::domain::record::response::Response;
use crate::domain::schema::Schema;
use crate::domain::step::reply::StepReply;
use crate::domain::step::request::Request;
use crate::sim::race::connections::Track;
use crate::store::{Packed, StoreError, pack};

/// The lock, as the schema's service would write it, at a key of its own.
pub(super) struct Witness {
    /// Sets it anew, and asks what was there.
    renew: Packed,
    /// False where this user may not set it, or the server cannot do both in one.
    is_of_use: bool,
}

impl Witness {
    /// One that is not there yet, at an idempotency key. It lives as long as the first of a round's keys to end.
    pub(super) fn new(schema: &Schema, key: &[u8], owner: &str) -> Self {
        let redis_key = schema.slots[schema.lock_slot()].template.redis_key(key);
        let value = Request::new(schema, key, owner, &Response::default()).lock_value();
        let lives = schema.lock_ttl.min(schema.result_ttl).as_millis().to_string();
        Self { renew: pack([b"SET", &redis_key[..], &value, b"PX", lives.as_bytes(), b"GET"]), is_of_use: true }
    }

    /// Sets it anew for the next round; false when it was not there any more.
    ///
    /// # Errors
    /// The server goes away or refuses service.
    pub(super) async fn renew(&mut self, track: &mut Track) -> Result<bool, StoreError> {
        if !self.is_of_use {
            return Ok(true);
        }
        match track.ask(&self.renew).await {
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
