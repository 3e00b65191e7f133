//! The views of a value, one for each decoding at its Redis key. Formats with the same codecs and
//! encoding share one.

use std::borrow::Cow;

use super::fields::FieldSource;
use super::reading::Reading;
use crate::domain::record::codec::{self, Plain, undo};
use crate::domain::record::{Field, Hash, Json, json, json_prefix, packed};
use crate::domain::schema::{Decoder, Decoding, Encoding, ValueFormat};

/// The output of a decoding's codecs, or why there is none.
pub(super) type DecodedBytes<'a> = (&'a Decoding, Result<Plain<'a>, String>);

/// Undoes the codecs of each decoding among these formats, once each.
pub(super) fn without_codecs<'a>(
    formats: impl Iterator<Item = &'a ValueFormat>,
    head: &'a [u8],
    whole: bool,
) -> Vec<DecodedBytes<'a>> {
    let mut decoded: Vec<DecodedBytes<'_>> = Vec::new();
    for format in formats {
        // Decompression may expand a value a thousand times, so each decoding is undone once.
        if !decoded.iter().any(|(known, _)| is_same(known, &format.decoding)) {
            let plain = undo(&format.decoding.value.codecs, head, whole);
            decoded.push((&format.decoding, plain));
        }
    }
    decoded
}

/// The content of a value after its codecs are undone.
enum DecodedView<'a> {
    /// Bytes of an encoding without fields; false if more may follow.
    Text(&'a [u8], bool),
    /// A document; false if more of it may follow; and the fields that could not be decoded.
    Document(Json<'a>, bool, Vec<BadField<'a>>),
    /// Too little was read for any output.
    Nothing,
    /// The decoding rejects the value, for this reason.
    Unreadable {
        why: String,
        /// True if the value begins as this decoding's values do, so it may be a damaged one.
        begins_so: bool,
    },
}

/// A field that its `decode_at` cannot decode, or that other programs may fail to decode.
struct BadField<'a> {
    /// Empty for the whole value.
    path: &'a str,
    why: String,
    /// False for an empty text, and for a value that is not a text: some services store one if they
    /// have nothing to store.
    is_damaged: bool,
}

