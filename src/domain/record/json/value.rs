//! A JSON value that borrows its text where it can.

use std::borrow::Cow;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    /// A number as it was written.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    /// Bytes that are not text, from a format that has such a type, or from a hash.
    Bytes(Cow<'a, [u8]>),
    Array(Vec<Json<'a>>),
    /// An object: names without duplicates, and values.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// An array or an object in its original text.
    Raw(Cow<'a, str>),
}

impl Json<'_> {
    pub(in crate::domain) fn by_ref(&self) -> Json<'_> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(*flag),
            Self::Number(text) => Json::Number(Cow::Borrowed(text)),
            Self::String(text) => Json::String(Cow::Borrowed(text)),
            Self::Bytes(bytes) => Json::Bytes(Cow::Borrowed(bytes)),
            Self::Raw(text) => Json::Raw(Cow::Borrowed(text)),
            Self::Array(items) => Json::Array(items.iter().map(Json::by_ref).collect()),
            Self::Object(members) => {
                let mut borrowed = Vec::with_capacity(members.len());
                for (name, value) in members {
                    borrowed.push((Cow::Borrowed(&**name), value.by_ref()));
                }
                Json::Object(borrowed)
            }
        }
    }

    /// The value, with every text copied.
    pub(in crate::domain) fn into_owned(self) -> Json<'static> {
        match self {
            Json::Null => Json::Null,
            Json::Bool(flag) => Json::Bool(flag),
            Json::Number(text) => Json::Number(owned_text(text)),
            Json::String(text) => Json::String(owned_text(text)),
            Json::Bytes(bytes) => Json::Bytes(Cow::Owned(bytes.into_owned())),
            Json::Raw(text) => Json::Raw(owned_text(text)),
            // Collecting from `into_iter` reuses the memory of the vector.
            Json::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Json::Object(members) => Json::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (owned_text(name), value.into_owned()))
                    .collect(),
            ),
        }
    }

    /// The number, if it is written as a whole number.
    pub(crate) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The value as a `serde_json` tree, which owns its texts.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            // A value that is nested too deeply for a tree, or a number that is too large, stays
            // text.
            Self::Number(text) | Self::Raw(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_ref()))
            }
            Self::String(text) => Value::from(text.as_ref()),
            Self::Bytes(bytes) => Value::from(String::from_utf8_lossy(bytes)),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.as_ref().to_owned(), value.to_value()))
                    .collect(),
            ),
        }
    }
}

fn owned_text(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl From<Value> for Json<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(Cow::Owned(number.to_string())),
            Value::String(text) => Self::String(Cow::Owned(text)),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (Cow::Owned(name), Self::from(value)))
                    .collect(),
            ),
        }
    }
}
