//! The steps of the state machine: what is sent, and what each reply means.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::value_template::Template;
use crate::domain::as_str::as_str;

/// One step of the state machine: calls made one after another until one's reply decides.
#[derive(Debug, Clone)]
pub struct Step {
    /// True when the step changes nothing unless the lock is still the caller's.
    pub checks_owner: bool,
    pub(crate) note: Option<String>,
    pub calls: Vec<Call>,
}

/// One request to Redis, and what each reply to it means.
#[derive(Debug, Clone)]
pub struct Call {
    pub action: Action,
    /// The replies, the first that fits counts.
    pub replies: Vec<Reply>,
}

impl Call {
    /// What is sent: a script's KEYS and ARGV, or a command's words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Template> {
        match &self.action {
            Action::Command(words) => words.iter().chain(&[]),
            Action::Script { keys, args, .. } => keys.iter().chain(args),
        }
    }

    /// True if a word of the call is the time.
    pub(crate) fn sends_time(&self) -> bool {
        self.words().any(|word| word.time().is_some())
    }
}

#[derive(Debug, Clone)]
pub enum Action {
    Script { name: String, keys: Vec<Template>, args: Vec<Template> },
    Command(Vec<Template>),
}

/// One reply: how it is recognised, what it means, and in which state of the Redis keys it comes.
#[derive(Debug, Clone)]
pub struct Reply {
    pub pattern: ReplyPattern,
    /// The value format that the reply's text has to have, by its index in [`super::Schema::values`].
    pub(crate) value: Option<usize>,
    pub means: Meaning,
    /// The alternatives, any of which makes it come. Empty: never foreseen. One without keys: always.
    pub when: Vec<Condition>,
    /// What the client is told, e.g. `409 Conflict`.
    pub client: Option<String>,
}

impl Reply {
    /// True if the reply is for a value that is past its own expiry.
    pub(crate) fn is_for_lapsed(&self) -> bool {
        !self.when.is_empty() && self.when.iter().all(Condition::is_for_lapsed)
    }

    /// True when the reply comes only to a request whose payload is another than the stored one.
    pub(crate) fn is_for_other_payloads(&self) -> bool {
        !self.when.is_empty() && self.when.iter().all(|condition| condition.other_payload)
    }
}

/// What must hold for a reply to come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// What each of these Redis keys, named by its role, must be: all must be so.
    pub keys: Vec<(usize, KeyIs)>,
    /// True when the request's payload has to be another than the stored one.
    pub other_payload: bool,
}

impl Condition {
    /// True if it holds for a value that is past its own expiry: such a value counts as absent, or can be taken over.
    fn is_for_lapsed(&self) -> bool {
        self.keys.iter().any(|(_, is)| matches!(is, KeyIs::Absent | KeyIs::Reclaimable))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyIs {
    Absent,
    Present,
    /// A string that no value format of the role fits.
    Unreadable,
    WrongType,
    /// A value whose own moment is past, and which the next request takes over.
    Reclaimable,
    /// The value format with this index in [`super::Schema::values`].
    Value(usize),
}

/// The word of `when` for a value that the next request takes over. Format 1 did not have it.
pub(super) const RECLAIMABLE: &str = "reclaimable";

impl KeyIs {
    /// The state of a Redis key that a word of `when` names; `None` for the name of a value.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        match word {
            "absent" => Some(Self::Absent),
            "present" => Some(Self::Present),
            "unreadable" => Some(Self::Unreadable),
            "wrong-type" => Some(Self::WrongType),
            RECLAIMABLE => Some(Self::Reclaimable),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPattern {
    /// A string equal to this.
    Word(String),
    Integer(i64),
    Nil,
    /// An error with this code; `*` is any.
    Error(String),
    /// An array whose first element is this; a second one is the stored response.
    Array(First),
    /// Any string: the stored response.
    Text,
    /// A string of the reply's value format, or an array with one.
    Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the first element of an array is a whole number or a word")]
pub enum First {
    Integer(i64),
    Word(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Meaning {
    /// Begin: the lock is taken, the operation executes.
    Acquired,
    Conflict,
    /// Begin: a result is stored and comes with the reply, where the service keeps one.
    Replay,
    /// Begin: the key is in use for a request with another payload.
    Mismatch,
    Fail,
    Stored,
    /// Renew: the lock is still the caller's, and lives on.
    Renewed,
    /// Complete, renew or release: nothing was changed.
    Refused,
    Released,
    /// The next call decides.
    Next,
}

as_str!(Meaning);
