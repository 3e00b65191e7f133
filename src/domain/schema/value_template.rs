//! Texts with placeholders: what a schema sends and stores, before it is known for whom.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::place::{IN_CALLS, IN_NEWER_CALLS, IN_NEWER_VALUES, IN_RESPONSES, IN_VALUES};
use super::role::Role;

pub(in crate::domain) use super::place::Place;

/// A text with placeholders such as `{lock_ttl}`; braces around anything else are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Place(Place),
    /// What stands at this JSON pointer in the value of before.
    Kept(String),
    /// The same as a further member of an object, behind a comma; nothing where nothing stands there.
    KeptMember(String),
}

impl Part {
    fn literal(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::Literal(text.as_bytes().to_vec()))
    }
}

/// How a placeholder begins that keeps what stood at a JSON pointer.
const KEPT: &str = "kept:";

/// How one begins that keeps it as a member, where it stood there.
const KEPT_MEMBER: &str = "kept?:";

/// The placeholders that a text may have, and the reader of such texts.
#[derive(Clone, Copy)]
struct Known(&'static [&'static [(&'static str, Place)]]);

impl Visitor<'_> for Known {
    type Value = Template;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Template, E> {
        Template::parse(text, self).map_err(E::custom)
    }
}

/// A word of a call: one of its KEYS, of its ARGV, or of a plain command.
impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Known(&[IN_CALLS, IN_NEWER_CALLS]))
    }
}

/// Reads the text of a value that the service stores.
fn of_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    deserializer.deserialize_str(Known(&[IN_RESPONSES, IN_VALUES, IN_NEWER_VALUES]))
}

/// Reads the text of a value that not every service stores.
pub(super) fn of_optional_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Template>, D::Error> {
    of_value(deserializer).map(Some)
}

/// Reads the text of a response that is a part of a value.
pub(super) fn of_response<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Template>, D::Error> {
    deserializer.deserialize_str(Known(&[IN_RESPONSES])).map(Some)
}

impl Template {
    /// A word without placeholders.
    pub(in crate::domain) fn from_word(word: &str) -> Self {
        Self(Vec::from_iter(Part::literal(word)))
    }

    /// A word that is nothing but a placeholder.
    pub(in crate::domain) fn from_place(place: Place) -> Self {
        Self(vec![Part::Place(place)])
    }

    fn parse(text: &str, known: Known) -> Result<Self, String> {
        let mut parts = Vec::new();
        // What follows the last placeholder, and where in it to look for the next one.
        let (mut rest, mut from) = (text, 0);
        while let Some(open) = rest[from..].find('{').map(|at| from + at) {
            let inside = &rest[open + 1..];
            if let Some((part, behind)) = kept(inside).filter(|_| known.0.contains(&IN_NEWER_VALUES)) {
                parts.extend(Part::literal(&rest[..open]));
                parts.push(part);
                (rest, from) = (behind, 0);
                continue;
            }
            let name = inside
                .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
                .next()
                .unwrap_or_default();
            if name.is_empty() || !inside[name.len()..].starts_with('}') {
                from = open + 1;
                continue;
            }
            let known = || known.0.iter().copied().flatten();
            let Some((_, place)) = known().find(|(word, _)| *word == name) else {
                let words: Vec<_> = known().map(|(word, _)| format!("{{{word}}}")).collect();
                return Err(format!("`{{{name}}}` is no placeholder here: {}", words.join(" ")));
            };
            parts.extend(Part::literal(&rest[..open]));
            parts.push(Part::Place(*place));
            (rest, from) = (&inside[name.len() + 1..], 0);
        }
        parts.extend(Part::literal(rest));
        Ok(Self(parts))
    }

    pub(in crate::domain) fn fill(&self, place: impl Fn(Place) -> Vec<u8>) -> Vec<u8> {
        self.fill_keeping(place, |_| None)
    }

