//! Templates of the texts that a service sends and stores. Placeholders represent the parts that
//! differ per request.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::closed_fields::unescaped;
use super::redis_keys::Role;
use super::ttl::TtlOf;
use super::value_format::Timestamp;

/// A placeholder of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::domain) enum Placeholder {
    Key,
    /// The key without the groups of its key template.
    ClientKey,
    Prefix,
    RedisKey(Role),
    Owner,
    LockTtl,
    ResultTtl,
    LockTtlMilliseconds,
    ResultTtlMilliseconds,
    LockValue,
    ResultValue,
    Status,
    HeaderLists,
    Headers,
    Body,
    BodyBase64,
    BodyJson,
    BodyText,
    ErrorText,
    Response,
    Outcome,
    Fingerprint,
    Now,
    NowMilliseconds,
    NowSeconds,
    NowRfc3339,
    NowIsoformat,
    NowTicks,
    /// When the lock or the result that is being written expires.
    Expires(TtlOf, Timestamp),
    ExpiresIsoformat(TtlOf),
    BodyHex,
    /// The response's content type as a JSON string, or null.
    ContentType,
    /// Every field of the previous value that the schema does not name.
    KeptFields,
}

/// The placeholders that a word of a call may have, besides those of a response.
const IN_CALLS: &[(&str, Placeholder)] = &[
    ("key", Placeholder::Key),
    ("prefix", Placeholder::Prefix),
    ("record", Placeholder::RedisKey(Role::Record)),
    ("lock", Placeholder::RedisKey(Role::Lock)),
    ("result", Placeholder::RedisKey(Role::Result)),
    ("owner", Placeholder::Owner),
    ("lock_ttl", Placeholder::LockTtl),
    ("result_ttl", Placeholder::ResultTtl),
    ("lock_value", Placeholder::LockValue),
    ("result_value", Placeholder::ResultValue),
    ("response", Placeholder::Response),
    ("outcome", Placeholder::Outcome),
    ("fingerprint", Placeholder::Fingerprint),
    ("now_s", Placeholder::NowSeconds),
    ("now_ms", Placeholder::NowMilliseconds),
    ("lock_ttl_ms", Placeholder::LockTtlMilliseconds),
    ("result_ttl_ms", Placeholder::ResultTtlMilliseconds),
];

/// The placeholders that a response may have, and so may a value with a response in it.
const IN_RESPONSES: &[(&str, Placeholder)] = &[
    ("status", Placeholder::Status),
    ("header_lists", Placeholder::HeaderLists),
    ("headers", Placeholder::Headers),
    ("body", Placeholder::Body),
    ("body_base64", Placeholder::BodyBase64),
    ("body_json", Placeholder::BodyJson),
    ("body_text", Placeholder::BodyText),
    ("error_text", Placeholder::ErrorText),
];

/// The other placeholders that a value may have, besides `{kept:/pointer}`.
const IN_VALUES: &[(&str, Placeholder)] = &[
    ("owner", Placeholder::Owner),
    ("response", Placeholder::Response),
    ("fingerprint", Placeholder::Fingerprint),
    ("now", Placeholder::Now),
    ("key", Placeholder::Key),
    ("client_key", Placeholder::ClientKey),
    ("now_s", Placeholder::NowSeconds),
    ("now_ms", Placeholder::NowMilliseconds),
    ("now_rfc3339", Placeholder::NowRfc3339),
    ("now_isoformat", Placeholder::NowIsoformat),
    ("now_ticks", Placeholder::NowTicks),
    ("lock_expires_s", Placeholder::Expires(TtlOf::Lock, Timestamp::Seconds)),
    ("lock_expires_ms", Placeholder::Expires(TtlOf::Lock, Timestamp::Milliseconds)),
    ("lock_expires_rfc3339", Placeholder::Expires(TtlOf::Lock, Timestamp::Rfc3339)),
    ("lock_expires_isoformat", Placeholder::ExpiresIsoformat(TtlOf::Lock)),
    ("lock_expires_ticks", Placeholder::Expires(TtlOf::Lock, Timestamp::Ticks)),
    ("result_expires_s", Placeholder::Expires(TtlOf::Result, Timestamp::Seconds)),
    ("result_expires_ms", Placeholder::Expires(TtlOf::Result, Timestamp::Milliseconds)),
    ("result_expires_rfc3339", Placeholder::Expires(TtlOf::Result, Timestamp::Rfc3339)),
    ("result_expires_isoformat", Placeholder::ExpiresIsoformat(TtlOf::Result)),
    ("result_expires_ticks", Placeholder::Expires(TtlOf::Result, Timestamp::Ticks)),
    ("body_hex", Placeholder::BodyHex),
    ("content_type", Placeholder::ContentType),
    ("kept", Placeholder::KeptFields),
];

