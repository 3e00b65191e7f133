//! What a value is to the forms of its role: forms that open it one way share what comes out.

use std::borrow::Cow;

use super::fields::FieldSource;
use crate::domain::record::codec::{Plain, undo};
use crate::domain::record::{Field, Hash, Json, json_prefix, packed};
use crate::domain::schema::{Decoder, Decoding, Encoding, ValueFormat};

/// What the codecs of a way to open a value come to, or why they come to nothing.
pub(super) type DecodedBytes<'a> = (&'a Decoding, Result<Plain<'a>, String>);

/// Undoes the codecs of each way in which these forms of a role open a value.
pub(super) fn undone<'a>(
    cases: impl Iterator<Item = &'a ValueFormat>,
    head: &'a [u8],
    whole: bool,
) -> Vec<DecodedBytes<'a>> {
    let mut ways: Vec<DecodedBytes<'_>> = Vec::new();
    for case in cases {
        if !ways.iter().any(|(known, _)| **known == case.decoding) {
            ways.push((&case.decoding, undo(&case.decoding.value.codecs, head, whole)));
        }
    }
    ways
}

/// What came out.
enum DecodedView<'a> {
    Text(&'a [u8], bool),
    /// A document; and why one of its fields could not be opened, where one could not.
    Document(Json<'a>, bool, Option<String>),
    /// Too little was read for anything to come out.
    Nothing,
    Unreadable(String),
}

pub(super) struct Views<'a>(Vec<(&'a Decoding, DecodedView<'a>)>);

impl<'a> Views<'a> {
    pub(super) fn of(ways: &'a [DecodedBytes<'a>]) -> Self {
        Self(ways.iter().map(|(decoding, plain)| (*decoding, view(decoding, plain))).collect())
    }

    /// What the forms see of a hash.
    pub(super) fn of_hash(ways: &'a [DecodedBytes<'a>], hash: &'a Hash) -> Self {
        let whole = hash.is_whole();
        Self(
            ways.iter()
                .map(|(decoding, _)| (*decoding, with_fields(decoding, fields(hash), whole)))
                .collect(),
        )
    }

    /// What a form sees of the value; `None` where the value cannot be opened so.
    pub(super) fn source(&self, case: &ValueFormat) -> Option<FieldSource<'_>> {
        match self.view(case)? {
            DecodedView::Text(head, whole) => {
                Some(FieldSource { head, whole: *whole, document: None })
            }
            DecodedView::Document(document, whole, _) => {
                Some(FieldSource { head: &[], whole: *whole, document: Some(document) })
            }
            DecodedView::Nothing | DecodedView::Unreadable(_) => None,
        }
    }

    /// True when what was not read decides whether the value can be opened so at all.
    pub(super) fn is_open(&self, case: &ValueFormat) -> bool {
        matches!(self.view(case), Some(DecodedView::Nothing))
    }

    /// True when the value is a document to some form.
    pub(super) fn is_document(&self) -> bool {
        self.0.iter().any(|(_, view)| matches!(view, DecodedView::Document(..)))
    }

    /// Why the value, or a field of it, cannot be opened.
    pub(super) fn unreadable_because(self) -> Option<String> {
        let whole = !self.is_document();
        self.0.into_iter().find_map(|(_, view)| match view {
            DecodedView::Unreadable(why) if whole => Some(why),
            DecodedView::Document(_, _, why) => why,
            _ => None,
        })
    }

    fn view(&self, case: &ValueFormat) -> Option<&DecodedView<'a>> {
        self.0.iter().find(|(decoding, _)| **decoding == case.decoding).map(|(_, view)| view)
    }
}

fn view<'a>(decoding: &Decoding, plain: &'a Result<Plain<'a>, String>) -> DecodedView<'a> {
    let Plain { bytes, whole } = match plain {
        Ok(plain) if plain.bytes.is_empty() && !plain.whole => return DecodedView::Nothing,
        Ok(plain) => plain,
        Err(why) => return DecodedView::Unreadable(why.clone()),
    };
    if !decoding.value.encoding.has_fields() {
        return DecodedView::Text(bytes, *whole);
    }
    match document(decoding.value.encoding, bytes, *whole) {
        Ok(document) => with_fields(decoding, document, *whole),
        Err(why) => DecodedView::Unreadable(why),
    }
}

/// A document, with those of its fields opened that something is in.
fn with_fields<'a>(decoding: &Decoding, document: Json<'a>, whole: bool) -> DecodedView<'a> {
    if decoding.inside.is_empty() {
        return DecodedView::Document(document, whole, None);
    }
    let (mut document, mut unread) = (document.into_owned(), None);
    for (path, decoder) in &decoding.inside {
        let opened = open_field(&mut document, path, decoder, whole);
        unread = unread.or(opened.err().map(|why| format!("`{path}` cannot be read: {why}")));
    }
    DecodedView::Document(document, whole, unread)
}

/// The fields of a hash as members of an object.
fn fields(hash: &Hash) -> Json<'_> {
    Json::Object(
        hash.fields
            .iter()
            .map(|field| (String::from_utf8_lossy(&field.name), member(field)))
            .collect(),
    )
}

fn member(field: &Field) -> Json<'_> {
    match std::str::from_utf8(&field.head) {
        Ok(text) => Json::String(Cow::Borrowed(text)),
        // The last character may be cut.
        Err(error) if !field.is_whole() && error.error_len().is_none() => {
            Json::String(String::from_utf8_lossy(&field.head[..error.valid_up_to()]))
        }
        Err(_) => Json::Bytes(Cow::Borrowed(&field.head)),
    }
}

fn document(encoding: Encoding, bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    match encoding {
        Encoding::Msgpack => {
            packed::msgpack(bytes, whole).map_err(|why| format!("not MessagePack: {why}"))
        }
        Encoding::Php => {
            packed::php(bytes, whole).map_err(|why| format!("not what PHP serializes: {why}"))
        }
        Encoding::Newtonsoft => {
            packed::newtonsoft(bytes, whole).map_err(|why| format!("not JSON: {why}"))
        }
        _ => json_prefix::parse(bytes, whole).map_err(|why| format!("not JSON: {why}")),
    }
}

/// Puts what a field holds in the place of the field.
fn open_field(
    document: &mut Json<'static>,
    path: &str,
    decoder: &Decoder,
    whole: bool,
) -> Result<(), String> {
    let bytes = match document.pointer(path) {
        Some(Json::String(text)) => text.into_owned().into_bytes(),
        Some(Json::Bytes(bytes)) => bytes.into_owned(),
        // Nothing to open: whether the field may lack, or be something else, is for the form to say.
        _ => return Ok(()),
    };
    let plain = undo(&decoder.codecs, &bytes, whole)?;
    if plain.bytes.is_empty() && !plain.whole {
        return Ok(());
    }
    let opened = match decoder.encoding.has_fields() {
        true => document_in(decoder.encoding, &plain)?,
        false => text(&plain.bytes),
    };
    document.put(path, opened);
    Ok(())
}

fn document_in(encoding: Encoding, plain: &Plain<'_>) -> Result<Json<'static>, String> {
    document(encoding, &plain.bytes, plain.whole).map(Json::into_owned)
}

fn text(bytes: &[u8]) -> Json<'static> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Json::String(text.to_owned().into()),
        Err(_) => Json::Bytes(bytes.to_vec().into()),
    }
}
