//! Reading what services write nearly always: sound UTF-8, and nothing odd.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Json;
use super::close::close;

/// How deep cjson reads containers.
const DEEPEST: usize = 1000;

/// Among so many members a repeated name is looked for one by one, among more by an index.
const FEW_MEMBERS: usize = 64;

/// What stands in an array or an object that is known to be sound; what stands in those within stays as it is written.
pub(super) fn shallow(text: &str) -> Json<'_> {
    let mut reader = Plain { text, bytes: text.as_bytes(), at: 0, cut: false };
    match reader.after_space() {
        Some(b'{') => reader.object(DEEPEST),
        _ => reader.array(DEEPEST),
    }
    .unwrap_or(Json::Null)
}

/// Reads an object or an array, or with `whole` false the beginning of one: what is open at the end is closed, a string is cut
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
    let document = match reader.after_space()? {
        b'{' => reader.object(DEEPEST),
        b'[' => reader.raw(DEEPEST),
        _ => return None,
    }
    .ok()?;
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

/// The containers that are open: a bit for each, set for an object.
#[derive(Default)]
struct Open {
    objects: [u64; DEEPEST.div_ceil(64)],
    depth: usize,
}

impl Open {
    fn enter(&mut self, is_object: bool, most: usize) -> Read<()> {
        if self.depth >= most.min(DEEPEST) {
            return Err(Stop::Odd);
        }
        let (word, bit) = (&mut self.objects[self.depth / 64], 1 << (self.depth % 64));
        *word = if is_object { *word | bit } else { *word & !bit };
        self.depth += 1;
        Ok(())
    }

    /// What ends the innermost of them.
    fn closing(&self) -> u8 {
        let innermost = self.depth.saturating_sub(1);
        if self.objects[innermost / 64] >> (innermost % 64) & 1 == 1 { b'}' } else { b']' }
    }
}

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
            b'{' | b'[' => self.raw(depth),
            b't' => self.word("true").map(|()| Json::Bool(true)),
            b'f' => self.word("false").map(|()| Json::Bool(false)),
            b'n' => self.word("null").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Read<Json<'a>> {
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        self.items(depth, b'}', |reader, depth| {
            let name = reader.string(false)?;
            reader.expect(b':')?;
            let value = reader.value(depth)?;
            if members.len() == FEW_MEMBERS {
                places.extend(members.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)));
            }
            let known = match members.len() {
                ..FEW_MEMBERS => members.iter().position(|(known, _)| *known == name),
                _ => places.get(&name).copied(),
            };
            match known {
                Some(place) => members[place].1 = value,
                None => {
                    if members.len() >= FEW_MEMBERS {
                        places.insert(name.clone(), members.len());
                    }
                    members.push((name, value));
                }
            }
            Ok(())
        })?;
        Ok(Json::Object(members))
    }

    /// An array or an object as it is written; where the bytes end within, what is open is closed.
    fn raw(&mut self, depth: usize) -> Read<Json<'a>> {
        let start = self.at;
        self.skip(depth)?;
        let text = &self.text[start..self.at.min(self.bytes.len())];
        if !self.cut {
            return Ok(Json::Raw(Cow::Borrowed(text)));
        }
        let closed = String::from_utf8(close(text.as_bytes())).map_err(|_| Stop::Odd)?;
        Ok(Json::Raw(Cow::Owned(closed)))
    }

    /// Goes over a container as reading it would, in a loop: what is nested deep takes no stack.
    fn skip(&mut self, depth: usize) -> Read<()> {
        let mut open = Open::default();
        match self.skip_all(&mut open, depth) {
            Err(Stop::Cut) => {
                self.cut = true;
                Ok(())
            }
            other => other,
        }
    }

    fn skip_all(&mut self, open: &mut Open, most: usize) -> Read<()> {
        loop {
            match self.after_space().ok_or(Stop::Cut)? {
                b'"' => _ = self.string_span(true)?,
                byte @ (b'{' | b'[') => {
                    self.at += 1;
                    open.enter(byte == b'{', most)?;
                    if self.after_space() != Some(open.closing()) {
                        self.skip_name(open)?;
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => _ = self.number()?,
            }
            // Behind a value.
            loop {
                if self.cut || open.depth == 0 {
                    return Ok(());
                }
                match self.after_space().ok_or(Stop::Cut)? {
                    b',' => break,
                    byte if byte == open.closing() => open.depth -= 1,
                    _ => return Err(Stop::Odd),
                }
                self.at += 1;
            }
            self.at += 1;
            self.skip_name(open)?;
        }
    }

    /// Goes over the name of a member, where members are.
    fn skip_name(&mut self, open: &Open) -> Read<()> {
        if open.closing() == b'}' {
            self.string_span(false)?;
            self.expect(b':')?;
        }
        Ok(())
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
        let (text, is_escaped) = self.string_span(is_value)?;
        if is_escaped { unescape(text) } else { Ok(Cow::Borrowed(text)) }
    }

    /// What stands between the quotes of a string, and whether something in there is escaped.
    fn string_span(&mut self, is_value: bool) -> Read<(&'a str, bool)> {
        self.expect(b'"')?;
        let start = self.at;
        let mut is_escaped = false;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok((&self.text[start..self.at - 1], is_escaped));
                }
                b'\\' => {
                    is_escaped = true;
                    self.at += escape(&self.bytes[self.at..])?;
                }
                0..0x20 => return Err(Stop::Odd),
                _ => self.at += 1,
            }
        }
        if !is_value {
            return Err(Stop::Cut);
        }
        self.cut = true;
        Ok((&self.text[start..], is_escaped))
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

/// How many bytes the escape sequence takes that stands at the beginning. One that is cut, or stands for no character, is
/// left to the careful way.
fn escape(bytes: &[u8]) -> Read<usize> {
    let code = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
    };
    match bytes.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => match (code(0).ok_or(Stop::Odd)?, code(6)) {
            (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => Ok(12),
            (0xd800..=0xdfff, _) => Err(Stop::Odd),
            _ => Ok(6),
        },
        _ => Err(Stop::Odd),
    }
}

fn unescape<'a>(text: &str) -> Read<Cow<'a, str>> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let length = escape(&rest.as_bytes()[at..])?;
        let (sequence, after) = rest[at..].split_at(length);
        let quoted = format!("\"{sequence}\"");
        plain.push_str(&serde_json::from_str::<String>(&quoted).map_err(|_| Stop::Odd)?);
        rest = after;
    }
    plain.push_str(rest);
    Ok(Cow::Owned(plain))
}