/// A text with placeholders such as `{lock_ttl}`. Braces around anything else are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(Vec<u8>),
    Placeholder(Placeholder),
    /// The part of the previous value at this JSON pointer; `null` if it has none.
    Kept(String),
    /// The same as a further member of an object, after a comma. Empty if the previous value has
    /// nothing at the pointer.
    KeptMember(String),
}

impl TemplatePart {
    fn literal(text: &str) -> Option<Self> {
        if text.is_empty() { None } else { Some(Self::Literal(text.as_bytes().to_vec())) }
    }

    fn is(&self, is_asked: impl Fn(Placeholder) -> bool) -> bool {
        matches!(self, Self::Placeholder(place) if is_asked(*place))
    }
}

/// Marks a placeholder in [`Template::marked`]. No text contains it, because Unicode gives it no
/// meaning.
const MARK: char = '\u{E000}';

/// The beginning of a placeholder that keeps the part of the previous value at a JSON pointer.
const KEPT: &str = "kept:";

/// The beginning of one that keeps the part as a member, if the previous value has it.
const KEPT_MEMBER: &str = "kept?:";

/// The placeholders that a template may have. Also the deserializer of such templates.
#[derive(Clone, Copy)]
struct AllowedPlaceholders(&'static [&'static [(&'static str, Placeholder)]]);

// A visitor, so that an error has the place of the text.
impl Visitor<'_> for AllowedPlaceholders {
    type Value = Template;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Template, E> {
        Template::parse(text, self).map_err(E::custom)
    }
}

/// A word of a call: an element of its KEYS, of its ARGV, or of a plain command.
impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AllowedPlaceholders(&[IN_CALLS, IN_RESPONSES]))
    }
}

/// Deserializes the template of a value that not every service stores.
pub(super) fn optional_value<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Template>, D::Error> {
    deserializer.deserialize_str(AllowedPlaceholders(&[IN_RESPONSES, IN_VALUES])).map(Some)
}

/// Deserializes the template of a response that is part of a value.
pub(super) fn response<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Template>, D::Error> {
    deserializer.deserialize_str(AllowedPlaceholders(&[IN_RESPONSES])).map(Some)
}

impl Template {
    /// A word without placeholders.
    pub(in crate::domain) fn from_word(word: &str) -> Self {
        Self(Vec::from_iter(TemplatePart::literal(word)))
    }

    /// A word that is only a placeholder.
    pub(in crate::domain) fn from_placeholder(placeholder: Placeholder) -> Self {
        Self(vec![TemplatePart::Placeholder(placeholder)])
    }

    fn parse(text: &str, allowed: AllowedPlaceholders) -> Result<Self, String> {
        let mut parts = Vec::new();
        // The text after the last placeholder, and the position in it at which to search for the
        // next one.
        let mut rest = text;
        let mut from = 0;
        while let Some(at) = rest[from..].find('{') {
            let open = from + at;
            let inside = &rest[open + 1..];
            let Some((part, after)) = placeholder(inside, allowed)? else {
                // This brace is literal: search for the next one.
                from = open + 1;
                continue;
            };
            parts.extend(TemplatePart::literal(&rest[..open]));
            parts.push(part);
            rest = after;
            from = 0;
        }
        parts.extend(TemplatePart::literal(rest));
        Ok(Self(parts))
    }

    /// Fills in the placeholders of a template that keeps nothing of a previous value.
    pub(in crate::domain) fn fill(&self, value: impl Fn(Placeholder) -> Vec<u8>) -> Vec<u8> {
        self.fill_keeping(value, |_| None)
    }

