//! A record: one idempotency key under one schema, decoded and diagnosed.

use std::sync::Arc;
use std::time::Duration;

use super::age::{self, Age};
use super::author::Author;
use super::decode::{Decoded, Reading, Stored};
use super::field_set::{FieldSet, MAX_SCANNED, ValueField};
use super::observation::{Content, KeyState, Observation, TimeLeft};
use super::response::Response;
use crate::domain::diagnosis::Finding;
use crate::domain::schema::{Encoding, ExpiresAt, Schema, State, TtlOf};
use crate::domain::step::next_request::{self, predict_reply};
use crate::domain::step::{Answer, NextRequest, UnknownAnswer};

/// One idempotency key under one schema.
#[derive(Debug, Clone)]
pub struct Record {
    pub schema: Arc<Schema>,
    /// The idempotency key.
    pub key: Vec<u8>,
    /// What was read of its Redis keys.
    pub(crate) seen: Observation,
    /// The reading of each Redis key's value, in the same order.
    pub(crate) readings: Vec<Reading>,
    pub state: State,
    /// Who wrote it.
    pub author: Author,
    /// Its age, if it is known.
    pub age: Option<Age>,
    /// The answer that the next request with this key gets.
    pub next_request: NextRequest,
    pub findings: Vec<Finding>,
    /// True if an operator extended the lock to its current expiry.
    pub(crate) is_extended: bool,
    /// The database of the record, if records of several are listed.
    pub(crate) db: Option<i64>,
}

impl Record {
    /// Builds the record from its readings; findings are added later.
    pub fn new(
        schema: Arc<Schema>,
        key: Vec<u8>,
        seen: Observation,
        readings: Vec<Reading>,
    ) -> Self {
        let next_request = next_request::of(&schema, &readings, &seen);
        let mut state = state(&schema, &readings);
        if state == State::InProgress && replays_failure(&schema, &readings, &seen) {
            state = State::Failed;
        }
        let age = age::of(&schema, state, &readings, &seen);
        let author = Author::of(&schema, &readings);
        Self {
            schema,
            key,
            seen,
            readings,
            state,
            author,
            age,
            next_request,
            findings: Vec::new(),
            is_extended: false,
            db: None,
        }
    }

    /// The record without a prediction that the unread rest of a value may change.
    #[must_use]
    pub(crate) fn without_guess(mut self) -> Self {
        let is_known = self.next_request.answer != Answer::Unknown;
        if is_known && next_request::depends_on_rest(&self.schema, &self.readings, &self.seen) {
            self.next_request = NextRequest::unknown(Some(UnknownAnswer::Unread));
        }
        self
    }

    /// Drops a prediction that the unread rest of a value may change, if the value is so long that
    /// `inspect` does not read all of it either. Both then give the same answer.
    pub(crate) fn drop_guess_of_long_value(&mut self) {
        let is_known = self.next_request.answer != Answer::Unknown;
        let mut sizes = self.seen.keys.iter().filter_map(|key| key.content.size());
        if is_known
            && sizes.any(|size| size > MAX_SCANNED as u64)
            && next_request::depends_on_rest(&self.schema, &self.readings, &self.seen)
        {
            self.next_request = NextRequest::unknown(Some(UnknownAnswer::Unread));
        }
    }

    /// True if the worker of this lock may renew it while it runs, so that no expiry ends it.
    pub(crate) fn is_renewable(&self) -> bool {
        self.state == State::InProgress && self.schema.renew.is_some()
    }

    /// The Redis key of the lock, if a lock exists.
    pub(crate) fn lock(&self) -> Option<&KeyState> {
        let key = &self.seen.keys[self.schema.lock_key_index()];
        if !self.schema.has_locks() || key.content.is_absent() {
            return None;
        }
        // One Redis key holds first the lock and then the result.
        let is_no_lock = self.state.is_result() || self.state == State::Released;
        if !self.schema.has_separate_result() && is_no_lock {
            return None;
        }
        Some(key)
    }

    /// True if the lock's Redis key holds a value of a lock's format.
    pub(crate) fn has_readable_lock(&self) -> bool {
        let Some(value) = self.readings[self.schema.lock_key_index()].decoded() else {
            return false;
        };
        self.lock().is_some() && self.schema.values[value.format].state == State::InProgress
    }

