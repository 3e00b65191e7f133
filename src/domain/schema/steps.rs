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
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// One request to Redis, and what each reply to it means.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is sent.
    pub action: Action,
    /// The replies, the first that fits counts.
    pub replies: Vec<Reply>,
}

/// What a call sends.
#[derive(Debug, Clone)]
pub enum Action {
    /// One of the service's scripts.
    Script {
        /// The script's name.
        name: String,
        /// KEYS.
        keys: Vec<Template>,
        /// ARGV.
        args: Vec<Template>,
    },
    /// A plain command.
    Command(Vec<Template>),
}

/// One reply: how it is recognised, what it means, and in which state of the slots it comes.
#[derive(Debug, Clone)]
pub struct Reply {
    /// How it is recognised.
    pub pattern: Pattern,
    /// What it means.
    pub means: Meaning,
    /// The alternatives, any of which makes it come. Empty: never foreseen. One without slots: always.
    pub when: Vec<Condition>,
    /// What the client is told, e.g. `409 Conflict`.
    pub client: Option<String>,
}

/// Slots that must all be as said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(pub Vec<(usize, SlotIs)>);

/// What a condition asks of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotIs {
    Absent,
    Present,
    /// A string that no value case of the slot fits.
    Unreadable,
    WrongType,
    /// The value case with this index in [`super::Schema::values`].
    Value(usize),
}

impl SlotIs {
    /// The state of a slot that a word of `when` names; `None` for the name of a value case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        match word {
            "absent" => Some(Self::Absent),
            "present" => Some(Self::Present),
            "unreadable" => Some(Self::Unreadable),
            "wrong-type" => Some(Self::WrongType),
            _ => None,
        }
    }
}

/// How a reply is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// A string equal to this.
    Word(String),
    /// This integer.
    Integer(i64),
    /// Nil.
    Nil,
    /// An error with this code; `*` is any.
    Error(String),
    /// An array whose first element is this; a second one is the stored response.
    Array(First),
    /// Any string: the stored response.
    Text,
}

/// The first element of an array reply.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the first element of an array is a whole number or a word")]
pub enum First {
    /// This integer.
    Integer(i64),
    /// This text.
    Word(String),
}

/// What a reply means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Meaning {
    /// Begin: the lock is taken, the operation executes.
    Acquired,
    /// Begin: another holds the lock.
    Conflict,
    /// Begin: a result is stored and comes with the reply, where the service keeps one.
    Replay,
    /// Begin: the key is in use for a request with another payload.
    Mismatch,
    /// Begin: the request fails.
    Fail,
    /// Complete: the result is stored.
    Stored,
    /// Renew: the lock is still the caller's, and lives on.
    Renewed,
    /// Complete, renew or release: nothing was changed.
    Refused,
    /// Release: the lock is gone.
    Released,
    /// The next call decides.
    Next,
}

as_str!(Meaning);
