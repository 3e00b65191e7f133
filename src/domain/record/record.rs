//! A record: one idempotency key under one schema, decoded and diagnosed.

use std::sync::Arc;
use std::time::Duration;

use super::age::{self, Age};
use super::claim::Claim;
use super::decode::{Decoded, Reading, Stored};
use super::observation::{Content, Expiry, Observation, SeenKey};
use super::response::Response;
use crate::domain::diagnosis::Finding;
use crate::domain::schema::{Encoding, ExpiresAt, Schema, State};
use crate::domain::step::{NextRequest, next_request};

/// One idempotency key under one schema.
#[derive(Debug, Clone)]
pub struct Record {
    pub schema: Arc<Schema>,
    pub key: Vec<u8>,
    pub(crate) seen: Observation,
    pub(crate) readings: Vec<Reading>,
    pub state: State,
    pub claim: Claim,
    /// How old it is, where that can be told.
    pub age: Option<Age>,
    /// What the next request with this key gets.
    pub next_request: NextRequest,
    pub findings: Vec<Finding>,
    /// True when an operator gave the lock the time that the lock has.
    pub(crate) is_extended: bool,
    /// The database of the record, where those of several are told apart.
    pub(crate) db: Option<i64>,
}

impl Record {
    /// Puts together what the readings say; the findings are still to be added.
    pub fn new(
        schema: Arc<Schema>,
        key: Vec<u8>,
        seen: Observation,
        readings: Vec<Reading>,
    ) -> Self {
        let state = state(&schema, &readings);
        let age = age::of(&schema, state, &readings, &seen);
        let next_request = next_request::of(&schema, &readings, &seen);
        let claim = Claim::of(&schema, &readings);
        Self {
            schema,
            key,
            seen,
            readings,
            state,
            claim,
            age,
            next_request,
            findings: Vec::new(),
            is_extended: false,
            db: None,
        }
    }

    /// The Redis key of the lock as it was seen, when a lock is there.
    pub(crate) fn lock(&self) -> Option<&SeenKey> {
        let role = self.schema.lock_role();
        let one_key = self.schema.keys.len() == 1;
        let is_there = self.schema.has_locks() && self.seen.keys[role].content != Content::Absent;
        let held = is_there && (!one_key || self.state != State::Completed);
        held.then(|| &self.seen.keys[role])
    }

    /// The Redis key of the result as it was seen, when a result is there.
    pub(crate) fn result(&self) -> Option<&SeenKey> {
        let role = self.schema.result_role();
        let one_key = self.schema.keys.len() == 1;
        let is_one = one_key && self.schema.has_locks();
        let stored = self.seen.keys[role].content != Content::Absent
            && (!is_one || self.state == State::Completed);
        stored.then(|| &self.seen.keys[role])
    }

    /// The expiry that decides how long the record stays in its state.
    pub fn expiry(&self) -> Option<Expiry> {
        self.deciding().map(|key| key.expiry)
    }

    fn deciding(&self) -> Option<&SeenKey> {
        if self.state == State::Completed {
            self.result()
        } else {
            self.lock().or_else(|| self.result())
        }
    }

