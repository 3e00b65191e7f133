//! The text of a key template, taken apart: literal bytes, named groups, and the place of the client's key.

use std::fmt::Write as _;

use regex_lite::Regex;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(Vec<u8>),
    /// What stands in front of the client's key, or behind: a function, a tenant.
    Group(String),
    Key,
}

/// Takes `{prefix}{tenant}:{key}` apart.
///
/// # Errors
/// A placeholder that is none, an escape that is none.
pub(super) fn parse(text: &str, prefix: &str, format: u32) -> Result<Vec<Part>, String> {
    let mut parts = Parts { parts: Vec::new(), literal: Vec::new() };
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (before, after) = rest.split_at(character.len_utf8());
        rest = match character {
            '\\' if format > 1 => parts.escaped(after)?,
            '{' => parts.brace(after, prefix, format)?,
            _ => {
                parts.literal.extend_from_slice(before.as_bytes());
                after
            }
        };
    }
    parts.end_literal();
    Ok(parts.parts)
}

struct Parts {
    parts: Vec<Part>,
    literal: Vec<u8>,
}

impl Parts {
    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts.push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    /// What stands behind a backslash: a brace, or another backslash.
    fn escaped<'a>(&mut self, after: &'a str) -> Result<&'a str, String> {
        let is_escape = |next: &char| "{}\\".contains(*next);
        let next = after.chars().next().filter(is_escape);
        let next = next.ok_or("a backslash stands before `{`, `}` or another backslash")?;
        self.literal.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(&after[next.len_utf8()..])
    }

    /// What stands behind an opening brace: a place, or anything else, for which the brace is literal.
    fn brace<'a>(&mut self, after: &'a str, prefix: &str, format: u32) -> Result<&'a str, String> {
        let Some((name, rest)) = after.split_once('}').filter(|(name, _)| !name.contains('{')) else {
            self.literal.push(b'{');
            return Ok(after);
        };
        if name == "prefix" {
            self.literal.extend_from_slice(prefix.as_bytes());
            return Ok(rest);
        }
        let part = if name == "key" { Part::Key } else { Part::Group(group(name, format)?) };
        self.end_literal();
        if self.parts.last().is_some_and(|last| !matches!(last, Part::Literal(_))) {
            return Err(format!("`{{{name}}}` needs text in front that parts it from the place before"));
        }
        if self.parts.contains(&part) && part != Part::Key {
            return Err(format!("`{{{name}}}` occurs twice"));
        }
        self.parts.push(part);
        Ok(rest)
    }
}

fn group(name: &str, format: u32) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match format {
        1 => Err(format!("`{{{name}}}` is a placeholder other than {{key}} and {{prefix}}")),
        _ if name.is_empty() || !name.bytes().all(is_name) => Err(format!(
            "`{{{name}}}` is no name of a group: lower-case letters, digits, `_`; a brace that is meant as it stands is written `\\{{`"
        )),
        _ => Ok(name.to_owned()),
    }
}

/// What the text between the first place of a template and the last looks like.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    parts: Vec<Part>,
    regex: Regex,
}

/// The pattern tells the parts and what the key is of.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts && self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Shape {}

impl Shape {
    /// The shape of these parts, whose key is of a pattern where one is given.
    ///
    /// # Errors
    /// Why the pattern is none.
    pub(super) fn of(parts: &[Part], key: Option<&str>) -> Result<Self, String> {
        // Alone first: what closes a bracket that it did not open must not close one of these.
        let wrong = |error: regex_lite::Error| format!("the pattern of `key` is none: {error}");
        key.map(Regex::new).transpose().map_err(wrong)?;
        let mut pattern = "(?s)^".to_owned();
        for part in parts {
            // Text that is not UTF-8 is of no shape.
            let _ = match part {
                Part::Literal(bytes) => write!(pattern, "{}", regex_lite::escape(&String::from_utf8_lossy(bytes))),
                Part::Group(_) => write!(pattern, "(?:.+?)"),
                Part::Key => write!(pattern, "(?:{})", key.unwrap_or(".+")),
            };
        }
        let regex = Regex::new(&format!("{pattern}$")).map_err(wrong)?;
        Ok(Self { parts: parts.to_vec(), regex })
    }

    pub(super) fn fits(&self, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(|text| self.regex.is_match(text))
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts as they are written, where there is more than the key.
    pub(super) fn groups(&self) -> Option<String> {
        (self.parts.len() > 1).then(|| self.display())
    }

    pub(super) fn literal_bytes(&self) -> usize {
        let length = |part: &Part| if let Part::Literal(bytes) = part { bytes.len() } else { 0 };
        self.parts.iter().map(length).sum()
    }

    pub(super) fn display(&self) -> String {
        let word = |part: &Part| match part {
            Part::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Part::Group(name) => format!("{{{name}}}"),
            Part::Key => "{key}".to_owned(),
        };
        self.parts.iter().map(word).collect()
    }
}
