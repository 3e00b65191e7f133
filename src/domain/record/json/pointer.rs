//! Accesses a value by JSON pointer, and reads the members of arrays and objects that are still
//! text.

use std::borrow::Cow;

use super::plain::shallow;
use super::value::Json;
use crate::domain::schema::closed_fields::unescaped;

impl Json<'_> {
    /// The value at a JSON pointer; the empty pointer is the value itself.
    pub fn pointer(&self, path: &str) -> Option<Json<'_>> {
        let mut rest = path;
        let mut found = None;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/')?;
            let (step, after) = split_step(rest);
            found = Some(match found {
                None => self.child(step)?,
                Some(value) => Self::into_child(value, step)?,
            });
            rest = after;
        }
        Some(found.unwrap_or_else(|| self.by_ref()))
    }

    /// True if more bytes cannot change what is at a pointer, although the document was read only
    /// in part. Only the last member at each level can be cut, or be followed by further members.
    pub(crate) fn is_settled(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix('/') else {
            // A number or a word is left out of the document unless a byte follows it.
            return matches!(self, Self::Null | Self::Bool(_) | Self::Number(_));
        };
        let (step, after) = split_step(rest);
        match self {
            Self::Raw(text) => shallow(text).is_settled(path),
            Self::Object(members) => {
                let name = unescaped(step);
                let Some(place) = members.iter().position(|(known, _)| *known == name) else {
                    return false;
                };
                place + 1 < members.len() || members[place].1.is_settled(after)
            }
            Self::Array(items) => {
                let Some(place) = index(step) else { return true };
                let Some(item) = items.get(place) else { return false };
                place + 1 < items.len() || item.is_settled(after)
            }
            // A pointer leads nowhere below a word, a number, or a text.
            _ => true,
        }
    }

    /// The value with its members read, if it is an array or an object that is still text.
    pub(crate) fn opened(&self) -> Json<'_> {
        match self {
            Self::Raw(text) => shallow(text),
            other => other.by_ref(),
        }
    }

    /// The same object with the members of these names opened.
    pub(crate) fn with_opened(&self, names: &[String]) -> Json<'_> {
        let Self::Object(members) = self else { return self.by_ref() };
        let mut opened = Vec::with_capacity(members.len());
        for (name, value) in members {
            let is_opened = names.iter().any(|wanted| **wanted == **name);
            let value = if is_opened { value.opened() } else { value.by_ref() };
            opened.push((Cow::Borrowed(&**name), value));
        }
        Json::Object(opened)
    }

    /// Replaces the value at a pointer; false if there is none.
    pub(in crate::domain) fn put(&mut self, path: &str, other: Json<'static>) -> bool {
        let Some(rest) = path.strip_prefix('/') else {
            *self = other.into_owned();
            return path.is_empty();
        };
        let (step, after) = split_step(rest);
        if let Self::Raw(text) = self {
            *self = shallow(text).into_owned();
        }
        match self {
            Self::Object(members) => {
                let name = unescaped(step);
                for (known, value) in members {
                    if *known == name {
                        return value.put(after, other);
                    }
                }
                false
            }
            Self::Array(items) => {
                let Some(index) = index(step) else { return false };
                let Some(item) = items.get_mut(index) else { return false };
                item.put(after, other)
            }
            _ => false,
        }
    }

    fn child(&self, step: &str) -> Option<Json<'_>> {
        match self {
            Self::Object(members) => {
                let name = unescaped(step);
                for (known, value) in members {
                    if *known == name {
                        return Some(value.by_ref());
                    }
                }
                None
            }
            Self::Array(items) => Some(items.get(index(step)?)?.by_ref()),
            Self::Raw(text) => Self::into_child(shallow(text), step),
            _ => None,
        }
    }

    fn into_child<'s>(value: Json<'s>, step: &str) -> Option<Json<'s>> {
        match value {
            Json::Object(members) => {
                let name = unescaped(step);
                for (known, value) in members {
                    if known == name {
                        return Some(value);
                    }
                }
                None
            }
            Json::Array(items) => items.into_iter().nth(index(step)?),
            Json::Raw(Cow::Borrowed(text)) => Self::into_child(shallow(text), step),
            _ => None,
        }
    }
}

/// The first step of a pointer without its first slash, and the rest.
fn split_step(pointer: &str) -> (&str, &str) {
    // By bytes, because a scan resolves several pointers for each value, and searching for a
    // character takes longer.
    let end = pointer.bytes().position(|byte| byte == b'/').unwrap_or(pointer.len());
    pointer.split_at(end)
}

/// The array index for a step of a pointer.
fn index(step: &str) -> Option<usize> {
    // RFC 6901 allows no leading zero and no sign, both of which Rust would parse.
    if step == "0" || !step.starts_with(['0', '+']) { step.parse().ok() } else { None }
}