    /// Why the value at the lock's Redis key is not a lock that the schema's service writes,
    /// although a format of the schema is near to it; `None` if nothing shows that.
    pub(crate) fn lock_deviation(&self) -> Option<&str> {
        self.deviation_at(self.schema.lock_key_index())
    }

    /// Why no step of the schema writes one of the values; `None` if nothing shows that.
    pub(crate) fn deviation(&self) -> Option<&str> {
        (0..self.readings.len()).find_map(|key_index| self.deviation_at(key_index))
    }

    fn deviation_at(&self, key_index: usize) -> Option<&str> {
        match &self.readings[key_index] {
            Reading::Ambiguous(why) => Some(why),
            // The bytes of an opaque value cannot deviate.
            Reading::Value(value) if self.schema.values[value.format].closed.is_some() => {
                value.conformance.deviation()
            }
            _ => None,
        }
    }

    /// The JSON pointer of the field that alone keeps the record from being one of its schema.
    pub(crate) fn near_miss(&self) -> Option<&str> {
        if !matches!(self.author, Author::Unrecognised(_)) {
            return None;
        }
        let mut others = self.readings.iter().filter(|reading| !reading.conforms_or_absent());
        let near = others.next()?.decoded()?.conformance.only_extra()?;
        if others.next().is_some() { None } else { Some(near) }
    }

    /// The Redis key of the result, if a result exists.
    pub(crate) fn result(&self) -> Option<&KeyState> {
        let key = &self.seen.keys[self.schema.result_key_index()];
        if key.content.is_absent() {
            return None;
        }
        let shares_key_with_lock = !self.schema.has_separate_result() && self.schema.has_locks();
        if shares_key_with_lock && !self.state.is_result() {
            return None;
        }
        Some(key)
    }

    /// How long the record stays in its state, by the rule of [`Record::end_of`]. `None` if it does
    /// not exist, or if that is unknown.
    pub fn time_left(&self) -> Option<TimeLeft> {
        self.end_of(self.deciding()?)
    }

    /// How long the value at this Redis key counts: until the Redis key expires, or until the value
    /// expires by itself, whichever is first. `None` if that is unknown, because the value may
    /// expire by itself and its time was not read or is not a time, or the server's time is
    /// unknown.
    pub(crate) fn end_of(&self, key_index: usize) -> Option<TimeLeft> {
        let of_key = self.seen.keys[key_index].time_left;
        let reading = &self.readings[key_index];
        if matches!(reading, Reading::Undecided) && self.schema.contains_expiry() {
            return None;
        }
        let own_ms = match reading.decoded() {
            Some(value) if value.unclear_expiry.is_some() => return None,
            Some(Decoded { expires_ms: Some(own_ms), .. }) => *own_ms,
            _ => return Some(of_key),
        };
        let own_left = own_ms.saturating_sub(self.seen.server_ms?);
        match of_key {
            TimeLeft::Millis(left) => Some(TimeLeft::Millis(left.min(own_left))),
            TimeLeft::NoExpiry => Some(TimeLeft::Millis(own_left)),
        }
    }

    /// True if it is unknown whether the value at this Redis key expires by itself, because its
    /// expiry was not read or is not a time. A value with a time in it expires, even if the
    /// server's time is unknown.
    pub(crate) fn may_never_end(&self, key_index: usize) -> bool {
        let reading = &self.readings[key_index];
        let is_unread = matches!(reading, Reading::Undecided) && self.schema.contains_expiry();
        is_unread || reading.decoded().is_some_and(|value| value.unclear_expiry.is_some())
    }

    /// How long Redis keeps the record, whatever its value says.
    pub(crate) fn kept_for(&self) -> Option<TimeLeft> {
        Some(self.seen.keys[self.deciding()?].time_left)
    }

    /// True if the value that decides the record's state contains an expiry.
    pub(crate) fn contains_expiry(&self) -> bool {
        let Some(key_index) = self.deciding() else { return false };
        self.key_contains_expiry(key_index)
    }

    /// True if the value at this Redis key contains an expiry, in addition to any TTL of the
    /// Redis key.
    pub(crate) fn key_contains_expiry(&self, key_index: usize) -> bool {
        let value = self.readings[key_index].decoded();
        value.is_some_and(|value| value.expires_ms.is_some() || value.unclear_expiry.is_some())
    }