impl BadField<'_> {
    fn explained(&self) -> String {
        if self.path.is_empty() {
            return format!("it is {}", self.why);
        }
        format!("`{}` cannot be read: {}", self.path, self.why)
    }

    /// True if this pointer is to the field, or to something in it.
    fn contains(&self, pointer: &str) -> bool {
        pointer.strip_prefix(self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The view of a value under each decoding.
pub(super) struct Views<'a> {
    views: Vec<(&'a Decoding, DecodedView<'a>)>,
    /// The hash, if the value is one.
    hash: Option<&'a Hash>,
}

impl<'a> Views<'a> {
    /// The views of a string.
    pub(super) fn of(decoded: &'a [DecodedBytes<'a>], head: &[u8]) -> Self {
        let mut views = Vec::with_capacity(decoded.len());
        for (decoding, plain) in decoded {
            views.push((*decoding, view(decoding, plain, head)));
        }
        Self { views, hash: None }
    }

    /// The views of a hash, which has no codecs.
    pub(super) fn of_hash(decoded: &'a [DecodedBytes<'a>], hash: &'a Hash) -> Self {
        let whole = hash.is_whole();
        let mut views = Vec::with_capacity(decoded.len());
        for (decoding, _) in decoded {
            views.push((*decoding, with_fields(decoding, fields(hash), whole, Vec::new())));
        }
        Self { views, hash: Some(hash) }
    }

    /// The source of a format's fields; `None` if the value cannot be decoded this way.
    pub(super) fn source(&self, format: &ValueFormat) -> Option<FieldSource<'_>> {
        match self.view(format)? {
            DecodedView::Text(head, whole) => {
                Some(FieldSource { head, whole: *whole, document: None, hash: None })
            }
            DecodedView::Document(document, whole, _) => Some(FieldSource {
                head: &[],
                whole: *whole,
                document: Some(document),
                hash: self.hash,
            }),
            DecodedView::Nothing | DecodedView::Unreadable { .. } => None,
        }
    }

    /// Why the service cannot read a result of this format: one of the fields that the schema names
    /// is in a field that cannot be decoded.
    pub(super) fn undecodable(&self, format: &ValueFormat) -> Option<String> {
        for bad in self.bad_fields(format) {
            let is_used = format.fields.pointers().any(|(_, pointer)| bad.contains(pointer));
            if is_used && bad.is_damaged {
                return Some(bad.explained());
            }
        }
        None
    }

    /// Why the service may fail to read a result of this format: a field cannot be decoded.
    pub(super) fn unclear_field(&self, format: &ValueFormat) -> Option<String> {
        self.bad_fields(format).first().map(BadField::explained)
    }

    /// The fields of a result that cannot be decoded.
    fn bad_fields(&self, format: &ValueFormat) -> &[BadField<'a>] {
        match self.view(format) {
            Some(DecodedView::Document(_, _, bad_fields)) if format.state.is_result() => bad_fields,
            _ => &[],
        }
    }

    /// True if the unread rest decides whether the value can be decoded this way at all.
    pub(super) fn is_undecided(&self, format: &ValueFormat) -> bool {
        matches!(self.view(format), Some(DecodedView::Nothing))
    }

    /// The encoding of the value if it is a document to some format.
    pub(super) fn document_encoding(&self) -> Option<Encoding> {
        for (decoding, view) in &self.views {
            if matches!(view, DecodedView::Document(..)) {
                return Some(decoding.value.encoding);
            }
        }
        None
    }

    /// The encoding that is never decoded, if every format has it.
    pub(super) fn shown_only(&self) -> Option<Encoding> {
        let mut encodings = self.views.iter().map(|(decoding, _)| decoding.value.encoding);
        let first = encodings.next().filter(|encoding| encoding.is_shown_only())?;
        if encodings.all(|encoding| encoding == first) { Some(first) } else { None }
    }

    /// True if the value is, or begins as, an object or an array of some encoding, possibly damaged.
    pub(super) fn begin_document(&self) -> bool {
        self.views.iter().any(|(decoding, view)| match view {
            DecodedView::Document(document, ..) => {
                matches!(document, Json::Object(_) | Json::Array(_) | Json::Raw(_))
            }
            DecodedView::Unreadable { begins_so, .. } => {
                decoding.value.encoding.has_fields() && *begins_so
            }
            DecodedView::Text(..) | DecodedView::Nothing => false,
        })
    }

    /// The reading of a value that cannot be decoded, or of which a field cannot; `None` if it can.
    ///
    /// A value that does not even begin as one of these formats is not a damaged one: another
    /// program wrote it.
    pub(super) fn rejected(self) -> Option<Reading> {
        // If one decoding yields a document, it does not matter that the others fail.
        let is_document = self.document_encoding().is_some();
        let mut of_another_program = None;
        for (_, view) in self.views {
            match view {
                DecodedView::Unreadable { why, begins_so } if !is_document => {
                    if begins_so {
                        return Some(Reading::Unreadable(why));
                    }
                    of_another_program = of_another_program.or(Some(why));
                }
                DecodedView::Document(_, _, bad_fields) => {
                    if let Some(bad) = bad_fields.iter().find(|bad| bad.is_damaged) {
                        return Some(Reading::Unreadable(bad.explained()));
                    }
                }
                _ => {}
            }
        }
        let why = of_another_program?;
        Some(Reading::Unrecognised { why, is_cut: false })
    }

    fn view(&self, format: &ValueFormat) -> Option<&DecodedView<'a>> {
        let (_, view) =
            self.views.iter().find(|(decoding, _)| is_same(decoding, &format.decoding))?;
        Some(view)
    }
}

/// True if two formats share a decoding. Most often it is the decoding of the same format.
fn is_same(one: &Decoding, other: &Decoding) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// The view of a value whose stored bytes begin with `head`.
fn view<'a>(
    decoding: &'a Decoding,
    plain: &'a Result<Plain<'a>, String>,
    head: &[u8],
) -> DecodedView<'a> {
    let Plain { bytes, whole } = match plain {
        Ok(plain) if plain.bytes.is_empty() && !plain.whole => return DecodedView::Nothing,
        Ok(plain) => plain,
        Err(why) => {
            let begins_so = codec::begins_so(&decoding.value, head);
            return DecodedView::Unreadable { why: why.clone(), begins_so };
        }
    };
    if !decoding.value.encoding.has_fields() {
        return DecodedView::Text(bytes, *whole);
    }
    match parse(decoding.value.encoding, bytes, *whole) {
        Ok(ParsedDocument { document, flaw }) => {
            let mut bad_fields = Vec::new();
            if let Some(why) = flaw {
                bad_fields.push(BadField { path: "", why, is_damaged: false });
            }
            with_fields(decoding, document, *whole, bad_fields)
        }
        Err(why) => {
            let begins_so = decoding.value.encoding.begins_so(bytes);
            DecodedView::Unreadable { why, begins_so }
        }
    }
}