    /// Fills in the placeholders. `kept` returns the part of the previous value at a JSON pointer,
    /// as JSON.
    pub(in crate::domain) fn fill_keeping(
        &self,
        value: impl Fn(Placeholder) -> Vec<u8>,
        kept: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            match part {
                TemplatePart::Literal(literal) => bytes.extend_from_slice(literal),
                TemplatePart::Placeholder(placeholder) => {
                    bytes.extend_from_slice(&value(*placeholder))
                }
                TemplatePart::Kept(pointer) => match kept(pointer) {
                    Some(value) => bytes.extend(value),
                    None => bytes.extend_from_slice(b"null"),
                },
                TemplatePart::KeptMember(pointer) => {
                    if let Some(value) = kept(pointer) {
                        bytes.extend(member(pointer, value));
                    }
                }
            }
        }
        bytes
    }

    /// The template as `schema.toml` writes it.
    pub(crate) fn display(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Literal(literal) => text.push_str(&String::from_utf8_lossy(literal)),
                TemplatePart::Kept(pointer) => text.push_str(&format!("{{{KEPT}{pointer}}}")),
                TemplatePart::KeptMember(pointer) => {
                    text.push_str(&format!("{{{KEPT_MEMBER}{pointer}}}"))
                }
                TemplatePart::Placeholder(placeholder) => {
                    text.push_str(&format!("{{{}}}", word(*placeholder)))
                }
            }
        }
        text
    }

    /// The text without placeholders; `None` if it has any.
    pub(super) fn constant(&self) -> Option<String> {
        let mut text = Vec::new();
        for part in &self.0 {
            let TemplatePart::Literal(literal) = part else { return None };
            text.extend_from_slice(literal);
        }
        String::from_utf8(text).ok()
    }

    /// The template as JSON in which each placeholder is a text, or part of one: its name between
    /// two [`MARK`]s. `response` replaces the placeholder of that name.
    ///
    /// # Errors
    /// Why it cannot be written so.
    pub(super) fn marked(&self, response: Option<&Self>) -> Result<String, String> {
        if self.has(&[Placeholder::KeptFields]) {
            return Err("`{kept}` stands for any fields".to_owned());
        }
        let mark = |name: &str| format!("{MARK}{name}{MARK}").into_bytes();
        let of = |placeholder: Placeholder| match (placeholder, response) {
            (Placeholder::Response, Some(response)) => {
                response.fill(|placeholder| mark(word(placeholder)))
            }
            _ => mark(word(placeholder)),
        };
        let bytes = self.fill_keeping(of, |pointer| Some(mark(&format!("{KEPT}{pointer}"))));
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let mut json = String::with_capacity(text.len());
        let (mut is_inside, mut is_escaped, mut is_mark) = (false, false, false);
        for character in text.chars() {
            if character == MARK {
                // A placeholder outside of a text becomes a text.
                if !is_inside && !is_mark {
                    json.push('"');
                }
                json.push(MARK);
                if !is_inside && is_mark {
                    json.push('"');
                }
                is_mark = !is_mark;
                continue;
            }
            json.push(character);
            if !is_mark && character == '"' && !is_escaped {
                is_inside = !is_inside;
            }
            is_escaped = character == '\\' && !is_escaped;
        }
        Ok(json)
    }

    /// The name of the placeholder that a text of [`Self::marked`] consists of.
    pub(super) fn marked_word(text: &str) -> Option<&str> {
        let word = text.strip_prefix(MARK)?.strip_suffix(MARK)?;
        if word.contains(MARK) { None } else { Some(word) }
    }

    /// True if a text of [`Self::marked`] contains a placeholder.
    pub(super) fn is_marked(text: &str) -> bool {
        text.contains(MARK)
    }

    /// The pointers that `{kept?:/pointer}` keeps if the previous value has them.
    pub(super) fn kept_members(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::KeptMember(pointer) => Some(pointer.as_str()),
            _ => None,
        })
    }

    /// True if it contains one of these placeholders.
    pub(in crate::domain) fn has(&self, any: &[Placeholder]) -> bool {
        self.contains(|place| any.contains(&place))
    }

    fn contains(&self, is_asked: impl Fn(Placeholder) -> bool) -> bool {
        self.0.iter().any(|part| part.is(&is_asked))
    }

    /// True if it keeps part of the previous value.
    pub(in crate::domain) fn keeps(&self) -> bool {
        self.0.iter().any(|part| match part {
            TemplatePart::Kept(_) | TemplatePart::KeptMember(_) => true,
            TemplatePart::Placeholder(place) => *place == Placeholder::KeptFields,
            TemplatePart::Literal(_) => false,
        })
    }

    /// True if it writes the status as a number, not as a text.
    pub(in crate::domain) fn writes_status_as_number(&self) -> bool {
        self.quotes(|place| place == Placeholder::Status) == Some(false)
    }

    /// True if it writes an expiry as a number, not as a text.
    pub(in crate::domain) fn writes_expiry_as_number(&self) -> bool {
        self.quotes(|place| matches!(place, Placeholder::Expires(..))) == Some(false)
    }

    /// True if it writes the fingerprint as a text.
    pub(in crate::domain) fn writes_fingerprint_as_text(&self) -> bool {
        self.quotes(|place| place == Placeholder::Fingerprint) == Some(true)
    }

    /// Whether the first such placeholder follows a quote; `None` if there is none.
    fn quotes(&self, is_asked: impl Fn(Placeholder) -> bool) -> Option<bool> {
        let index = self.0.iter().position(|part| part.is(&is_asked))?;
        let before = index.checked_sub(1).and_then(|index| self.0.get(index));
        Some(matches!(before, Some(TemplatePart::Literal(text)) if text.ends_with(b"\"")))
    }

    /// True if it writes each header as a list of texts; `None` if it writes no headers.
    pub(in crate::domain) fn writes_header_lists(&self) -> Option<bool> {
        if self.has(&[Placeholder::HeaderLists]) {
            return Some(true);
        }
        if self.has(&[Placeholder::Headers]) { Some(false) } else { None }
    }

    /// True if it contains the time, or a time that is computed from it.
    pub(super) fn has_time(&self) -> bool {
        self.contains(|place| {
            matches!(
                place,
                Placeholder::Now
                    | Placeholder::NowMilliseconds
                    | Placeholder::NowSeconds
                    | Placeholder::NowRfc3339
                    | Placeholder::NowIsoformat
                    | Placeholder::NowTicks
                    | Placeholder::Expires(..)
                    | Placeholder::ExpiresIsoformat(_)
            )
        })
    }

    /// True if it contains the time at which a lock or a result expires.
    pub(super) fn has_expiry(&self, of: TtlOf) -> bool {
        self.contains(|place| match place {
            Placeholder::Expires(own, _) | Placeholder::ExpiresIsoformat(own) => own == of,
            _ => false,
        })
    }

    /// A literal that looks like a placeholder, such as `{own-er}`.
    pub(super) fn leftover(&self) -> Option<String> {
        for part in &self.0 {
            let TemplatePart::Literal(text) = part else { continue };
            for after_brace in String::from_utf8_lossy(text).split('{').skip(1) {
                if let Some((inside, _)) = after_brace.split_once('}')
                    && is_name(inside)
                {
                    return Some(format!("{{{inside}}}"));
                }
            }
        }
        None
    }

    /// The roles of the Redis keys that it contains.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Placeholder(Placeholder::RedisKey(key_index)) => Some(*key_index),
            _ => None,
        })
    }

    /// True if it is only the lock TTL.
    pub(crate) fn is_lock_ttl(&self) -> bool {
        matches!(self.only_place(), Some(Placeholder::LockTtl | Placeholder::LockTtlMilliseconds))
    }

    /// The placeholder, if the template consists of nothing else.
    pub(in crate::domain) fn only_place(&self) -> Option<Placeholder> {
        match self.0.as_slice() {
            [TemplatePart::Placeholder(place)] => Some(*place),
            _ => None,
        }
    }

    /// True if it is only a placeholder for a Redis key.
    pub(crate) fn is_redis_key(&self) -> bool {
        matches!(self.0.as_slice(), [TemplatePart::Placeholder(Placeholder::RedisKey(_))])
    }
}

