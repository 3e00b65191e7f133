//! JSON as it lies in a value: looked at in place, so that telling a record's state copies next to nothing.
//!
//! [`plain`] reads what services write nearly always: an object of sound UTF-8. It gives up on anything odd, which
//! [`super::json_head`] then reads with all care; where both read something they read the same.

use std::borrow::Cow;

use serde_json::Value;

/// Containers deeper than this are left to the careful way, which knows the limit.
const DEEPEST: usize = 32;

/// Members of an object beyond this are left to the careful way, which finds repeated names faster.
const MOST_MEMBERS: usize = 64;

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
}

impl<'a> Json<'a> {
    /// What stands at a JSON pointer; the empty one is the value itself.
    pub fn pointer(&self, path: &str) -> Option<&Self> {
        let mut value = self;
        let mut rest = path;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/')?;
            let (step, after) = rest.split_at(rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len()));
            value = value.step(step)?;
            rest = after;
        }
        Some(value)
    }

    fn step(&self, step: &str) -> Option<&Self> {
        let name = if step.as_bytes().contains(&b'~') {
            Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(step)
        };
        match self {
            Self::Object(members) => members.iter().find(|(known, _)| *known == name).map(|(_, value)| value),
            Self::Array(items) if name == "0" || !name.starts_with(['0', '+']) => {
                items.get(name.parse::<usize>().ok()?)
            }
            _ => None,
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
            Self::Number(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::String(text) => Value::from(text.as_ref()),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.as_ref().to_owned(), value.to_value())).collect(),
            ),
        }
    }
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

/// Reads an object, or with `whole` false the beginning of one: what is open at the end is closed, a string is cut
/// there, and an incomplete member is dropped. `None` for anything odd.
pub fn plain(bytes: &[u8], whole: bool) -> Option<Json<'_>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if !whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let mut reader = Plain { text, bytes: text.as_bytes(), at: 0, cut: false };
    if reader.after_space() != Some(b'{') {
        return None;
    }
    let document = reader.object(DEEPEST).ok()?;
    let sound = if reader.cut { !whole } else { reader.after_space().is_none() };
    sound.then_some(document)
}

/// Why a value ends before it is complete.
enum Stop {
    /// The bytes end.
    Cut,
    /// It is not plain.
    Odd,
}

type Read<T> = Result<T, Stop>;

struct Plain<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The bytes ended inside of something that is kept.
    cut: bool,
}

impl<'a> Plain<'a> {
    fn after_space(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        match self.after_space() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Stop::Odd),
            None => Err(Stop::Cut),
        }
    }

    fn value(&mut self, depth: usize) -> Read<Json<'a>> {
        match self.after_space().ok_or(Stop::Cut)? {
            b'"' => self.string(true).map(Json::String),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.word("true").map(|()| Json::Bool(true)),
            b'f' => self.word("false").map(|()| Json::Bool(false)),
            b'n' => self.word("null").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Read<Json<'a>> {
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        self.items(depth, b'}', |reader, depth| {
            let name = reader.string(false)?;
            reader.expect(b':')?;
            let value = reader.value(depth)?;
            match members.iter().position(|(known, _)| *known == name) {
                Some(index) => members[index].1 = value,
                None if members.len() == MOST_MEMBERS => return Err(Stop::Odd),
                None => members.push((name, value)),
            }
            Ok(())
        })?;
        Ok(Json::Object(members))
    }

    fn array(&mut self, depth: usize) -> Read<Json<'a>> {
        let mut items = Vec::new();
        self.items(depth, b']', |reader, depth| {
            items.push(reader.value(depth)?);
            Ok(())
        })?;
        Ok(Json::Array(items))
    }

    /// Reads what a container holds, up to its closing byte or to where the bytes end.
    fn items(&mut self, depth: usize, close: u8, mut item: impl FnMut(&mut Self, usize) -> Read<()>) -> Read<()> {
        let depth = depth.checked_sub(1).ok_or(Stop::Odd)?;
        self.at += 1;
        if self.after_space() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            match item(self, depth) {
                Err(Stop::Cut) => self.cut = true,
                other => other?,
            }
            if self.cut {
                return Ok(());
            }
            match self.after_space() {
                None => self.cut = true,
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(Stop::Odd),
            }
            if self.cut {
                return Ok(());
            }
        }
    }

    /// A string; one that is a value is cut where the bytes end.
    fn string(&mut self, is_value: bool) -> Read<Cow<'a, str>> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escape = None;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    let text = &self.text[start..self.at - 1];
                    return if escape.is_some() { unescape(text) } else { Ok(Cow::Borrowed(text)) };
                }
                b'\\' => {
                    escape = Some(self.at);
                    self.at += 2;
                }
                0..0x20 => return Err(Stop::Odd),
                _ => self.at += 1,
            }
        }
        if !is_value {
            return Err(Stop::Cut);
        }
        // A cut escape sequence, or half a surrogate pair, is left to the careful way.
        let last = &self.bytes[start.max(self.bytes.len().saturating_sub(12))..];
        if escape.is_some() && (self.at > self.bytes.len() || last.windows(2).any(|pair| pair == b"\\u")) {
            return Err(Stop::Odd);
        }
        self.cut = true;
        let text = &self.text[start..];
        if escape.is_some() { unescape(text) } else { Ok(Cow::Borrowed(text)) }
    }

    fn word(&mut self, word: &str) -> Read<()> {
        let rest = &self.bytes[self.at..];
        if !word.as_bytes().starts_with(&rest[..rest.len().min(word.len())]) {
            return Err(Stop::Odd);
        }
        self.at = self.bytes.len().min(self.at + word.len());
        self.scalar_end()
    }

    fn number(&mut self) -> Read<Json<'a>> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        let leading_zero = self.bytes.get(self.at) == Some(&b'0');
        let whole = self.digits()?;
        if leading_zero && whole > 1 {
            return Err(Stop::Odd);
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        self.scalar_end()?;
        Ok(Json::Number(Cow::Borrowed(text)))
    }

    fn digits(&mut self) -> Read<usize> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        match self.at - start {
            0 if self.at < self.bytes.len() => Err(Stop::Odd),
            0 => Err(Stop::Cut),
            count => Ok(count),
        }
    }

    /// A scalar is complete where something follows that ends it: `20` may go on as `201`.
    fn scalar_end(&mut self) -> Read<()> {
        match self.after_space() {
            Some(b',' | b'}' | b']') => Ok(()),
            Some(_) => Err(Stop::Odd),
            None => Err(Stop::Cut),
        }
    }
}

fn unescape<'a>(text: &str) -> Read<Cow<'a, str>> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    quoted.push_str(text);
    quoted.push('"');
    serde_json::from_str(&quoted).map(Cow::Owned).map_err(|_| Stop::Odd)
}

#[cfg(test)]
mod tests;