    /// Fills in the placeholders; `kept` tells what stood at a JSON pointer, as JSON.
    pub(in crate::domain) fn fill_keeping(
        &self,
        place: impl Fn(Place) -> Vec<u8>,
        kept: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => bytes.extend_from_slice(literal),
                Part::Place(of) => bytes.extend_from_slice(&place(*of)),
                Part::Kept(pointer) => bytes.extend(kept(pointer).unwrap_or_else(|| b"null".to_vec())),
                Part::KeptMember(pointer) => {
                    bytes.extend(kept(pointer).into_iter().flat_map(|value| member(pointer, value)))
                }
            }
        }
        bytes
    }

    /// The template as it stands in `schema.toml`.
    pub(crate) fn display(&self) -> String {
        let known = || [IN_CALLS, IN_RESPONSES, IN_VALUES, IN_NEWER_VALUES, IN_NEWER_CALLS].into_iter().flatten();
        let name = |place: &Place| known().find(|(_, known)| known == place);
        self.0
            .iter()
            .map(|part| match part {
                Part::Literal(literal) => String::from_utf8_lossy(literal).into_owned(),
                Part::Kept(pointer) => format!("{{{KEPT}{pointer}}}"),
                Part::KeptMember(pointer) => format!("{{{KEPT_MEMBER}{pointer}}}"),
                Part::Place(place) => name(place).map_or_else(String::new, |(word, _)| format!("{{{word}}}")),
            })
            .collect()
    }

    pub(in crate::domain) fn has(&self, any: &[Place]) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Place(place) if any.contains(place)))
    }

    /// True when it keeps something of the value of before.
    pub(in crate::domain) fn keeps(&self) -> bool {
        self.has(&[Place::KeptFields]) || self.0.iter().any(|part| matches!(part, Part::Kept(_) | Part::KeptMember(_)))
    }

    /// A placeholder that format 1 does not know.
    pub(super) fn newer(&self) -> Option<String> {
        let is_newer = |part: &&Part| match part {
            Part::Place(place) => IN_NEWER_VALUES.iter().any(|(_, newer)| newer == place),
            Part::Kept(_) | Part::KeptMember(_) => true,
            Part::Literal(_) => false,
        };
        self.0.iter().find(is_newer).map(|part| Self(vec![part.clone()]).display())
    }

    /// The placeholder of the time in a word of a call, which format 1 does not have.
    pub(super) fn time(&self) -> Option<&'static str> {
        IN_NEWER_CALLS.iter().find(|(_, place)| self.has(&[*place])).map(|(name, _)| *name)
    }

    /// What looks like a placeholder and is none.
    pub(super) fn leftover(&self) -> Option<String> {
        let literals = self.0.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(String::from_utf8_lossy(text)),
            _ => None,
        });
        literals.into_iter().find_map(|text| {
            let inside =
                text.split('{').skip(1).find_map(|rest| Some(rest.split_once('}')?.0).filter(|inside| is_name(inside)));
            inside.map(|inside| format!("{{{inside}}}"))
        })
    }

    /// The roles of the Redis keys that stand in it.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role> {
        self.0.iter().filter_map(|part| match part {
            Part::Place(Place::RedisKey(role)) => Some(*role),
            _ => None,
        })
    }

    /// True when it is the lock's TTL and nothing else.
    pub(crate) fn is_lock_ttl(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Place(Place::LockTtl)])
    }

    /// The placeholder that is all of it.
    pub(in crate::domain) fn only_place(&self) -> Option<Place> {
        match self.0.as_slice() {
            [Part::Place(place)] => Some(*place),
            _ => None,
        }
    }

    /// True when nothing but one placeholder for a Redis key stands in it.
    pub(crate) fn is_redis_key(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Place(Place::RedisKey(_))])
    }
}

/// True for what stands between the braces of a placeholder, and never so in JSON.
fn is_name(inside: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/?".contains(&byte);
    !inside.is_empty() && !inside.starts_with(|first: char| first.is_ascii_digit()) && inside.bytes().all(is_part)
}

/// The part that is `kept:/pointer}` or `kept?:/pointer}`, and what follows.
fn kept(inside: &str) -> Option<(Part, &str)> {
    let part: fn(String) -> Part = if inside.starts_with(KEPT) { Part::Kept } else { Part::KeptMember };
    let rest = inside.strip_prefix(KEPT).or_else(|| inside.strip_prefix(KEPT_MEMBER))?;
    let (pointer, behind) = rest.split_once('}').filter(|(pointer, _)| pointer.starts_with('/'))?;
    Some((part(pointer.to_owned()), behind))
}

/// A value as a member of an object, by the name that a JSON pointer ends with.
fn member(pointer: &str, value: Vec<u8>) -> Vec<u8> {
    let name = pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
    [b",", Value::from(name).to_string().as_bytes(), b":", &value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_json_are_literal() {
        let template = Template::parse(r#"{"status":{status},"b":{"c":1}}"#, Known(&[IN_RESPONSES])).unwrap();
        assert_eq!(template.fill(|_| b"201".to_vec()), br#"{"status":201,"b":{"c":1}}"#);
        assert_eq!(template.display(), r#"{"status":{status},"b":{"c":1}}"#);
    }

    #[test]
    fn what_is_kept_as_a_member_is_left_out_where_nothing_stands_there() {
        let text = r#"{"s":1{kept?:/a~1b/c},"d":{kept:/d}}"#;
        let template = Template::parse(text, Known(&[IN_NEWER_VALUES])).unwrap();
        assert_eq!(template.display(), text);
        let filled = |kept: &dyn Fn(&str) -> Option<Vec<u8>>| template.fill_keeping(|_| Vec::new(), kept);
        assert_eq!(filled(&|_| None), br#"{"s":1,"d":null}"#);
        let at = |pointer: &str| (pointer == "/a~1b/c").then(|| b"[2]".to_vec());
        assert_eq!(filled(&at), br#"{"s":1,"c":[2],"d":null}"#);
        assert_eq!(filled(&|_| Some(b"null".to_vec())), br#"{"s":1,"c":null,"d":null}"#);
    }

    #[test]
    fn an_unknown_placeholder_is_named() {
        assert!(Template::parse("{ttl}", Known(&[IN_CALLS])).unwrap_err().contains("{ttl}"));
        assert!(Template::parse("{response}", Known(&[IN_RESPONSES])).unwrap_err().contains("{response}"));
    }
}
