//! The reply of `observe.lua`, taken apart.

use std::time::Duration;

use redis::Value;

use crate::domain::record::{Content, Deadline, Expiry, Field, Hash, Observation, SeenKey};
use crate::store::connection::reply;

/// Reads the reply of `observe.lua` for these Redis keys. Idle times are left out unless `keeps_idle_times`: earlier reads of
/// idemctl would count as use.
pub(in crate::store) fn observation(
    value: Value,
    keys: &[Vec<u8>],
    keeps_idle_times: bool,
) -> Option<Observation> {
    let mut items = reply::array(value)?.into_iter();
    let server_ms = u64::try_from(reply::integer(&items.next()?)?).ok();
    let mut seen = Vec::with_capacity(keys.len());
    for key in keys {
        let mut key = seen_key(key, items.next()?, server_ms)?;
        key.idle = key.idle.filter(|_| keeps_idle_times);
        seen.push(key);
    }
    Some(Observation { server_ms, keys: seen, atomic: true })
}

fn seen_key(key: &[u8], value: Value, server_ms: Option<u64>) -> Option<SeenKey> {
    let parts = <[Value; 10]>::try_from(reply::array(value)?).ok()?;
    let [kind, pttl, deadline, exact, idle, memory, length, checksum, head, ends] = parts;
    let number = |value: Value| reply::integer(&value);
    let content = match reply::word(kind)?.as_str() {
        "none" => Content::Absent,
        "string" => {
            Content::Text { head: reply::bytes(head)?, length: u64::try_from(number(length)?).ok() }
        }
        "hash" if matches!(head, Value::Array(_)) => {
            Content::Hash(Box::new(hash(head, u64::try_from(number(length)?).ok()?)?))
        }
        other => Content::Other(other.to_owned()),
    };
    let expiry = match (Expiry::from_pttl(number(pttl)?), u64::try_from(number(ends)?)) {
        // A hash ends with the last of its fields.
        (Expiry::Never, Ok(at)) => Expiry::In(at.saturating_sub(server_ms?)),
        (expiry, _) => expiry,
    };
    let deadline = deadline_of(number(deadline)?, number(exact)? == 1);
    Some(SeenKey {
        checksum: reply::bytes(checksum)?.try_into().ok(),
        idle: u64::try_from(number(idle)?).ok().map(Duration::from_secs),
        memory: u64::try_from(number(memory)?).ok(),
        ..SeenKey::new(key, content, expiry, deadline)
    })
}

/// Reads fields: names, lengths and heads in turn.
fn hash(value: Value, count: u64) -> Option<Hash> {
    let mut items = reply::array(value)?.into_iter();
    let mut fields = Vec::new();
    while let Some(name) = items.next() {
        let (name, length) =
            (reply::bytes(name)?, u64::try_from(reply::integer(&items.next()?)?).ok()?);
        fields.push(Field { name, head: reply::bytes(items.next()?)?, length });
    }
    Some(Hash::new(fields, count))
}

fn deadline_of(at: i64, is_exact: bool) -> Deadline {
    match u64::try_from(at) {
        Ok(at) if is_exact => Deadline::At(at),
        Ok(at) => Deadline::Between(at, at),
        Err(_) if at == -3 => Deadline::Unknown,
        Err(_) => Deadline::Never,
    }
}
