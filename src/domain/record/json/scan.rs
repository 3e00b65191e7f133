//! Scans valid JSON byte by byte: words, numbers, strings and containers. It stores only where they
//! end.

use std::borrow::Cow;

use memchr::memchr2;

/// The deepest nesting that cjson accepts in the services' scripts.
pub(super) const DEEPEST: usize = 1000;

/// Why a value ends before it is complete.
pub(super) enum ParseError {
    Cut,
    /// The text is unlike anything that services write, so the careful reader must decide.
    Odd,
}

pub(super) type ParseResult<T> = Result<T, ParseError>;

/// The open containers: one bit for each, set for an object.
#[derive(Default)]
struct Open {
    objects: [u64; DEEPEST.div_ceil(64)],
    depth: usize,
}

impl Open {
    fn enter(&mut self, is_object: bool, most: usize) -> ParseResult<()> {
        if self.depth >= most.min(DEEPEST) {
            return Err(ParseError::Odd);
        }
        let word = &mut self.objects[self.depth / 64];
        let bit = 1 << (self.depth % 64);
        *word = if is_object { *word | bit } else { *word & !bit };
        self.depth += 1;
        Ok(())
    }

    /// The byte that closes the innermost container.
    fn closing(&self) -> u8 {
        let innermost = self.depth.saturating_sub(1);
        if self.objects[innermost / 64] >> (innermost % 64) & 1 == 1 { b'}' } else { b']' }
    }
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) cut: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, cut: false }
    }

    pub(super) fn after_space(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    pub(super) fn expect(&mut self, byte: u8) -> ParseResult<()> {
        match self.after_space() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(ParseError::Odd),
            None => Err(ParseError::Cut),
        }
    }

    /// The text of an array or an object that is nested no deeper than this, up to the end of the
    /// bytes. A loop instead of recursion, so that deep nesting cannot overflow the stack.
    pub(super) fn container(&mut self, deepest: usize) -> ParseResult<&'a str> {
        let start = self.at;
        match self.skip_all(&mut Open::default(), deepest) {
            Err(ParseError::Cut) => self.cut = true,
            other => other?,
        }
        Ok(&self.text[start..self.at.min(self.bytes.len())])
    }

    fn skip_all(&mut self, open: &mut Open, most: usize) -> ParseResult<()> {
        loop {
            match self.after_space().ok_or(ParseError::Cut)? {
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
            if self.leave(open)? {
                return Ok(());
            }
            self.at += 1;
            self.skip_name(open)?;
        }
    }

    /// Moves past the containers that end after a value, up to the next comma; true if none is open
    /// any more.
    fn leave(&mut self, open: &mut Open) -> ParseResult<bool> {
        loop {
            if self.cut || open.depth == 0 {
                return Ok(true);
            }
            match self.after_space().ok_or(ParseError::Cut)? {
                b',' => return Ok(false),
                byte if byte == open.closing() => open.depth -= 1,
                _ => return Err(ParseError::Odd),
            }
            self.at += 1;
        }
    }

    /// Skips the name of a member, if the innermost container is an object.
    fn skip_name(&mut self, open: &Open) -> ParseResult<()> {
        if open.closing() == b'}' {
            self.string_span(false)?;
            self.expect(b':')?;
        }
        Ok(())
    }

    /// A string. One that is a value may end where the bytes end.
    pub(super) fn string(&mut self, is_value: bool) -> ParseResult<Cow<'a, str>> {
        let (text, is_escaped) = self.string_span(is_value)?;
        if is_escaped { unescape(text) } else { Ok(Cow::Borrowed(text)) }
    }

    /// The text between the quotes of a string, and whether it contains an escape.
    fn string_span(&mut self, is_value: bool) -> ParseResult<(&'a str, bool)> {
        self.expect(b'"')?;
        let start = self.at;
        let mut is_escaped = false;
        // memchr checks many bytes at a time, because a scan searches the strings of every record.
        while let Some(plain) = memchr2(b'"', b'\\', &self.bytes[self.at..]) {
            self.pass_plain(plain)?;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Ok((&self.text[start..self.at - 1], is_escaped));
            }
            is_escaped = true;
            self.at += escape(&self.bytes[self.at..])?;
        }
        self.pass_plain(self.bytes.len() - self.at)?;
        if !is_value {
            return Err(ParseError::Cut);
        }
        self.cut = true;
        Ok((&self.text[start..], is_escaped))
    }

    /// Skips this many bytes of a string, which contain no quote and no backslash.
    fn pass_plain(&mut self, length: usize) -> ParseResult<()> {
        let plain = &self.bytes[self.at..self.at + length];
        self.at += length;
        // This loop has no early exit, so that the compiler can check many bytes at a time.
        let has_control = plain.iter().fold(false, |found, byte| found | (*byte < 0x20));
        if has_control { Err(ParseError::Odd) } else { Ok(()) }
    }

    pub(super) fn word(&mut self, word: &str) -> ParseResult<()> {
        let rest = &self.bytes[self.at..];
        // The bytes may end within the word.
        if !word.as_bytes().starts_with(&rest[..rest.len().min(word.len())]) {
            return Err(ParseError::Odd);
        }
        self.at = self.bytes.len().min(self.at + word.len());
        self.scalar_end()
    }

    pub(super) fn number(&mut self) -> ParseResult<&'a str> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        // JSON allows no leading zero, but cjson does, so the careful reader has to read `01`.
        let leading_zero = self.bytes.get(self.at) == Some(&b'0');
        let whole = self.digits()?;
        if leading_zero && whole > 1 {
            return Err(ParseError::Odd);
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
        Ok(text)
    }

    fn digits(&mut self) -> ParseResult<usize> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        match self.at - start {
            0 if self.at < self.bytes.len() => Err(ParseError::Odd),
            0 => Err(ParseError::Cut),
            count => Ok(count),
        }
    }

    /// A scalar is complete only if a byte follows that ends it: `20` may continue as `201`.
    fn scalar_end(&mut self) -> ParseResult<()> {
        match self.after_space() {
            Some(b',' | b'}' | b']') => Ok(()),
            Some(_) => Err(ParseError::Odd),
            None => Err(ParseError::Cut),
        }
    }
}

/// The length of the escape sequence at the beginning. A truncated one, or one that encodes no
/// character, is left to the careful reader.
fn escape(bytes: &[u8]) -> ParseResult<usize> {
    match bytes.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            let code = code_unit(bytes, 0).ok_or(ParseError::Odd)?;
            match (code, code_unit(bytes, 6)) {
                // A character beyond 16 bits takes two escape sequences.
                (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => Ok(12),
                (0xd800..=0xdfff, _) => Err(ParseError::Odd),
                _ => Ok(6),
            }
        }
        _ => Err(ParseError::Odd),
    }
}

/// The number in the `\uXXXX` at this place; `None` for any other bytes.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let mut code = 0;
    for digit in digits {
        code = code * 16 + char::from(*digit).to_digit(16)?;
    }
    Some(code)
}

fn unescape<'a>(text: &str) -> ParseResult<Cow<'a, str>> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let length = escape(&rest.as_bytes()[at..])?;
        let (sequence, after) = rest[at..].split_at(length);
        let quoted = format!("\"{sequence}\"");
        plain.push_str(&serde_json::from_str::<String>(&quoted).map_err(|_| ParseError::Odd)?);
        rest = after;
    }
    plain.push_str(rest);
    Ok(Cow::Owned(plain))
}
