//! The reply of `observe.lua`, taken apart.

use std::time::Duration;

use redis::Value;

use crate::domain::record::{Content, Deadline, Expiry, Observation, SeenSlot};
use crate::store::connection::reply;

/// Reads the reply of `observe.lua` for these Redis keys.
pub(in crate::store) fn observation(value: Value, keys: &[Vec<u8>]) -> Option<Observation> {
    let mut items = reply::array(value)?.into_iter();
    let server_ms = u64::try_from(reply::integer(&items.next()?)?).ok();
    let slots = keys.iter().map(|key| seen_slot(key, items.next()?)).collect::<Option<_>>()?;
    Some(Observation { server_ms, slots, atomic: true })
}

fn seen_slot(key: &[u8], value: Value) -> Option<SeenSlot> {
    let parts = <[Value; 9]>::try_from(reply::array(value)?).ok()?;
    let [kind, pttl, deadline, exact, idle, memory, length, checksum, head] = parts;
    let number = |value: Value| reply::integer(&value);
    let content = match reply::word(kind)?.as_str() {
        "none" => Content::Absent,
        "string" => Content::Text { head: reply::bytes(head)?, length: u64::try_from(number(length)?).ok() },
        other => Content::Other(other.to_owned()),
    };
    let deadline = deadline_of(number(deadline)?, number(exact)? == 1);
    Some(SeenSlot {
        checksum: reply::bytes(checksum)?.try_into().ok(),
        idle: u64::try_from(number(idle)?).ok().map(Duration::from_secs),
        memory: u64::try_from(number(memory)?).ok(),
        ..SeenSlot::new(key, content, Expiry::from_pttl(number(pttl)?), deadline)
    })
}

fn deadline_of(at: i64, is_exact: bool) -> Deadline {
    match u64::try_from(at) {
        Ok(at) if is_exact => Deadline::At(at),
        Ok(at) => Deadline::Between(at, at),
        Err(_) if at == -3 => Deadline::Unknown,
        Err(_) => Deadline::Never,
    }
}
