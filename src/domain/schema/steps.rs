//! The steps of the state machine: the calls that are sent, and the meaning of each reply.

use std::sync::Arc;

use serde::Deserialize;
use strum::IntoStaticStr;

use super::value_template::{Placeholder, Template};
use crate::domain::as_str::as_str;

/// One step of the state machine: calls that are made one after another, until a reply decides.
#[derive(Debug, Clone)]
pub struct Step {
    /// True if the step changes nothing unless the caller still owns the lock.
    pub checks_owner: bool,
    /// True if a begin step that meets a lock without TTL rejects the request and gives the lock
    /// one.
    pub(crate) gives_ttl: bool,
    pub(crate) note: Option<String>,
    pub calls: Vec<Call>,
}

impl Step {
    /// True if a call sends the hash of the payload.
    pub(crate) fn sends_fingerprint(&self) -> bool {
        let mut words = self.calls.iter().flat_map(Call::words);
        words.any(|word| word.has(&[Placeholder::Fingerprint]))
    }
}

/// One request to Redis, and the meaning of each reply.
#[derive(Debug, Clone)]
pub struct Call {
    pub action: Action,
    /// The replies that the schema lists. The first entry that matches a reply counts.
    pub replies: Vec<Reply>,
    /// The Redis key whose value the reply is, by its index: the call is a GET, HGETALL or HMGET of
    /// it.
    pub(crate) reads: Option<usize>,
}

impl Call {
    /// The words that are sent: a script's KEYS and ARGV, or the words of a command.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Template> {
        match &self.action {
            // The empty chain gives both arms the same type.
            Action::Command(words) => words.iter().chain(&[]),
            Action::Script { keys, args, .. } => keys.iter().chain(args),
        }
    }

    /// The Redis keys that the call may write, as far as its words show them: those in KEYS of a
    /// script, and the first word after the name of a command.
    pub(super) fn written_keys(&self) -> &[Template] {
        match &self.action {
            Action::Script { keys, .. } => keys,
            Action::Command(words) => {
                let name = words.first().map(Template::display).unwrap_or_default();
                let only_reads = READS.iter().any(|read| name.eq_ignore_ascii_case(read));
                if only_reads { &[] } else { words.get(1..2).unwrap_or_default() }
            }
        }
    }

    /// True if the call sends a script, whose words do not show when it writes.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self.action, Action::Script { .. })
    }

    /// True for a command that writes a Redis key whatever it holds.
    pub(crate) fn is_plain_write(&self) -> bool {
        !self.is_script() && !self.written_keys().is_empty() && !self.writes_if_free()
    }

    /// True for a command that writes a Redis key, or a field of a hash, only if it is absent.
    pub(crate) fn writes_if_free(&self) -> bool {
        let Action::Command(words) = &self.action else { return false };
        let is = |word: &Template, text: &str| word.display().eq_ignore_ascii_case(text);
        let Some((name, arguments)) = words.split_first() else { return false };
        match arguments {
            _ if is(name, "SETNX") || is(name, "HSETNX") => true,
            // After the Redis key and the value.
            [_, _, options @ ..] if is(name, "SET") => options.iter().any(|word| is(word, "NX")),
            _ => false,
        }
    }

    /// The name of the call: its script, or its command.
    pub(crate) fn name(&self) -> String {
        match &self.action {
            Action::Script { name, .. } => name.clone(),
            Action::Command(words) => words.first().map(Template::display).unwrap_or_default(),
        }
    }

    /// True if a word of the call contains the time.
    pub(crate) fn sends_time(&self) -> bool {
        self.words().any(Template::has_time)
    }
}

/// Commands that services use to look at a Redis key, and that change nothing.
const READS: [&str; 14] = [
    "EXISTS",
    "GET",
    "GETRANGE",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "PTTL",
    "SISMEMBER",
    "STRLEN",
    "TTL",
    "TYPE",
    "ZSCORE",
];

/// What a call executes.
#[derive(Debug, Clone)]
pub enum Action {
    Script { name: String, keys: Vec<Template>, args: Vec<Template> },
    Command(Vec<Template>),
}