/// True for a text that can be the name of a placeholder. JSON never has such a text in braces.
fn is_name(inside: &str) -> bool {
    !inside.is_empty()
        && !inside.starts_with(|first: char| first.is_ascii_digit())
        && inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/?".contains(&byte))
}

/// The placeholder after an opening brace, and the text after its closing brace; `None` if the
/// brace is literal.
///
/// # Errors
/// A word in braces that is not an allowed placeholder.
fn placeholder(
    inside: &str,
    allowed: AllowedPlaceholders,
) -> Result<Option<(TemplatePart, &str)>, String> {
    if allowed.0.contains(&IN_VALUES)
        && let Some(kept) = kept(inside)
    {
        return Ok(Some(kept));
    }
    let end = inside
        .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
        .unwrap_or(inside.len());
    let (name, after) = inside.split_at(end);
    // Braces around anything but a word are literal, because values may be JSON.
    let Some(after) = after.strip_prefix('}') else { return Ok(None) };
    if name.is_empty() {
        return Ok(None);
    }
    for (word, placeholder) in allowed.0.iter().copied().flatten() {
        if *word == name {
            return Ok(Some((TemplatePart::Placeholder(*placeholder), after)));
        }
    }
    let mut words = Vec::new();
    for (word, _) in allowed.0.iter().copied().flatten() {
        words.push(format!("{{{word}}}"));
    }
    Err(format!("`{{{name}}}` is not a placeholder here; write one of {}", words.join(" ")))
}