    /// When the record ends by itself, in milliseconds since the epoch by the server's clock; `None` where it never does, or
    /// nobody may ask.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.deciding()?.deadline.millis()
    }

    /// Bytes of all values together, where every value's length is known.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        self.seen.keys.iter().map(|key| key.content.size()).sum()
    }

    /// Memory of all Redis keys together, where the server says it for every one.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.present().map(|key| key.memory).sum()
    }

    /// Time since any of the Redis keys was touched, where the server says it.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.present().filter_map(|key| key.idle).min()
    }

    pub fn owner(&self) -> Option<&[u8]> {
        self.values().find_map(|value| value.owner.as_deref())
    }

    /// False when only part of the lock's value was read, so that its owner may be cut off, or stand behind what was read.
    pub(crate) fn is_owner_told(&self) -> bool {
        let keeps_owners = self.schema.values.iter().any(|case| case.fields.owner.is_some());
        let lock = &self.seen.keys[self.schema.lock_role()];
        let is_whole = match &lock.content {
            Content::Hash(hash) => {
                hash.has_all()
                    && hash
                        .fields
                        .iter()
                        .any(|field| field.is_whole() && self.owner() == Some(&field.head))
            }
            content => content.is_whole(),
        };
        !keeps_owners || is_whole || lock.content.is_whole()
    }

    pub(crate) fn fingerprint(&self) -> Option<&str> {
        self.values().find_map(|value| value.fingerprint.as_deref())
    }

    /// The first value that tells by itself when it ends, and by which rule.
    pub(crate) fn lapsing(&self) -> Option<(&Decoded, &ExpiresAt)> {
        self.values().find_map(|value| {
            let expires_at = self.schema.values[value.case].expires_at.as_ref()?;
            value.expires_ms.map(|_| (value, expires_at))
        })
    }

    /// True when the lock ends by what it holds, whatever TTL its Redis key has.
    pub(crate) fn has_lapsing_lock(&self) -> bool {
        self.readings[self.schema.lock_role()]
            .decoded()
            .is_some_and(|value| value.expires_ms.is_some())
    }

    pub fn response(&self) -> Option<Response> {
        self.stored().map(Stored::response)
    }

    /// The stored response, as it stands in the value.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        self.values().find_map(|value| value.response.as_ref())
    }

    pub fn error(&self) -> Option<&str> {
        self.values().find_map(|value| value.error.as_deref())
    }

    /// A pointer to a result in a blob store, as JSON.
    pub fn blob(&self) -> Option<&serde_json::Value> {
        self.values().find_map(|value| value.blob.as_ref())
    }

    /// What the value is, where nothing but its first bytes is looked at.
    pub(crate) fn shown_only(&self) -> Option<Encoding> {
        let mut encodings = self.values().map(|value| self.schema.values[value.case].encoding());
        encodings.find(|encoding| encoding.is_shown_only())
    }

    pub(crate) fn unreadable_because(&self) -> Option<&str> {
        self.readings.iter().find_map(Reading::unread)
    }

    /// True when only the beginning of a value was read, and what comes behind decides what the record is.
    pub(crate) fn is_undecided(&self) -> bool {
        self.readings.contains(&Reading::Undecided)
    }

    /// True when a closed form of the schema, and nothing less, tells that a result is stored.
    pub(crate) fn is_closed_result(&self) -> bool {
        let is_closed = |value: &Decoded| self.schema.values[value.case].is_closed();
        self.state == State::Completed && !self.claim.is_foreign() && self.values().all(is_closed)
    }

    /// True when a closed form of the schema, and nothing less, tells that a lock is held.
    pub(crate) fn is_closed_lock(&self) -> bool {
        let is_closed = |value: &Decoded| self.schema.values[value.case].is_closed();
        self.state == State::InProgress && !self.claim.is_foreign() && self.values().all(is_closed)
    }

    /// Forgets the body of a response that was read in part.
    pub(crate) fn forget_cut_body(&mut self) {
        for reading in &mut self.readings {
            if let Reading::Value(value) = reading
                && let Some(response) = value.response.as_mut().filter(|response| !response.whole)
            {
                response.forget_body();
            }
        }
    }

    fn present(&self) -> impl Iterator<Item = &SeenKey> {
        self.seen.keys.iter().filter(|key| key.content != Content::Absent)
    }

    fn values(&self) -> impl Iterator<Item = &Decoded> {
        self.readings.iter().filter_map(Reading::decoded)
    }
}

fn state(schema: &Schema, readings: &[Reading]) -> State {
    let there = || readings.iter().filter(|reading| !reading.is_absent());
    let of = |state| {
        there().filter_map(Reading::decoded).any(|value| schema.values[value.case].state == state)
    };
    let unread = readings
        .iter()
        .any(|reading| reading.unread().is_some() || matches!(reading, Reading::WrongType(_)));
    if of(State::Completed) {
        State::Completed
    } else if unread {
        State::Unreadable
    } else if of(State::InProgress) {
        State::InProgress
    } else {
        State::Absent
    }
}
