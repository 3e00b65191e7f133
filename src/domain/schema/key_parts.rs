//! The parts of a key template: literal bytes, named groups, and the client's key.

use bstr::ByteSlice as _;
use regex_lite::Regex;

/// The characters that are literal after a backslash.
const ESCAPED: &str = "{}\\";

/// One part of a key template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPart {
    Literal(Vec<u8>),
    /// A named part before or after the client's key, such as a function or a tenant.
    Group(String),
    Key,
}

/// Parses a template such as `{prefix}{tenant}:{key}` into its parts.
///
/// # Errors
/// A placeholder or an escape that is not valid, or two placeholders without text between them.
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

/// Writes these parts as a template. It uses escapes only if the template would otherwise parse to
/// other parts.
pub(super) fn write(parts: &[KeyPart]) -> String {
    let plain = plain(parts);
    match parse(&plain, "") {
        Ok(parsed) if parsed == parts => plain,
        _ => text(parts, escaped),
    }
}

/// Writes these parts without escapes, as text for people only.
pub(super) fn plain(parts: &[KeyPart]) -> String {
    text(parts, str::to_owned)
}

/// Writes these parts, and each literal with this function. A literal was parsed from text, so that
/// it is UTF-8.
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

    /// Reads the character after a backslash, and returns the text that follows.
    fn escaped<'a>(&mut self, after: &'a str) -> Result<&'a str, String> {
        match after.chars().next() {
            Some(next) if ESCAPED.contains(next) => {
                self.literal.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
                Ok(&after[next.len_utf8()..])
            }
            _ => Err("a backslash must be followed by `{`, `}` or another backslash".to_owned()),
        }
    }

    /// Reads a placeholder after an opening brace, and returns the text that follows. If no
    /// placeholder follows, the brace is literal.
    fn brace<'a>(&mut self, after: &'a str, prefix: &str) -> Result<&'a str, String> {
        // A second opening brace before the closing one makes the first literal, as in a hash tag
        // `{{key}}`.
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
        // Without text between them, idemctl could not tell where one placeholder ends.
        if self.parts.last().is_some_and(|last| !matches!(last, KeyPart::Literal(_))) {
            return Err(format!(
                "`{{{name}}}` needs text between it and the placeholder before it"
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
    let is_name =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if name.is_empty() || !is_name {
        return Err(format!(
            "`{{{name}}}` is not a name of a group (lower-case letters, digits and `_`); write a \
            literal brace as `\\{{`"
        ));
    }
    Ok(name.to_owned())
}

/// The pattern of the text between the first placeholder of a template and the last.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    parts: Vec<KeyPart>,
    /// The regular expression that the key must match.
    key: Option<String>,
    /// The regular expression for the whole text, if the key has one.
    regex: Option<Regex>,
}

/// Compares regular expressions by their text, because `Regex` has no equality.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts && self.key == other.key
    }
}

impl Eq for Shape {}

impl Shape {
    /// Creates the shape of these parts. `key` is the regular expression that the key must match,
    /// if there is one.
    ///
    /// # Errors
    /// The regular expression is not valid.
    pub(super) fn new(parts: &[KeyPart], key: Option<&str>) -> Result<Self, String> {
        let mut shape = Self { parts: parts.to_vec(), key: key.map(str::to_owned), regex: None };
        if let Some(key) = key {
            match regex(parts, key) {
                Ok(regex) => shape.regex = Some(regex),
                Err(error) => {
                    return Err(format!("the pattern of `key` is not a valid regex: {error}"));
                }
            }
        }
        Ok(shape)
    }

