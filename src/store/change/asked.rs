//! What is asked of a record's Redis keys right before a call and right behind it, and what the replies say.

use redis::Value;

use super::set_words::Words;
use crate::domain::record::{Content, Deadline, Observation, SeenKey};
use crate::store::connection::reply;

/// How a node tells of a Redis key what its identity takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadlineCommand {
    /// PEXPIRETIME tells the deadline.
    Deadline,
    /// TIME and PTTL do, where one comes right after the other.
    Time,
}

impl DeadlineCommand {
    pub(super) fn command(self) -> &'static str {
        if self == Self::Deadline { "PEXPIRETIME" } else { "TIME" }
    }

    pub(super) fn deadline(self, moment: Value, pttl: i64) -> Option<Deadline> {
        match self {
            Self::Deadline => reply::integer(&moment).map(Deadline::from_pexpiretime),
            Self::Time => {
                reply::millis(moment).map(|now| Deadline::from_pttl(pttl, Some(now), Some(now)))
            }
        }
    }
}

/// What is asked of a record's Redis keys before and behind a call.
pub(super) struct IdentityCommands<'a> {
    pub(super) seen: &'a Observation,
    pub(super) reads: DeadlineCommand,
    /// The Redis keys whose fields are asked for, by their place.
    pub(super) hashes: &'a [usize],
}

impl IdentityCommands<'_> {
    pub(super) fn is_hash(&self, place: usize) -> bool {
        self.hashes.contains(&place)
    }

    pub(super) fn words(&self) -> Vec<Words> {
        self.seen.keys.iter().enumerate().flat_map(|(place, key)| self.of(place, key)).collect()
    }

    /// What is asked of a Redis key, by what was seen there: DUMP tells of what is no string whether it is the same.
    fn of(&self, place: usize, seen: &SeenKey) -> Vec<Words> {
        let of_key = |command: &str| vec![command.as_bytes().to_vec(), seen.redis_key.clone()];
        let is_hash = self.is_hash(place);
        let value = if is_hash || seen.content.other_type().is_some() { "DUMP" } else { "GET" };
        let moment = match self.reads {
            DeadlineCommand::Deadline => of_key("PEXPIRETIME"),
            DeadlineCommand::Time => vec![b"TIME".to_vec()],
        };
        let fields = is_hash.then(|| of_key("HGETALL"));
        [of_key(value), of_key("TYPE"), of_key("PTTL"), moment].into_iter().chain(fields).collect()
    }
}

/// The reply of HGETALL, in either protocol; `None` for what is no hash.
pub(super) fn fields_of(reply: Value) -> Option<Content> {
    let words = match reply {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        other => reply::array(other)?,
    };
    words.into_iter().map(reply::bytes).collect::<Option<Vec<_>>>().map(Content::hash)
}
