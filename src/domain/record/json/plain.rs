//! Reads the JSON that services nearly always write: valid UTF-8, without anything unusual.

use std::borrow::Cow;

use super::close::close;
use super::members::Members;
use super::scan::{DEEPEST, ParseError, ParseResult, Scanner};
use super::value::Json;

/// The members of an array or an object that is known to be valid; arrays and objects among the
/// members stay text.
pub(crate) fn shallow(text: &str) -> Json<'_> {
    let mut reader = JsonReader { scan: Scanner::new(text) };
    let document = match reader.scan.after_space() {
        Some(b'{') => reader.object(),
        _ => reader.array(),
    };
    document.unwrap_or(Json::Null)
}

/// Reads an object or an array. With `whole` false the bytes may end anywhere: open containers are
/// closed, a string ends there, and an incomplete member is dropped. `None` for anything unusual.
pub(crate) fn plain(bytes: &[u8], whole: bool) -> Option<Json<'_>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if !whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let mut reader = JsonReader { scan: Scanner::new(text) };
    let document = match reader.scan.after_space()? {
        b'{' => reader.object(),
        b'[' => reader.raw(DEEPEST),
        _ => return None,
    };
    let document = document.ok()?;
    // Something behind the document is unusual, and so is a whole value without an end.
    let is_sound = if reader.scan.cut { !whole } else { reader.scan.after_space().is_none() };
    if is_sound { Some(document) } else { None }
}

struct JsonReader<'a> {
    scan: Scanner<'a>,
}

impl<'a> JsonReader<'a> {
    /// A member or an item of the outermost array or object.
    fn value(&mut self) -> ParseResult<Json<'a>> {
        match self.scan.after_space().ok_or(ParseError::Cut)? {
            b'"' => self.scan.string(true).map(Json::String),
            b'{' | b'[' => self.raw(DEEPEST - 1),
            b't' => self.scan.word("true").map(|()| Json::Bool(true)),
            b'f' => self.scan.word("false").map(|()| Json::Bool(false)),
            b'n' => self.scan.word("null").map(|()| Json::Null),
            _ => self.scan.number().map(|text| Json::Number(Cow::Borrowed(text))),
        }
    }

    fn object(&mut self) -> ParseResult<Json<'a>> {
        let mut members = Members::default();
        self.items(b'}', |reader| {
            let name = reader.scan.string(false)?;
            reader.scan.expect(b':')?;
            members.put(name, reader.value()?);
            Ok(())
        })?;
        Ok(Json::Object(members.into_inner()))
    }

    fn array(&mut self) -> ParseResult<Json<'a>> {
        let mut items = Vec::new();
        self.items(b']', |reader| {
            items.push(reader.value()?);
            Ok(())
        })?;
        Ok(Json::Array(items))
    }

    /// An array or an object in its original text; if the bytes end within it, open containers are
    /// closed.
    fn raw(&mut self, depth: usize) -> ParseResult<Json<'a>> {
        let text = self.scan.container(depth)?;
        if !self.scan.cut {
            return Ok(Json::Raw(Cow::Borrowed(text)));
        }
        let closed = String::from_utf8(close(text.as_bytes())).map_err(|_| ParseError::Odd)?;
        Ok(Json::Raw(Cow::Owned(closed)))
    }

    /// Reads the content of a container, up to its closing byte or the end of the bytes.
    fn items(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> ParseResult<()>,
    ) -> ParseResult<()> {
        self.scan.at += 1;
        if self.scan.after_space() == Some(close) {
            self.scan.at += 1;
            return Ok(());
        }
        loop {
            match item(self) {
                Err(ParseError::Cut) => self.scan.cut = true,
                other => other?,
            }
            if self.scan.cut {
                return Ok(());
            }
            match self.scan.after_space() {
                None => {
                    self.scan.cut = true;
                    return Ok(());
                }
                Some(b',') => self.scan.at += 1,
                Some(byte) if byte == close => {
                    self.scan.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(ParseError::Odd),
            }
        }
    }
}