    /// The index of the Redis key that decides how long the record stays in its state.
    fn deciding(&self) -> Option<usize> {
        let lock = self.lock().map(|_| self.schema.lock_key_index());
        let result = self.result().map(|_| self.schema.result_key_index());
        match self.state {
            State::Completed | State::Failed => result,
            // Lock and result share one Redis key in such a record.
            State::Released => Some(0),
            _ => lock.or(result),
        }
    }

    /// When the record ends ([`Record::end_of`]), in milliseconds since the epoch by the server's
    /// clock. `None` if it never does, if the value's expiry is not a time, or if the Redis user
    /// may not ask.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let key_index = self.deciding()?;
        let of_key = self.seen.keys[key_index].deadline.millis();
        if self.readings[key_index].decoded().is_some_and(|value| value.unclear_expiry.is_some()) {
            return None;
        }
        let own = self.readings[key_index].decoded().and_then(|value| value.expires_ms);
        match (of_key, own) {
            (Some(of_key), Some(own)) => Some(of_key.min(own)),
            (of_key, own) => of_key.or(own),
        }
    }

    /// The record's Redis keys, the lock's first.
    pub(crate) fn redis_keys(&self) -> Vec<Vec<u8>> {
        self.seen.keys.iter().map(|key| key.redis_key.clone()).collect()
    }

    /// Bytes of all values together; `None` unless every value's length is known.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        self.seen.keys.iter().map(|key| key.content.size()).sum()
    }

    /// Bytes of memory of all Redis keys together; `None` unless the server reports it for each.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.present().map(|key| key.memory).sum()
    }

    /// Time since any of the Redis keys was touched; `None` if the server does not report it.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.present().filter_map(|key| key.idle).min()
    }

    /// The lock TTL, in milliseconds, that does not fit the time in the value: the lock is held for
    /// more than ten times as long, and still has no more left than the TTL.
    pub(crate) fn contradicted_lock_ttl(&self) -> Option<u64> {
        let age = self.age?;
        // A lock that is renewed may have any age.
        if self.state != State::InProgress || !age.is_of_record() || self.schema.renew.is_some() {
            return None;
        }
        let left = self.lock()?.time_left.millis()?;
        let ttl = age::millis(self.schema.ttl(TtlOf::Lock)?);
        if left <= ttl && age.millis > ttl.saturating_mul(10) { Some(ttl) } else { None }
    }

    /// The token of the lock's holder, if the value holds one.
    pub fn owner(&self) -> Option<&[u8]> {
        self.values().find_map(|value| value.owner.as_deref())
    }

    /// False if only part of the lock's value was read, so that its owner may be truncated or in
    /// the unread rest.
    pub(crate) fn is_owner_known(&self) -> bool {
        if !self.keeps_owners() {
            return true;
        }
        match &self.readings[self.schema.lock_key_index()] {
            Reading::Value(value) => !value.unread.contains(ValueField::Owner),
            Reading::Absent => true,
            Reading::Undecided
            | Reading::Unreadable(_)
            | Reading::Unrecognised { .. }
            | Reading::Ambiguous(_)
            | Reading::EmptyText
            | Reading::WrongType(_) => {
                self.seen.keys[self.schema.lock_key_index()].content.is_whole()
            }
        }
    }

    /// The Redis keys outside the record that begin may write before its predicted reply, so that
    /// they decide as well. idemctl does not read them. Empty if the answer is unknown.
    pub(crate) fn also_depends_on(&self) -> Vec<Vec<u8>> {
        if self.next_request.answer == Answer::Unknown {
            return Vec::new();
        }
        self.outside_keys(&self.readings)
    }

    /// The same for the answer once the Redis key with this index is gone.
    pub(crate) fn also_depends_on_without(&self, key_index: usize) -> Vec<Vec<u8>> {
        let mut readings = self.readings.clone();
        readings[key_index] = Reading::Absent;
        self.outside_keys(&readings)
    }

    /// The Redis keys outside the record that begin may write before its reply to these values.
    fn outside_keys(&self, readings: &[Reading]) -> Vec<Vec<u8>> {
        let Some(begin) = &self.schema.begin else { return Vec::new() };
        let Some((predicted, _)) = predict_reply(begin, readings, false) else {
            return Vec::new();
        };
        let mut sent = 0;
        for call in &begin.calls {
            sent += 1;
            if call.replies.iter().any(|reply| std::ptr::eq(reply, predicted)) {
                break;
            }
        }
        self.schema.keys_beside_record(&begin.calls[..sent], &self.key)
    }

    /// True if a format of the schema has an owner.
    pub(crate) fn keeps_owners(&self) -> bool {
        self.schema.values.iter().any(|format| format.fields.owner.is_some())
    }

    /// The fields that are unknown, because a value was read only in part. If the part does not
    /// even show the format of a value, all are unknown.
    pub(crate) fn unread_fields(&self) -> FieldSet {
        let mut unread = FieldSet::NONE;
        for reading in &self.readings {
            match reading {
                Reading::Value(value) => unread = unread.union(value.unread),
                Reading::Undecided => return FieldSet::ALL,
                Reading::Absent
                | Reading::Unreadable(_)
                | Reading::Unrecognised { .. }
                | Reading::Ambiguous(_)
                | Reading::EmptyText
                | Reading::WrongType(_) => {}
            }
        }
        unread
    }

    /// True if one of these fields is unknown, because a value was read only in part.
    pub(crate) fn lacks(&self, needed: FieldSet) -> bool {
        !self.unread_fields().intersection(needed).is_empty()
            || (needed.contains(ValueField::End) && !self.is_whole())
    }

    /// True if the values were read to their ends.
    pub(crate) fn is_whole(&self) -> bool {
        self.seen.keys.iter().all(|key| key.content.is_whole())
    }

    /// The fingerprint of the request, if the value holds one.
    pub(crate) fn fingerprint(&self) -> Option<&str> {
        self.values().find_map(|value| value.fingerprint.as_deref())
    }

    /// True if the fingerprint is not text, so that it cannot be sent as it is stored.
    pub(crate) fn has_binary_fingerprint(&self) -> bool {
        let Some(stored) = self.fingerprint() else { return false };
        let is_binary = |letter: char| letter == char::REPLACEMENT_CHARACTER || letter.is_control();
        stored.chars().any(is_binary)
    }

    /// A value that contains an expiry, and the rule for it: the value that decides the
    /// record's state, or else the first.
    pub(crate) fn contained_expiry(&self) -> Option<(&Decoded, &ExpiresAt)> {
        let deciding = self.deciding().and_then(|key_index| self.readings[key_index].decoded());
        for value in deciding.into_iter().chain(self.values()) {
            if let Some(expires_at) = &self.schema.values[value.format].expires_at
                && value.expires_ms.is_some()
            {
                return Some((value, expires_at));
            }
        }
        None
    }

    /// True if the lock's value contains an expiry, in addition to any TTL of its Redis key.
    pub(crate) fn lock_contains_expiry(&self) -> bool {
        self.key_contains_expiry(self.schema.lock_key_index())
    }

    /// The stored response, decoded.
    pub fn response(&self) -> Option<Response> {
        self.stored().map(Stored::response)
    }

    /// The stored response, as it is in the value.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        self.values().find_map(|value| value.response.as_ref())
    }

    /// The error that the service stored, if the value holds one.
    pub fn error(&self) -> Option<&str> {
        self.values().find_map(|value| value.error.as_deref())
    }

    /// A pointer to a result in a blob store, as JSON.
    pub fn blob(&self) -> Option<&serde_json::Value> {
        self.values().find_map(|value| value.blob.as_ref())
    }

    /// The encoding of a value that is never decoded, only shown as it is; `None` for any other.
    pub(crate) fn shown_only(&self) -> Option<Encoding> {
        for value in self.values() {
            let encoding = self.schema.values[value.format].encoding();
            if encoding.is_shown_only() {
                return Some(encoding);
            }
        }
        None
    }

    /// The type that the schema keeps at the first Redis key that has another; `None` if none has.
    pub(crate) fn wanted_type(&self) -> Option<&'static str> {
        let is_wrong = |reading: &Reading| matches!(reading, Reading::WrongType(_));
        Some(self.schema.type_at(self.readings.iter().position(is_wrong)?))
    }

    /// Why a value cannot be read; `None` if all can.
    pub(crate) fn unreadable_because(&self) -> Option<&str> {
        self.readings.iter().find_map(Reading::mismatch)
    }

    /// True if only the beginning of a value was read, and the rest decides what the record is.
    pub(crate) fn is_undecided(&self) -> bool {
        self.readings.iter().any(Reading::is_undecided)
    }

    /// True for a lock that never expires by itself, and of which only the beginning was read. Such
    /// a lock is reported, so the rest of the value has to show that the value is not damaged. This
    /// is never true for a text, of which any bytes are valid.
    pub(crate) fn is_endless_lock_in_part(&self) -> bool {
        if self.state != State::InProgress {
            return false;
        }
        let mut keys = self.seen.keys.iter();
        let is_in_part =
            keys.any(|key| !key.content.is_whole() && key.time_left == TimeLeft::NoExpiry);
        let mut formats = self.values().map(|value| &self.schema.values[value.format]);
        is_in_part && formats.any(|format| format.encoding().has_fields())
    }

    /// True if a result is stored, according to distinctive formats of the schema alone.
    pub(crate) fn is_distinctive_result(&self) -> bool {
        self.state.is_result() && self.is_distinctive()
    }

    /// True if a lock is held, according to distinctive formats of the schema alone.
    pub(crate) fn is_distinctive_lock(&self) -> bool {
        self.state == State::InProgress && self.is_distinctive()
    }

    fn is_distinctive(&self) -> bool {
        let is_distinctive =
            self.values().all(|value| self.schema.values[value.format].is_distinctive());
        is_distinctive && !self.author.is_foreign()
    }

    /// Drops all but this many bytes of each string, and the body that was in the rest. The other
    /// fields stay as they were decoded.
    pub(crate) fn keep_at_most(&mut self, most: usize) {
        for (key, reading) in self.seen.keys.iter_mut().zip(&mut self.readings) {
            if let Content::Text { head, .. } = &mut key.content
                && head.len() > most
            {
                head.truncate(most);
                head.shrink_to_fit();
                if let Reading::Value(value) = reading
                    && let Some(response) = &mut value.response
                {
                    response.whole = false;
                    response.forget_body();
                }
            }
        }
    }

    /// Drops the stored responses, which may take as much memory as the values.
    pub(crate) fn forget_responses(&mut self) {
        for reading in &mut self.readings {
            if let Reading::Value(value) = reading {
                value.response = None;
            }
        }
    }

    /// Drops the body of a response that was read only in part.
    pub(crate) fn forget_cut_body(&mut self) {
        for reading in &mut self.readings {
            if let Reading::Value(value) = reading
                && let Some(response) = &mut value.response
                && !response.whole
            {
                response.forget_body();
            }
        }
    }

    fn present(&self) -> impl Iterator<Item = &KeyState> {
        self.seen.keys.iter().filter(|key| !key.content.is_absent())
    }

    /// The values of the lock and the result.
    fn values(&self) -> impl Iterator<Item = &Decoded> {
        self.readings.iter().filter_map(Reading::decoded)
    }
}

