//! Telling a slot's value: which of the schema's cases it is, and what it holds.

mod fit;
mod form;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use self::fit::{Fit, fits};
pub use self::form::Form;
use super::json::Json;
use super::json_prefix;
use super::observation::Content;
use super::response::Response;
use crate::domain::schema::{BodyEncoding, Encoding, Schema, SlotIs, State, Timestamp, ValueCase};
use crate::domain::step::request::compact_json;

/// What a slot turned out to hold under a schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Nothing is there.
    Absent,
    /// One of the schema's value cases.
    Value(Box<Decoded>),
    /// A string that cannot be read, and why.
    Unreadable(String),
    /// A string that can be read and is of no case: somebody else wrote it.
    Foreign {
        /// Why it is of none.
        why: String,
        /// True when only the beginning was read, and what comes behind decides which case a script takes it for.
        is_part: bool,
    },
    /// Not a string: Redis's name of the type.
    WrongType(String),
}

impl Reading {
    /// True when a `when` condition's word holds for the slot.
    pub fn is(&self, asked: &SlotIs) -> bool {
        match asked {
            SlotIs::Absent => *self == Self::Absent,
            SlotIs::Present => *self != Self::Absent,
            SlotIs::Unreadable => self.unread().is_some(),
            SlotIs::WrongType => matches!(self, Self::WrongType(_)),
            SlotIs::Value(case) => matches!(self, Self::Value(decoded) if decoded.case == *case),
        }
    }

    /// True when only the beginning was read, and what comes behind decides what it is.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Unreadable(why) if why == UNDECIDED)
    }

    /// Why the string is of no case, where there is one that is of none.
    pub fn unread(&self) -> Option<&str> {
        match self {
            Self::Unreadable(why) | Self::Foreign { why, .. } => Some(why),
            _ => None,
        }
    }

    /// Why the value is none of the schema's own, where that is known.
    pub fn foreign_because(&self) -> Option<&str> {
        match self {
            Self::Foreign { why, .. } => Some(why),
            Self::Value(value) => value.form.strangeness(),
            _ => None,
        }
    }

    /// True when the value is told, or there is none, and nothing that was read of it is another program's.
    pub fn is_own(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Value(value) => !value.form.is_foreign(),
            _ => false,
        }
    }

    /// The decoded value, where there is one.
    pub fn decoded(&self) -> Option<&Decoded> {
        match self {
            Self::Value(decoded) => Some(decoded),
            _ => None,
        }
    }
}

/// Why a value cannot be told of which only the beginning was read, and what comes behind decides.
const UNDECIDED: &str = "what it is stands beyond the part that was read";

/// A value of a known case.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The index of the case in [`Schema::values`].
    pub case: usize,
    /// Whether it has the form that the schema writes.
    pub form: Form,
    /// Who holds the lock.
    pub owner: Option<Vec<u8>>,
    /// The hash of the request's payload.
    pub fingerprint: Option<String>,
    /// When the lock was taken, in milliseconds since the epoch.
    pub created_ms: Option<u64>,
    /// When the result was stored, in milliseconds since the epoch.
    pub completed_ms: Option<u64>,
    /// The stored response.
    pub response: Option<Response>,
    /// The error text of a failed operation.
    pub error: Option<String>,
    /// A pointer to a result in a blob store.
    pub blob: Option<Value>,
}

/// Reads what a slot holds.
pub fn read(schema: &Schema, slot: usize, content: &Content) -> Reading {
    let head = match content {
        Content::Absent => return Reading::Absent,
        Content::Other(kind) => return Reading::WrongType(kind.clone()),
        Content::Text { head, .. } => head,
    };
    let whole = content.is_whole();
    let cases = || schema.values.iter().enumerate().filter(|(_, case)| case.slot == slot);
    let wants_json = cases().any(|(_, case)| case.encoding == Encoding::Json);
    let json = wants_json.then(|| json_prefix::parse(head, whole));
    let mut told = Told::default();
    for (index, case) in cases() {
        let document = match (case.encoding, &json) {
            (Encoding::Text, _) => None,
            (Encoding::Json, Some(Ok(document))) => Some(document),
            (Encoding::Json, _) => continue,
        };
        let fit = fits(case, head, whole, document);
        if fit == Fit::No {
            continue;
        }
        match Form::of(schema, case, document, whole) {
            Form::Foreign(why) if fit == Fit::Yes => _ = told.other.get_or_insert((index, Form::Foreign(why))),
            Form::Foreign(why) => _ = told.part.get_or_insert(why),
            form if fit == Fit::Yes && told.open.iter().all(|state| *state == case.state) => {
                return Reading::Value(Box::new(decode(case, (index, form), head, whole, document)));
            }
            _ => told.open.push(case.state),
        }
    }
    if !told.open.is_empty() {
        return Reading::Unreadable(UNDECIDED.to_owned());
    }
    if let Some((index, form)) = told.other {
        let case = &schema.values[index];
        let document = json.as_ref().and_then(|json| json.as_ref().ok()).filter(|_| case.encoding == Encoding::Json);
        return Reading::Value(Box::new(decode(case, (index, form), head, whole, document)));
    }
    match (told.part, json) {
        (Some(why), _) => Reading::Foreign { why, is_part: true },
        (None, Some(Err(why))) => Reading::Unreadable(format!("not JSON: {why}")),
        (None, Some(Ok(_))) => Reading::Foreign { why: "JSON of another shape".to_owned(), is_part: false },
        (None, None) => Reading::Foreign { why: "not one of the words the schema knows".to_owned(), is_part: false },
    }
}

