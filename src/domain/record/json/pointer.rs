//! Accesses a value by JSON pointer, and reads the members of arrays and objects that are still
//! text.

use std::borrow::Cow;

use super::plain::shallow;
use super::value::Json;

impl Json<'_> {
    /// The value at a JSON pointer; the empty pointer is the value itself.
    pub fn pointer(&self, path: &str) -> Option<Json<'_>> {
        let mut rest = path;
        let mut found = None;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/')?;
            let (step, after) =
                rest.split_at(rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len()));
            found = Some(match found {
                None => self.child(step)?,
                Some(value) => Self::into_child(value, step)?,
            });
            rest = after;
        }
        Some(found.unwrap_or_else(|| self.by_ref()))
    }

    /// The value with its members read, if it is an array or an object that is still text.
    pub(crate) fn opened(&self) -> Json<'_> {
        match self {
            Self::Raw(text) => shallow(text),
            other => other.by_ref(),
        }
    }

    /// Replaces the value at a pointer; false if there is none.
    pub(in crate::domain) fn put(&mut self, path: &str, other: Json<'static>) -> bool {
        let Some(rest) = path.strip_prefix('/') else {
            *self = other.into_owned();
            return path.is_empty();
        };
        let (step, after) =
            rest.split_at(rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len()));
        if let Self::Raw(text) = self {
            *self = shallow(text).into_owned();
        }
        let child = match self {
            Self::Object(members) => {
                let name = unescaped_step(step);
                members.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
            Self::Array(items) => index(step).and_then(|index| items.get_mut(index)),
            _ => None,
        };
        child.is_some_and(|child| child.put(after, other))
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
}

/// The member name for a step of a pointer.
fn unescaped_step(step: &str) -> Cow<'_, str> {
    if step.as_bytes().contains(&b'~') {
        Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(step)
    }
}

/// The array index for a step of a pointer.
fn index(step: &str) -> Option<usize> {
    if step == "0" || !step.starts_with(['0', '+']) { step.parse().ok() } else { None }
}