    pub(super) fn key_pattern(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// True if the text consists of these parts, and its key matches the regular expression. The
    /// parts are checked first: a scan asks this for every Redis key, and a regular expression
    /// takes a hundred times as long.
    pub(super) fn fits(&self, text: &[u8]) -> bool {
        // `regex_lite` matches only UTF-8.
        let Ok(text) = std::str::from_utf8(text) else { return false };
        if !self.has_parts(text.as_bytes()) {
            return false;
        }
        match &self.regex {
            Some(regex) => regex.is_match(text),
            None => true,
        }
    }

    /// True if the literals occur in this order, with at least one byte for each placeholder. If a
    /// literal occurs more than once, the first occurrence is used, because it leaves most text for
    /// the later parts.
    pub(super) fn has_parts(&self, text: &[u8]) -> bool {
        let mut rest = text;
        for part in &self.parts {
            let KeyPart::Literal(literal) = part else { continue };
            // The placeholder before the literal has at least one byte.
            let Some(behind) = rest.get(1..) else { return false };
            let Some(at) = behind.find(literal) else { return false };
            rest = &behind[at + literal.len()..];
        }
        !rest.is_empty()
    }

    /// The client's key in a text that consists of these parts.
    pub(super) fn key_in<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let mut rest = text;
        for (index, part) in self.parts.iter().enumerate() {
            let length = match (part, self.parts.get(index + 1)) {
                (KeyPart::Literal(literal), _) => literal.len().min(rest.len()),
                (_, Some(KeyPart::Literal(next))) => length_before(rest, next),
                _ => rest.len(),
            };
            let (here, behind) = rest.split_at(length);
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

    /// The parts as a template; `None` if the key is the only part.
    pub(super) fn groups(&self) -> Option<String> {
        if self.parts.len() > 1 { Some(write(&self.parts)) } else { None }
    }

    /// How many literal bytes the shape has.
    pub(super) fn literal_bytes(&self) -> usize {
        let mut bytes = 0;
        for part in &self.parts {
            if let KeyPart::Literal(literal) = part {
                bytes += literal.len();
            }
        }
        bytes
    }
}

/// The length of a placeholder's text, which ends before the next literal. Without that literal,
/// the placeholder has the whole text.
fn length_before(text: &[u8], literal: &[u8]) -> usize {
    // A placeholder has at least one byte.
    let Some(behind) = text.get(1..) else { return text.len() };
    match behind.find(literal) {
        Some(at) => at + 1,
        None => text.len(),
    }
}

/// The regular expression of a text of these parts, whose key matches `key`. Text that is not UTF-8
/// has no shape.
fn regex(parts: &[KeyPart], key: &str) -> Result<Regex, regex_lite::Error> {
    // The key's expression is checked alone first: a bracket that it closes without opening must
    // not close one of ours.
    Regex::new(key)?;
    // `(?s)`, because a key may contain line breaks.
    let mut pattern = "(?s)^".to_owned();
    for part in parts {
        match part {
            KeyPart::Literal(bytes) => {
                pattern.push_str(&regex_lite::escape(&String::from_utf8_lossy(bytes)));
            }
            KeyPart::Group(_) => pattern.push_str("(?:.+?)"),
            // In a group, so that `|` in the key's expression does not divide the whole pattern.
            KeyPart::Key => pattern.push_str(&format!("(?:{key})")),
        }
    }
    pattern.push('$');
    Regex::new(&pattern)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Literals that are hard to escape: braces, backslashes, and texts that are placeholders
    /// without an escape.
    fn literal() -> impl Strategy<Value = KeyPart> {
        r"([{}\\:aé*]|\{key\}|\{prefix\}|\{tenant\}){1,4}"
            .prop_map(|text: String| KeyPart::Literal(text.into_bytes()))
    }

    proptest! {
        /// Rule: a text consists of these parts exactly if the regular expression of the parts
        /// matches it.
        #[test]
        fn the_parts_match_if_the_regular_expression_matches(text in "[ab:#é]{0,12}", literals in prop::collection::vec("[ab:#é]{1,3}", 0..4)) {
            let mut parts = vec![KeyPart::Group("tenant".to_owned())];
            for literal in literals {
                parts.extend([KeyPart::Literal(literal.into_bytes()), KeyPart::Key]);
            }
            let shape = Shape::new(&parts, None).unwrap();
            prop_assert_eq!(shape.fits(text.as_bytes()), regex(&parts, ".+").unwrap().is_match(&text));
        }

        /// Rule: a written template parses to the same parts, whatever characters the literals
        /// contain.
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
