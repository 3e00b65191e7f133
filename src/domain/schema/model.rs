//! The schema as the rest of idemctl uses it: checked, with every name resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::domain::template::KeyTemplate;
use crate::domain::write::Template;

/// How one service library stores a record: key templates, values, TTLs, and the three steps.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The name operators type, e.g. `go-middleware`; also the folder's name.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// The schema of the newer release that shares this one's Redis keys, where there is one.
    pub older_release_of: Option<String>,
    /// The Redis keys of a record, the lock's first: one (`record`) or two (`lock`, `result`).
    pub slots: Vec<SlotKey>,
    /// True when the templates take a deployment's prefix.
    pub takes_prefix: bool,
    /// How long a lock lives.
    pub lock_ttl: Duration,
    /// How long a result lives.
    pub result_ttl: Duration,
    /// How values are told apart, in the order they are tried.
    pub values: Vec<ValueCase>,
    /// The values the service writes.
    pub write: WriteFormat,
    /// Take the lock, or learn who has it or what the result is.
    pub begin: Step,
    /// Store the result and give up the lock.
    pub complete: Step,
    /// Give up the lock without a result; `None` where the service never does.
    pub release: Option<Step>,
    /// The service's scripts by name.
    pub scripts: BTreeMap<String, Script>,
    /// Where the schema came from.
    pub origin: Origin,
}

impl Schema {
    /// The index of the slot that holds the lock.
    pub fn lock_slot(&self) -> usize {
        0
    }

    /// The index of the slot that holds the result: the lock's own in a one-key layout.
    pub fn result_slot(&self) -> usize {
        self.slots.len() - 1
    }

    /// The Redis keys of an idempotency key, in slot order.
    pub fn redis_keys(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.slots.iter().map(|slot| slot.template.redis_key(key)).collect()
    }

    /// True when both keep their records at the same Redis keys.
    pub fn has_templates_of(&self, other: &Self) -> bool {
        self.slots.iter().map(|slot| &slot.template).eq(other.slots.iter().map(|slot| &slot.template))
    }

    /// True when every Redis key starts with literal bytes.
    pub fn has_prefix(&self) -> bool {
        self.slots.iter().all(|slot| slot.template.has_prefix())
    }

    /// True when the begin step is one script, so that only one request can win by construction.
    pub fn begins_with_a_script(&self) -> bool {
        matches!(self.begin.calls.as_slice(), [Call { action: Action::Script { .. }, .. }])
    }

    /// The index of a slot by its role.
    pub fn slot(&self, role: Slot) -> Option<usize> {
        self.slots.iter().position(|slot| slot.role == role)
    }
}

/// Where a schema came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    BuiltIn,
    /// A folder of the operator's.
    Folder(PathBuf),
}

/// One script of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The script's name, its file's stem.
    pub name: String,
    /// The Lua text, as it is sent.
    pub text: Cow<'static, str>,
}

/// What one Redis key of a record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Lock and result in one key.
    Record,
    /// The lock beside a result.
    Lock,
    /// The result beside a lock.
    Result,
}

impl Slot {
    /// The word for it in `schema.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Lock => "lock",
            Self::Result => "result",
        }
    }
}

/// A slot and its key template.
#[derive(Debug, Clone)]
pub struct SlotKey {
    /// What the key is for.
    pub role: Slot,
    /// Where it is.
    pub template: KeyTemplate,
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No Redis key of the record exists.
    Absent,
    /// A lock is held and no result is stored.
    InProgress,
    /// A result is stored.
    Completed,
    /// Something is stored that the schema cannot read.
    Unreadable,
}

impl State {
    /// The stable word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::InProgress => "in-progress",
            Self::Completed => "completed",
            Self::Unreadable => "unreadable",
        }
    }
}

/// How a value's bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes as they are.
    Text,
    /// A JSON document.
    Json,
}