/// True if the result's Redis key holds a failure, and requests get it once the lock beside it is
/// gone. Such a failure is a result, and the lock is left over.
fn replays_failure(schema: &Schema, readings: &[Reading], seen: &Observation) -> bool {
    let Some(value) = readings[schema.result_key_index()].decoded() else { return false };
    if schema.values[value.format].state != State::Failed {
        return false;
    }
    let lock = schema.lock_key_index();
    let mut readings = readings.to_vec();
    let mut seen = seen.clone();
    readings[lock] = Reading::Absent;
    seen.keys[lock].content = Content::Absent;
    next_request::of(schema, &readings, &seen).answer == Answer::Replay
}

/// The combined state of the values at a record's Redis keys.
fn state(schema: &Schema, readings: &[Reading]) -> State {
    let mut state = State::Absent;
    for reading in readings {
        if reading.is_absent() {
            continue;
        }
        if let Some(value) = reading.decoded() {
            match schema.values[value.format].state {
                // A result decides, whatever the lock's Redis key holds.
                State::Completed => return State::Completed,
                // A retry may hold the lock beside a failure that begin does not replay.
                State::Failed if state != State::InProgress || schema.replays(value.format) => {
                    return State::Failed;
                }
                State::InProgress if state == State::Absent => state = State::InProgress,
                State::Released if state == State::Absent => state = State::Released,
                _ => {}
            }
        } else {
            state = State::Unreadable;
        }
    }
    state
}
