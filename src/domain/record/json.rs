//! JSON as it lies in a value: looked at in place, so that telling a record's state copies next to nothing.
//!
//! A tree of what stands in a value takes many times the value's memory. So arrays and objects within an object stay the
//! text that they are, which is known to be sound, until somebody asks for what is in them.
//!
//! [`plain`] reads what services write nearly always: an object of sound UTF-8. It gives up on anything odd, which
//! [`super::json_prefix`] then reads with all care; where both read something they read the same.

mod close;
mod plain;

use std::borrow::Cow;

use serde_json::Value;

pub(in crate::domain) use self::close::close;
pub use self::plain::plain;
use self::plain::shallow;

/// A JSON value that borrows what it can.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(Cow<'a, str>),
    /// A string's text.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object: names, each once, and values.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// An array or an object as it is written.
    Raw(Cow<'a, str>),
}

impl<'a> Json<'a> {
    /// What stands at a JSON pointer; the empty one is the value itself.
    pub fn pointer(&self, path: &str) -> Option<Json<'_>> {
        let mut rest = path;
        let mut found = None;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/')?;
            let (step, after) = rest.split_at(rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len()));
            found = Some(match found {
                None => self.child(step)?,
                Some(value) => Self::into_child(value, step)?,
            });
            rest = after;
        }
        Some(found.unwrap_or_else(|| self.by_ref()))
    }

    /// The same with its members, where it is an array or an object as it is written.
    pub fn opened(&self) -> Json<'_> {
        match self {
            Self::Raw(text) => shallow(text),
            other => other.by_ref(),
        }
    }

    fn by_ref(&self) -> Json<'_> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(*flag),
            Self::Number(text) => Json::Number(Cow::Borrowed(text)),
            Self::String(text) => Json::String(Cow::Borrowed(text)),
            Self::Raw(text) => Json::Raw(Cow::Borrowed(text)),
            Self::Array(items) => Json::Array(items.iter().map(Json::by_ref).collect()),
            Self::Object(members) => {
                Json::Object(members.iter().map(|(name, value)| (Cow::Borrowed(&**name), value.by_ref())).collect())
            }
        }
    }

    fn child(&self, step: &str) -> Option<Json<'_>> {
        match self {
            Self::Object(members) => {
                let name = unescaped_step(step);
                members.iter().find(|(known, _)| *known == name).map(|(_, value)| value.by_ref())
            }
            Self::Array(items) => items.get(index(step)?).map(Json::by_ref),
            Self::Raw(text) => Self::into_child(shallow(text), step),
            _ => None,
        }
    }

    fn into_child<'s>(value: Json<'s>, step: &str) -> Option<Json<'s>> {
        match value {
            Json::Object(members) => {
                let name = unescaped_step(step);
                members.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
            Json::Array(items) => items.into_iter().nth(index(step)?),
            Json::Raw(Cow::Borrowed(text)) => Self::into_child(shallow(text), step),
            _ => None,
        }
    }

    /// The same, which borrows nothing.
    pub(in crate::domain) fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Json::Null => Json::Null,
            Json::Bool(flag) => Json::Bool(flag),
            Json::Number(text) => Json::Number(owned(text)),
            Json::String(text) => Json::String(owned(text)),
            Json::Raw(text) => Json::Raw(owned(text)),
            Json::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Json::Object(members) => {
                Json::Object(members.into_iter().map(|(name, value)| (owned(name), value.into_owned())).collect())
            }
        }
    }

    /// The number, where it is a whole one that is written as such.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The same as a tree that owns everything.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            // What no tree is made of, for it is nested too deep or is a number beyond all others, stands as its text.
            Self::Number(text) | Self::Raw(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_ref()))
            }
            Self::String(text) => Value::from(text.as_ref()),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.as_ref().to_owned(), value.to_value())).collect(),
            ),
        }
    }
}

/// The name that a step of a pointer stands for.
fn unescaped_step(step: &str) -> Cow<'_, str> {
    if step.as_bytes().contains(&b'~') {
        Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(step)
    }
}

/// The index that a step of a pointer stands for.
fn index(step: &str) -> Option<usize> {
    if step == "0" || !step.starts_with(['0', '+']) { step.parse().ok() } else { None }
}

impl From<Value> for Json<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(Cow::Owned(number.to_string())),
            Value::String(text) => Self::String(Cow::Owned(text)),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, value)| (Cow::Owned(name), Self::from(value))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;