/// How a response body sits inside a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyEncoding {
    /// The text itself.
    #[default]
    Text,
    /// Base64 of the bytes.
    Base64,
    /// Any JSON value; a string stands for its text.
    Json,
}

/// The unit of the timestamps in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timestamp {
    /// Milliseconds since the epoch.
    #[default]
    Milliseconds,
    /// Seconds since the epoch, a fraction allowed.
    Seconds,
    /// RFC 3339 text.
    Rfc3339,
}

/// One kind of value that a slot can hold: how to tell it, what it says of the record.
#[derive(Debug, Clone)]
pub struct ValueCase {
    /// The name that `when` conditions use.
    pub name: String,
    /// Which slot (an index into [`Schema::slots`]).
    pub slot: usize,
    /// How the bytes are read.
    pub encoding: Encoding,
    /// What must hold for the value to be of this case.
    pub tests: Where,
    /// The state of a record that holds it.
    pub state: State,
    /// Where the fields sit.
    pub fields: Fields,
    /// How the body is kept.
    pub body_encoding: BodyEncoding,
    /// The unit of timestamps.
    pub timestamp: Timestamp,
}

/// What must hold for a value to be of a case.
#[derive(Debug, Clone, Default)]
pub struct Where {
    /// The whole value equals these bytes.
    pub equals: Option<Vec<u8>>,
    /// JSON pointers and the values that must be there.
    pub fields: Vec<(String, Value)>,
    /// JSON pointers that must be there with any value.
    pub has: Vec<String>,
}

/// JSON pointers to what a value holds; the empty pointer is the whole value.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// Who holds the lock (the fencing token).
    pub owner: Option<String>,
    /// A hash of the request's payload.
    pub fingerprint: Option<String>,
    /// When the lock was taken.
    pub created_at: Option<String>,
    /// When the result was stored.
    pub completed_at: Option<String>,
    /// The response's status code.
    pub status: Option<String>,
    /// The response's headers: an object of strings or of lists of strings.
    pub headers: Option<String>,
    /// The response's body.
    pub body: Option<String>,
    /// The error text of a failed operation.
    pub error: Option<String>,
    /// A pointer to a result kept in a blob store.
    pub blob: Option<String>,
}

/// The values the service writes, as templates.
#[derive(Debug, Clone)]
pub struct WriteFormat {
    /// What a lock looks like.
    pub lock_value: Template,
    /// What a result looks like.
    pub result_value: Template,
    /// Go's JSON writes `<`, `>` and `&` as `\u003c` and so on.
    pub escape_html: bool,
}

/// One step of the state machine: calls made one after another until one's reply decides.
#[derive(Debug, Clone)]
pub struct Step {
    /// True when the step changes nothing unless the lock is still the caller's.
    pub checks_owner: bool,
    /// What the service does around it, for people.
    pub note: Option<String>,
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
    /// No such Redis key.
    Absent,
    /// Something is there.
    Present,
    /// A string that no value case of the slot fits.
    Unreadable,
    /// Not a string.
    WrongType,
    /// The value case with this index in [`Schema::values`].
    Value(usize),
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
    /// An array whose first element is this integer; a second one is the stored response.
    Array(i64),
    /// Any string: the stored response.
    Text,
}

/// What a reply means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Begin: the lock is taken, the operation executes.
    Acquired,
    /// Begin: another holds the lock.
    Conflict,
    /// Begin: a result is stored and comes with the reply, where the service keeps one.
    Replay,
    /// Begin: the request fails.
    Fail,
    /// Complete: the result is stored.
    Stored,
    /// Complete or release: nothing was changed.
    Refused,
    /// Release: the lock is gone.
    Released,
    /// The next call decides.
    Next,
}

impl Meaning {
    /// The word for it in `schema.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Conflict => "conflict",
            Self::Replay => "replay",
            Self::Fail => "fail",
            Self::Stored => "stored",
            Self::Refused => "refused",
            Self::Released => "released",
            Self::Next => "next",
        }
    }
}