/// A document, after those of its fields that contain encoded values are decoded.
fn with_fields<'a>(
    decoding: &'a Decoding,
    document: Json<'a>,
    whole: bool,
    mut bad_fields: Vec<BadField<'a>>,
) -> DecodedView<'a> {
    if decoding.inside.is_empty() {
        return DecodedView::Document(document, whole, bad_fields);
    }
    let mut document = document.into_owned();
    for (path, decoder) in &decoding.inside {
        let is_damaged = match document.pointer(path) {
            Some(Json::String(text)) => !text.is_empty(),
            Some(Json::Bytes(bytes)) => !bytes.is_empty(),
            _ => false,
        };
        match decode_field(&mut document, path, decoder, whole) {
            Ok(None) => {}
            Ok(Some(flaw)) => bad_fields.push(BadField { path, why: flaw, is_damaged: false }),
            Err(why) => bad_fields.push(BadField { path, why, is_damaged }),
        }
    }
    DecodedView::Document(document, whole, bad_fields)
}

/// The fields of a hash as members of an object.
fn fields(hash: &Hash) -> Json<'_> {
    let mut members = Vec::with_capacity(hash.fields.len());
    for field in &hash.fields {
        members.push((String::from_utf8_lossy(&field.name), member(field)));
    }
    Json::Object(members)
}

fn member(field: &Field) -> Json<'_> {
    match std::str::from_utf8(&field.head) {
        Ok(text) => Json::String(Cow::Borrowed(text)),
        // The last character may be truncated.
        Err(error) if !field.is_whole() && error.error_len().is_none() => {
            Json::String(String::from_utf8_lossy(&field.head[..error.valid_up_to()]))
        }
        Err(_) => Json::Bytes(Cow::Borrowed(&field.head)),
    }
}

/// A document, and why other programs may fail to decode it.
struct ParsedDocument<'a> {
    document: Json<'a>,
    flaw: Option<String>,
}

/// Parses a document.
fn parse(encoding: Encoding, bytes: &[u8], whole: bool) -> Result<ParsedDocument<'_>, String> {
    let document = match encoding {
        Encoding::Msgpack => {
            packed::msgpack(bytes, whole).map_err(|why| format!("not MessagePack: {why}"))
        }
        Encoding::Php => {
            packed::php(bytes, whole).map_err(|why| format!("not what PHP serializes: {why}"))
        }
        Encoding::Newtonsoft => {
            packed::newtonsoft(bytes, whole).map_err(|why| format!("not JSON: {why}"))
        }
        _ => {
            if let Some(document) = json::plain(bytes, whole) {
                return Ok(ParsedDocument { document, flaw: None });
            }
            let document = json_prefix::parse_with_care(bytes, whole)
                .map_err(|why| format!("not JSON: {why}"))?;
            let is_standard = !whole || json_prefix::is_standard(bytes);
            let flaw = if is_standard { None } else { Some(NOT_STANDARD.to_owned()) };
            return Ok(ParsedDocument { document, flaw });
        }
    }?;
    Ok(ParsedDocument { document, flaw: None })
}

/// Why a service may fail on JSON that its scripts can read.
const NOT_STANDARD: &str = "JSON that Redis scripts read, but not JSON by the standard";

/// Replaces a field by its decoded content. Returns why other programs may fail to decode it.
fn decode_field(
    document: &mut Json<'static>,
    path: &str,
    decoder: &Decoder,
    whole: bool,
) -> Result<Option<String>, String> {
    let bytes = match document.pointer(path) {
        Some(Json::String(text)) => text.into_owned().into_bytes(),
        Some(Json::Bytes(bytes)) => bytes.into_owned(),
        // There is nothing to decode. The format decides whether the field may be missing or null.
        None | Some(Json::Null) => return Ok(None),
        Some(_) => return Err("it is not a text".to_owned()),
    };
    let plain = undo(&decoder.codecs, &bytes, whole)?;
    if plain.bytes.is_empty() && !plain.whole {
        return Ok(None);
    }
    let mut flaw = None;
    let decoded = if decoder.encoding.has_fields() {
        let parsed = parse(decoder.encoding, &plain.bytes, plain.whole)?;
        flaw = parsed.flaw;
        parsed.document.into_owned()
    } else {
        text(&plain.bytes)
    };
    document.put(path, decoded);
    Ok(flaw)
}

fn text(bytes: &[u8]) -> Json<'static> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Json::String(text.to_owned().into()),
        Err(_) => Json::Bytes(bytes.to_vec().into()),
    }
}
