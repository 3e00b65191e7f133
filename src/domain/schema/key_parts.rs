//! The text of a key template, taken apart: literal bytes, named groups, and the place of the client's key.

use std::fmt::Write as _;

use bstr::ByteSlice as _;
use regex_lite::Regex;

/// What stands for itself behind a backslash.
const ESCAPED: &str = "{}\\";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPart {
    Literal(Vec<u8>),
    /// What stands in front of the client's key, or behind: a function, a tenant.
    Group(String),
    Key,
}

/// Takes `{prefix}{tenant}:{key}` apart.
///
/// # Errors
/// A placeholder that is none, an escape that is none.
pub(super) fn parse(text: &str, prefix: &str) -> Result<Vec<KeyPart>, String> {
    let mut parts = Parts { parts: Vec::new(), literal: Vec::new() };
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (before, after) = rest.split_at(character.len_utf8());
        rest = match character {
            '\\' => parts.escaped(after)?,
            '{' => parts.brace(after, prefix)?,
            _ => {
                parts.literal.extend_from_slice(before.as_bytes());
                after
            }
        };
    }
    parts.end_literal();
    Ok(parts.parts)
}

/// These parts as a template, without escapes if it reads back as the same parts without any.
pub(super) fn write(parts: &[KeyPart]) -> String {
    let plain = plain(parts);
    if parse(&plain, "").is_ok_and(|read| read == parts) { plain } else { text(parts, escaped) }
}

/// These parts without escapes: text for people alone.
pub(super) fn plain(parts: &[KeyPart]) -> String {
    text(parts, str::to_owned)
}

/// These parts, whose literals are written in this way. A literal comes from a text, so that it is UTF-8.
fn text(parts: &[KeyPart], literal: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            KeyPart::Literal(bytes) => text.push_str(&literal(&String::from_utf8_lossy(bytes))),
            KeyPart::Group(name) => text.push_str(&format!("{{{name}}}")),
            KeyPart::Key => text.push_str("{key}"),
        }
    }
    text
}

fn escaped(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    for character in literal.chars() {
        if ESCAPED.contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

struct Parts {
    parts: Vec<KeyPart>,
    literal: Vec<u8>,
}

impl Parts {
    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts.push(KeyPart::Literal(std::mem::take(&mut self.literal)));
        }
    }

    /// What stands behind a backslash: a brace, or another backslash.
    fn escaped<'a>(&mut self, after: &'a str) -> Result<&'a str, String> {
        let next = after.chars().next().filter(|next| ESCAPED.contains(*next));
        let next = next.ok_or("a backslash stands before `{`, `}` or another backslash")?;
        self.literal.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(&after[next.len_utf8()..])
    }

    /// Reads on after an opening brace: a placeholder, or anything else, for which the brace is literal.
    fn brace<'a>(&mut self, after: &'a str, prefix: &str) -> Result<&'a str, String> {
        let Some((name, rest)) = after.split_once('}').filter(|(name, _)| !name.contains('{'))
        else {
            self.literal.push(b'{');
            return Ok(after);
        };
        if name == "prefix" {
            self.literal.extend_from_slice(prefix.as_bytes());
            return Ok(rest);
        }
        let part = if name == "key" { KeyPart::Key } else { KeyPart::Group(group(name)?) };
        self.end_literal();
        if self.parts.last().is_some_and(|last| !matches!(last, KeyPart::Literal(_))) {
            return Err(format!(
                "`{{{name}}}` needs text in front that parts it from the place before"
            ));
        }
        if self.parts.contains(&part) && part != KeyPart::Key {
            return Err(format!("`{{{name}}}` occurs twice"));
        }
        self.parts.push(part);
        Ok(rest)
    }
}

fn group(name: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_allowed) {
        return Err(format!(
            "`{{{name}}}` is no name of a group: lower-case letters, digits, `_`; a brace that is meant as it stands is written `\\{{`"
        ));
    }
    Ok(name.to_owned())
}

/// What the text between the first place of a template and the last looks like.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    parts: Vec<KeyPart>,
    /// The pattern that the key is of.
    key: Option<String>,
    /// All of the text, where the key is of a pattern.
    regex: Option<Regex>,
}

/// Patterns are compared by their text.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts && self.key == other.key
    }
}

impl Eq for Shape {}

impl Shape {
    /// The shape of these parts, whose key is of a pattern where one is given.
    ///
    /// # Errors
    /// Why the pattern is none.
    pub(super) fn new(parts: &[KeyPart], key: Option<&str>) -> Result<Self, String> {
        let regex = match key {
            Some(key) => Some(
                regex(parts, key)
                    .map_err(|error| format!("the pattern of `key` is none: {error}"))?,
            ),
            None => None,
        };
        Ok(Self { parts: parts.to_vec(), key: key.map(str::to_owned), regex })
    }