/// One reply: how it is recognised, what it means, and in which states of the Redis keys it is
/// predicted.
#[derive(Debug, Clone)]
pub struct Reply {
    pub pattern: ReplyPattern,
    /// The value format that the reply's text must have: an index into [`super::Schema::values`].
    pub(crate) value: Option<usize>,
    pub means: Meaning,
    /// The alternative conditions, any of which predicts the reply. An empty list never predicts
    /// it; a condition without keys always does.
    pub when: Vec<Condition>,
    /// The client's response, e.g. `409 Conflict`.
    pub client: Option<Arc<str>>,
}

impl Reply {
    /// True if the reply is only for a value whose contained expiry has passed.
    pub(crate) fn is_for_past_expiry(&self) -> bool {
        !self.when.is_empty() && self.when.iter().all(Condition::is_for_past_expiry)
    }

    /// True if the reply is only for a request whose payload differs from the stored one.
    pub(crate) fn is_for_other_payloads(&self) -> bool {
        let is_for_others =
            |condition: &Condition| condition.other_payload || condition.no_fingerprint;
        !self.when.is_empty() && self.when.iter().all(is_for_others)
    }

    /// True if the reply is also for a value that stores no hash of a payload.
    pub(crate) fn is_for_no_fingerprint(&self) -> bool {
        self.when.iter().any(|condition| condition.no_fingerprint)
    }
}

/// The condition under which a reply is predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// The required state of each of these Redis keys, given by its index. All of them must hold.
    pub keys: Vec<(usize, KeyIs)>,
    /// True if the request's payload must differ from the stored one.
    pub other_payload: bool,
    /// True if the record must store no hash of a payload, or an empty one.
    pub no_fingerprint: bool,
}

impl Condition {
    /// True if the condition holds only for values of this format.
    pub(super) fn is_about(&self, format: usize) -> bool {
        self.keys.iter().any(|(_, is)| *is == KeyIs::Value(format))
    }

    /// True if the condition holds for a value whose contained expiry has passed. Such a value
    /// counts as absent or reclaimable.
    fn is_for_past_expiry(&self) -> bool {
        self.keys.iter().any(|(_, is)| matches!(is, KeyIs::Absent | KeyIs::Reclaimable))
    }
}

/// The state of a Redis key in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyIs {
    Absent,
    Present,
    /// A string that matches no value format of the Redis key.
    Unreadable,
    /// An empty string that matches no value format of the Redis key.
    EmptyText,
    /// A value of another Redis type.
    WrongType,
    /// A value whose contained expiry has passed, and which the next request replaces.
    Reclaimable,
    /// The value format with this index in [`super::Schema::values`].
    Value(usize),
}

impl KeyIs {
    /// Parses a word of `when` that names a state of a Redis key; `None` for the name of a value
    /// format.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        match word {
            "absent" => Some(Self::Absent),
            "present" => Some(Self::Present),
            "unreadable" => Some(Self::Unreadable),
            "empty-text" => Some(Self::EmptyText),
            "wrong-type" => Some(Self::WrongType),
            "reclaimable" => Some(Self::Reclaimable),
            _ => None,
        }
    }
}

/// How a reply is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPattern {
    /// A string that equals this text.
    Word(String),
    Integer(i64),
    Nil,
    /// An error with this code; `*` matches any error.
    Error(String),
    /// An array with this first element. A second element is the stored response.
    Array(First),
    /// Any string, which is the stored response.
    Text,
    /// A string of the reply's value format, or an array that contains one.
    Value,
}

/// The first element of an array reply.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the first element of an array is a whole number or a word")]
pub enum First {
    Integer(i64),
    Word(String),
}

/// The meaning of a reply for its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Meaning {
    /// Begin: the caller has the lock, and the operation is executed.
    Acquired,
    /// Begin: another request holds the lock.
    Conflict,
    /// Begin: a result is stored. The reply carries it if the service stores responses.
    Replay,
    /// Begin: the key is in use by a request with another payload.
    Mismatch,
    /// Begin: the request fails with an error.
    Fail,
    /// Complete: the result is stored.
    Stored,
    /// Renew: the caller still owns the lock, whose TTL was extended.
    Renewed,
    /// Complete, renew or release: the caller does not own the lock, and nothing was changed.
    Refused,
    /// Release: the lock was deleted.
    Released,
    /// The reply to the next call decides.
    Next,
}

as_str!(Meaning);
