//! The parts that these formats share: length prefixes, big-endian numbers, containers of items.

use std::borrow::Cow;

use crate::domain::record::Json;

/// The nesting limit of common JSON parsers. The readers are recursive, so a limit is needed to
/// protect the stack.
const DEEPEST: usize = 128;

/// The most items of a document, in all its containers together. An item takes at least 64 bytes in
/// a tree, and a compressed value of a few kilobytes can contain 16 million items.
pub(super) const MAX_ITEMS: usize = 1 << 18;

pub(super) enum UnpackError {
    /// The bytes end here.
    Cut,
    Odd(String),
}

pub(super) type UnpackResult<T> = Result<T, UnpackError>;

pub(super) fn odd<T>(why: impl Into<String>) -> UnpackResult<T> {
    Err(UnpackError::Odd(why.into()))
}

pub(super) struct PackedReader<'a> {
    rest: &'a [u8],
    depth: usize,
    /// How many more items may be read.
    room: usize,
    /// True if the bytes ended within an item.
    pub(super) cut: bool,
}

/// Reads a document with its format's reader of items.
///
/// # Errors
/// Why the bytes are not such a document. With `whole` false they may end anywhere.
pub(super) fn document<'a>(
    bytes: &'a [u8],
    whole: bool,
    item: impl FnOnce(&mut PackedReader<'a>) -> UnpackResult<Json<'a>>,
) -> Result<Json<'a>, String> {
    let mut reader = PackedReader { rest: bytes, depth: 0, room: MAX_ITEMS, cut: false };
    match item(&mut reader) {
        Err(UnpackError::Odd(why)) => Err(why),
        // Too little was read to decide anything; every field may be in the rest.
        Err(UnpackError::Cut) if !whole && !bytes.is_empty() => Ok(Json::Object(Vec::new())),
        Err(UnpackError::Cut) => Err("the end is missing".to_owned()),
        Ok(_) if reader.cut && whole => Err("the end is missing".to_owned()),
        Ok(_) if !reader.cut && !reader.rest.is_empty() => {
            Err("something follows behind its end".to_owned())
        }
        Ok(json) => Ok(json),
    }
}

impl<'a> PackedReader<'a> {
    pub(super) fn byte(&mut self) -> UnpackResult<u8> {
        let (first, rest) = self.rest.split_first().ok_or(UnpackError::Cut)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> UnpackResult<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(UnpackError::Cut)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A big-endian whole number of this many bytes: 1, 2, 4 or 8.
    pub(super) fn number(&mut self, bytes: usize) -> UnpackResult<u64> {
        Ok(match bytes {
            1 => self.byte()?.into(),
            2 => u16::from_be_bytes(self.fixed()?).into(),
            4 => u32::from_be_bytes(self.fixed()?).into(),
            _ => u64::from_be_bytes(self.fixed()?),
        })
    }

    /// This many bytes, or fewer if the input ends.
    pub(super) fn bytes(&mut self, length: u64) -> &'a [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.cut |= self.rest.len() < length;
        let (taken, rest) = self.rest.split_at(self.rest.len().min(length));
        self.rest = rest;
        taken
    }

    /// The bytes before the next `end`, which is skipped. It must follow within `most` bytes.
    pub(super) fn until(&mut self, end: u8, most: usize) -> UnpackResult<&'a [u8]> {
        match self.rest.iter().take(most + 1).position(|byte| *byte == end) {
            Some(at) => {
                let before = &self.rest[..at];
                self.rest = &self.rest[at + 1..];
                Ok(before)
            }
            None if self.rest.len() <= most => Err(UnpackError::Cut),
            None => odd(format!("no `{}` ends it", char::from(end))),
        }
    }

    /// Skips exactly these bytes.
    pub(super) fn expect(&mut self, wanted: &[u8]) -> UnpackResult<()> {
        if let Some(rest) = self.rest.strip_prefix(wanted) {
            self.rest = rest;
            return Ok(());
        }
        if wanted.starts_with(self.rest) {
            Err(UnpackError::Cut)
        } else {
            odd(format!("`{}` is missing", wanted.escape_ascii()))
        }
    }

    pub(super) fn text(&mut self, length: u64) -> Json<'a> {
        let bytes = self.bytes(length);
        Json::String(lossy(bytes, self.cut))
    }

    /// A string of a format that does not distinguish text from bytes.
    pub(super) fn text_or_bytes(&mut self, length: u64) -> Json<'a> {
        let bytes = self.bytes(length);
        match std::str::from_utf8(bytes) {
            Err(error) if !self.cut || error.error_len().is_some() => {
                Json::Bytes(Cow::Borrowed(bytes))
            }
            _ => Json::String(lossy(bytes, self.cut)),
        }
    }

    /// Reads this many items of a container.
    pub(super) fn items(
        &mut self,
        count: u64,
        mut item: impl FnMut(&mut Self) -> UnpackResult<()>,
    ) -> UnpackResult<()> {
        if self.depth == DEEPEST {
            return odd(format!("it is nested deeper than {DEEPEST}"));
        }
        self.depth += 1;
        let mut left = count;
        while left > 0 && !self.cut {
            let Some(room) = self.room.checked_sub(1) else { return odd(too_many()) };
            self.room = room;
            match item(self) {
                Ok(()) => left -= 1,
                Err(UnpackError::Cut) => self.cut = true,
                Err(odd) => return Err(odd),
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// Why a document of more than [`MAX_ITEMS`] items is not read.
pub(super) fn too_many() -> String {
    format!("it expands beyond {MAX_ITEMS} items, which is more than idemctl reads")
}

/// Text whose last character may be truncated.
fn lossy(bytes: &[u8], cut: bool) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(error) if cut && error.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..error.valid_up_to()])
        }
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The member name for a key of a map.
pub(super) fn name(key: Json<'_>) -> UnpackResult<Cow<'_, str>> {
    match key {
        Json::String(text) | Json::Number(text) => Ok(text),
        Json::Bytes(bytes) => Ok(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())),
        Json::Bool(flag) => Ok(Cow::Owned(flag.to_string())),
        _ => odd("a key in a map is no text"),
    }
}

pub(super) fn whole_number(number: impl ToString) -> Json<'static> {
    Json::Number(Cow::Owned(number.to_string()))
}