    pub(super) fn key_pattern(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// True where the text is of these parts, and its key of the pattern. The parts are looked for first: a scan asks this of every
    /// Redis key, and a pattern takes a hundred times as long.
    pub(super) fn fits(&self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        self.has_parts(text.as_bytes())
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    /// True where each literal is found behind the one before, with something in each place between them. Where a literal
    /// occurs more than once the first one leaves most room for what follows.
    pub(super) fn has_parts(&self, text: &[u8]) -> bool {
        let mut rest = text;
        for part in &self.parts {
            let KeyPart::Literal(literal) = part else { continue };
            // Behind a place, which holds a byte at least.
            let Some(at) = rest.get(1..).and_then(|behind| behind.find(literal)) else {
                return false;
            };
            rest = &rest[1 + at + literal.len()..];
        }
        !rest.is_empty()
    }

    /// The client's key in a text of these parts.
    pub(super) fn key_in<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let mut rest = text;
        for (index, part) in self.parts.iter().enumerate() {
            let length = match (part, self.parts.get(index + 1)) {
                (KeyPart::Literal(literal), _) => literal.len(),
                // A place holds a byte at least.
                (_, Some(KeyPart::Literal(next))) => rest
                    .get(1..)
                    .and_then(|behind| behind.find(next))
                    .map_or(rest.len(), |at| at + 1),
                _ => rest.len(),
            };
            let (here, behind) = rest.split_at(length.min(rest.len()));
            if *part == KeyPart::Key {
                return here;
            }
            rest = behind;
        }
        text
    }

    pub(super) fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// The parts as they are written, where there is more than the key.
    pub(super) fn groups(&self) -> Option<String> {
        (self.parts.len() > 1).then(|| write(&self.parts))
    }

    pub(super) fn literal_bytes(&self) -> usize {
        let length =
            |part: &KeyPart| if let KeyPart::Literal(bytes) = part { bytes.len() } else { 0 };
        self.parts.iter().map(length).sum()
    }
}

/// The pattern of a text of these parts, whose key is of this pattern. Text that is not UTF-8 is of no shape.
fn regex(parts: &[KeyPart], key: &str) -> Result<Regex, regex_lite::Error> {
    // Alone first: what closes a bracket that it did not open must not close one of these.
    Regex::new(key)?;
    let mut pattern = "(?s)^".to_owned();
    for part in parts {
        let _ = match part {
            KeyPart::Literal(bytes) => {
                write!(pattern, "{}", regex_lite::escape(&String::from_utf8_lossy(bytes)))
            }
            KeyPart::Group(_) => write!(pattern, "(?:.+?)"),
            KeyPart::Key => write!(pattern, "(?:{key})"),
        };
    }
    Regex::new(&format!("{pattern}$"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes between places: braces, backslashes, and what would be a place without an escape.
    fn literal() -> impl Strategy<Value = KeyPart> {
        r"([{}\\:aé*]|\{key\}|\{prefix\}|\{tenant\}){1,4}"
            .prop_map(|text: String| KeyPart::Literal(text.into_bytes()))
    }

    proptest! {
        /// Rule: a text is of the parts that a pattern finds in the text.
        #[test]
        fn parts_are_found_as_a_pattern_finds_them(text in "[ab:#é]{0,12}", literals in prop::collection::vec("[ab:#é]{1,3}", 0..4)) {
            let mut parts = vec![KeyPart::Group("tenant".to_owned())];
            for literal in literals {
                parts.extend([KeyPart::Literal(literal.into_bytes()), KeyPart::Key]);
            }
            let shape = Shape::new(&parts, None).unwrap();
            prop_assert_eq!(shape.fits(text.as_bytes()), regex(&parts, ".+").unwrap().is_match(&text));
        }

        /// Rule: what is written is read back as the same, whatever stands for itself.
        #[test]
        fn what_is_written_is_read_back(
            before in literal(), between in literal(), after in literal(), has_group in any::<bool>(), has_key in any::<bool>()
        ) {
            let group = || [KeyPart::Group("tenant".to_owned()), between.clone()];
            let parts: Vec<_> = match (has_group, has_key) {
                (true, true) => [before].into_iter().chain(group()).chain([KeyPart::Key, after]).collect(),
                (true, false) => [before].into_iter().chain(group()).collect(),
                (false, true) => vec![KeyPart::Key, after],
                (false, false) => vec![before],
            };
            prop_assert_eq!(parse(&write(&parts), "").unwrap(), parts);
        }
    }
}
