//! The reply of `read_records.lua`: the state of each Redis key.

use std::time::Duration;

use redis::Value;

use crate::domain::record::{Content, Deadline, Field, Hash, KeyState, Observation, TimeLeft};
use crate::store::connection::reply;

/// Parses the reply of the script for these Redis keys; `None` if the script cannot have sent it.
/// Without `keeps_idle_times` the idle times are left out, because they would reflect earlier reads
/// by idemctl.
pub(in crate::store) fn observation(
    value: Value,
    redis_keys: &[Vec<u8>],
    keeps_idle_times: bool,
) -> Option<Observation> {
    let mut items = reply::array(value)?.into_iter();
    let server_ms = u64::try_from(reply::integer(&items.next()?)?).ok();
    let mut keys = Vec::with_capacity(redis_keys.len());
    for redis_key in redis_keys {
        let mut key = key_state(redis_key, items.next()?, server_ms)?;
        if !keeps_idle_times {
            key.idle = None;
        }
        keys.push(key);
    }
    Some(Observation { server_ms, keys, atomic: true })
}

/// One Redis key, from its inner array; the comment above `read_key` in
/// `lua/admin/read_records.lua` explains each element. There -1 means no expiry, or an unknown
/// number, and -2 an absent key.
fn key_state(redis_key: &[u8], value: Value, server_ms: Option<u64>) -> Option<KeyState> {
    let parts = <[Value; 10]>::try_from(reply::array(value)?).ok()?;
    let [kind, pttl, deadline, exact, idle, memory, length, checksum, head, ends] = parts;
    let length = u64::try_from(reply::integer(&length)?).ok();
    let content = match reply::word(kind)?.as_str() {
        "none" => Content::Absent,
        "string" => Content::Text { head: reply::bytes(head)?, length },
        // The script omits the fields of a hash that the Redis user may not read.
        "hash" if matches!(head, Value::Array(_)) => Content::Hash(Box::new(hash(head, length?)?)),
        other => Content::Other(other.to_owned()),
    };
    let mut time_left = TimeLeft::from_pttl(reply::integer(&pttl)?);
    if time_left == TimeLeft::NoExpiry
        && let Ok(at) = u64::try_from(reply::integer(&ends)?)
    {
        // A hash without a TTL of its own expires with the last of its fields.
        time_left = TimeLeft::Millis(at.saturating_sub(server_ms?));
    }
    let is_exact = reply::integer(&exact)? == 1;
    let deadline = deadline_of(reply::integer(&deadline)?, is_exact);
    let mut key = KeyState::new(redis_key, content, time_left, deadline);
    key.checksum = reply::bytes(checksum)?.try_into().ok();
    key.idle = u64::try_from(reply::integer(&idle)?).ok().map(Duration::from_secs);
    key.memory = u64::try_from(reply::integer(&memory)?).ok();
    Some(key)
}

/// A hash, from its fields: name, length and head in turn.
fn hash(value: Value, count: u64) -> Option<Hash> {
    let mut items = reply::array(value)?.into_iter();
    let mut fields = Vec::new();
    while let Some(name) = items.next() {
        let name = reply::bytes(name)?;
        let length = u64::try_from(reply::integer(&items.next()?)?).ok()?;
        let head = reply::bytes(items.next()?)?;
        fields.push(Field { name, head, length });
    }
    Some(Hash::new(fields, count))
}

/// The script replies with milliseconds since the epoch; -1 without expiry, -2 for an absent key,
/// which has no deadline either, and -3 if the Redis user may ask for neither PEXPIRETIME nor TIME.
/// A time by TIME and PTTL is not exact: `Between` with equal bounds is compared with a tolerance.
fn deadline_of(at: i64, is_exact: bool) -> Deadline {
    match u64::try_from(at) {
        Ok(at) if is_exact => Deadline::At(at),
        Ok(at) => Deadline::Between(at, at),
        Err(_) if at == -3 => Deadline::Unknown,
        Err(_) => Deadline::Never,
    }
}