/// What the cases of a slot say of a value that none of them has claimed yet.
#[derive(Default)]
struct Told {
    /// The states of the cases that what was not read may yet decide for.
    open: Vec<State>,
    /// The first case that it is of, though it has not its form.
    other: Option<(usize, Form)>,
    /// Why it has not the form of a case that it may be of.
    part: Option<String>,
}

/// True when a closed form of the schema reads what stands at one of its Redis keys as a result.
pub fn is_closed_result(schema: &Schema, slot: usize, content: &Content) -> bool {
    let Content::Text { head, .. } = content else { return false };
    let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let may_be = |case: &ValueCase| match &case.tests.equals {
        Some(equals) => head == equals,
        None => is_object && case.closed.is_some(),
    };
    let results = || schema.values.iter().filter(|case| case.slot == slot && case.state == State::Completed);
    results().any(may_be)
        && match read(schema, slot, content) {
            Reading::Value(value) => {
                let case = &schema.values[value.case];
                case.state == State::Completed && case.is_closed() && !value.form.is_foreign()
            }
            _ => false,
        }
}

fn decode(
    case: &ValueCase,
    (index, form): (usize, Form),
    head: &[u8],
    whole: bool,
    document: Option<&Json<'_>>,
) -> Decoded {
    let source = Source { head, document };
    let fields = &case.fields;
    let text =
        |path: &Option<String>| source.text(path.as_deref()?).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let time = |path: &Option<String>| source.text(path.as_deref()?).and_then(|bytes| millis(&bytes, case.timestamp));
    Decoded {
        case: index,
        form,
        owner: fields.owner.as_deref().and_then(|path| source.text(path)).map(Cow::into_owned),
        fingerprint: text(&fields.fingerprint),
        created_ms: time(&fields.created_at),
        completed_ms: time(&fields.completed_at),
        response: source.response(case, whole),
        error: text(&fields.error),
        blob: fields.blob.as_deref().and_then(|path| document?.pointer(path)).map(|blob| blob.to_value()),
    }
}

/// The bytes of a value, and the document they hold where they are JSON.
struct Source<'a> {
    head: &'a [u8],
    document: Option<&'a Json<'a>>,
}

impl Source<'_> {
    /// A field as text: a JSON string's own text, any other JSON value as JSON.
    fn text(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        match self.document {
            None => path.is_empty().then_some(Cow::Borrowed(self.head)),
            Some(document) => match document.pointer(path)? {
                Json::Null => None,
                Json::String(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
                Json::String(Cow::Owned(text)) => Some(Cow::Owned(text.into_bytes())),
                // Without a tree, which takes many times the memory of a large body.
                Json::Raw(text) => compact_json(text.as_bytes()).map(Cow::Owned),
                other => Some(Cow::Owned(other.to_value().to_string().into_bytes())),
            },
        }
    }

    fn response(&self, case: &ValueCase, whole: bool) -> Option<Response> {
        let fields = &case.fields;
        if fields.status.is_none() && fields.headers.is_none() && fields.body.is_none() {
            return None;
        }
        let at = |path: &Option<String>| self.document?.pointer(path.as_deref()?);
        Some(Response {
            status: at(&fields.status).and_then(|status| status.as_i64()),
            headers: at(&fields.headers).map(|found| headers(&found.opened())).unwrap_or_default(),
            body: fields.body.as_deref().and_then(|path| self.body(path, case.body_encoding)).unwrap_or_default(),
            whole,
        })
    }

    fn body(&self, path: &str, encoding: BodyEncoding) -> Option<Vec<u8>> {
        let text = self.text(path)?;
        Some(match encoding {
            BodyEncoding::Text | BodyEncoding::Json => text.into_owned(),
            BodyEncoding::Base64 => base64_bytes(&text),
        })
    }
}

/// Undoes base64; text that is not base64 stays as it is, and a cut one gives the bytes that are complete.
fn base64_bytes(text: &[u8]) -> Vec<u8> {
    STANDARD
        .decode(text)
        .or_else(|_| STANDARD.decode(&text[..text.len() - text.len() % 4]))
        .unwrap_or_else(|_| text.to_vec())
}

fn headers(value: &Json<'_>) -> Vec<(String, String)> {
    let Json::Object(members) = value else { return Vec::new() };
    let mut headers = Vec::with_capacity(members.len());
    for (name, value) in members {
        let values = match value.opened() {
            Json::Array(values) => values,
            _ => vec![value.opened()],
        };
        for value in &values {
            let text = if let Json::String(text) = value { text.to_string() } else { value.to_value().to_string() };
            headers.push((name.to_string(), text));
        }
    }
    headers
}

fn millis(text: &[u8], unit: Timestamp) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match unit {
        Timestamp::Milliseconds => text.parse().ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative or huge time saturates"
        )]
        Timestamp::Seconds => text.parse::<f64>().ok().map(|seconds| (seconds * 1000.0) as u64),
        Timestamp::Rfc3339 => {
            let time = humantime::parse_rfc3339_weak(text).ok()?;
            let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        }
    }
}