/// Parses `kept:/pointer}` or `kept?:/pointer}`, and returns the part and the text after it.
fn kept(inside: &str) -> Option<(TemplatePart, &str)> {
    let (is_member, rest) = match inside.strip_prefix(KEPT) {
        Some(rest) => (false, rest),
        None => (true, inside.strip_prefix(KEPT_MEMBER)?),
    };
    let (pointer, after) = rest.split_once('}')?;
    if !pointer.starts_with('/') {
        return None;
    }
    let pointer = pointer.to_owned();
    let part =
        if is_member { TemplatePart::KeptMember(pointer) } else { TemplatePart::Kept(pointer) };
    Some((part, after))
}

/// The word of a placeholder in `schema.toml`.
fn word(placeholder: Placeholder) -> &'static str {
    let all = [IN_CALLS, IN_RESPONSES, IN_VALUES];
    for (word, known) in all.into_iter().flatten() {
        if *known == placeholder {
            return word;
        }
    }
    // Every placeholder is in one of these lists.
    ""
}

/// A value as a further member of an object. Its name is the last step of the JSON pointer.
fn member(pointer: &str, value: Vec<u8>) -> Vec<u8> {
    let name = unescaped(pointer.rsplit('/').next().unwrap_or_default());
    [b",", Value::from(&*name).to_string().as_bytes(), b":", &value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_json_are_literal() {
        let template = Template::parse(
            r#"{"status":{status},"b":{"c":1}}"#,
            AllowedPlaceholders(&[IN_RESPONSES]),
        )
        .unwrap();
        assert_eq!(template.fill(|_| b"201".to_vec()), br#"{"status":201,"b":{"c":1}}"#);
        assert_eq!(template.display(), r#"{"status":{status},"b":{"c":1}}"#);
    }

    #[test]
    fn a_kept_member_is_omitted_if_the_previous_value_has_none() {
        let text = r#"{"s":1{kept?:/a~1b/c},"d":{kept:/d}}"#;
        let template = Template::parse(text, AllowedPlaceholders(&[IN_VALUES])).unwrap();
        assert_eq!(template.display(), text);
        let filled =
            |kept: &dyn Fn(&str) -> Option<Vec<u8>>| template.fill_keeping(|_| Vec::new(), kept);
        assert_eq!(filled(&|_| None), br#"{"s":1,"d":null}"#);
        let at = |pointer: &str| (pointer == "/a~1b/c").then(|| b"[2]".to_vec());
        assert_eq!(filled(&at), br#"{"s":1,"c":[2],"d":null}"#);
        assert_eq!(filled(&|_| Some(b"null".to_vec())), br#"{"s":1,"c":null,"d":null}"#);
    }

    #[test]
    fn an_unknown_placeholder_is_named() {
        assert!(
            Template::parse("{ttl}", AllowedPlaceholders(&[IN_CALLS]))
                .unwrap_err()
                .contains("{ttl}")
        );
        assert!(
            Template::parse("{response}", AllowedPlaceholders(&[IN_RESPONSES]))
                .unwrap_err()
                .contains("{response}")
        );
    }
}
