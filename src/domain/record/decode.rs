//! Decoding the value of a Redis key: its format, which is one of the schema's value formats, and
//! its fields.
//!
//! The codecs of each format are undone and the document inside is parsed (`views`). Then each
//! format is tested in the order of the schema (`fit`, `conformance`), and the first one that fits
//! decodes the fields (`fields`).

mod conformance;
mod fields;
mod fit;
mod reading;
mod stored;
#[cfg(test)]
mod tests;
mod unclear;
mod views;

use self::fields::{FieldSource, decode_fields};
use self::fit::{Fit, fits, is_rejected};
use self::views::Views;
use super::json::Json;
use super::observation::{Content, Observation};
use crate::domain::schema::{Encoding, Schema, State, ValueFormat};

pub(crate) use self::conformance::Conformance;
use self::conformance::Deviation;
pub use self::reading::{Decoded, Reading};
pub use self::stored::Stored;

/// Decodes the value of the schema's Redis key with this index.
pub fn decode_value(schema: &Schema, key_index: usize, content: &Content) -> Reading {
    let head = match content {
        Content::Absent => return Reading::Absent,
        Content::Text { head, .. } => &head[..],
        Content::Hash(_) | Content::Other(_) => &[],
    };
    let kind = content.other_type();
    if formats_of(schema, key_index, kind).next().is_none() {
        return Reading::WrongType(kind.unwrap_or("string").to_owned());
    }
    // The fields of a hash that has too many of them are not read.
    if let Content::Hash(hash) = content
        && hash.fields.is_empty()
        && hash.count > 0
    {
        return Reading::Unrecognised {
            why: format!("a hash of {} fields, too many to be a record's", hash.count),
            is_cut: false,
        };
    }
    let formats = formats_of(schema, key_index, kind).map(|(_, format)| format);
    let without_codecs = views::without_codecs(formats, head, content.is_whole());
    let views = match content {
        Content::Hash(hash) => Views::of_hash(&without_codecs, hash),
        _ => Views::of(&without_codecs, head),
    };

    let mut tested = TestedFormats::default();
    for (index, format) in formats_of(schema, key_index, kind) {
        // A damaged or unusual document of the service is not the text that its lock is.
        if format.takes_any_text() && views.begin_document() && !writes_document(schema, format) {
            continue;
        }
        let Some(source) = views.source(format) else {
            // Too little was read to undo the codecs of this format, so the value may still have
            // it.
            if views.is_undecided(format) {
                tested.undecided.push(format.state);
            }
            continue;
        };
        let Some(conformance) = tested.test(schema, format, index, source) else { continue };
        // The service fails when it decodes the field, so it does not replay this value.
        if let Some(why) = views.undecodable(format) {
            return Reading::Unreadable(why);
        }
        // The unread rest may show that the value has a later format instead.
        if !source.whole && may_have_rival(schema, format, &views) {
            return Reading::Undecided;
        }
        // The unread rest may hold the time at which the value expires.
        if format.expires_at.is_some() && !source.whole && source.expires_ms(format).is_none() {
            return Reading::Undecided;
        }
        let decoded = decoded(schema, index, conformance, &views, source);
        return Reading::Value(Box::new(decoded));
    }
    // An empty text begins as every text does, so it is no damaged value of a format.
    if matches!(content, Content::Text { .. }) && head.is_empty() && content.is_whole() {
        return Reading::EmptyText;
    }
    tested.without_exact_format(schema, views, kind == Some("hash"))
}

/// The fields of a value of the format with this index.
fn decoded(
    schema: &Schema,
    index: usize,
    conformance: Conformance,
    views: &Views<'_>,
    source: FieldSource<'_>,
) -> Decoded {
    let format = &schema.values[index];
    // Each pointer into a member that is still text would read all of that text again.
    let opened;
    let mut source = source;
    if let Some(document) = source.document
        && !format.shared_parents.is_empty()
    {
        opened = document.with_opened(&format.shared_parents);
        source.document = Some(&opened);
    }
    let mut decoded = decode_fields(format, index, conformance, source);
    let why = views
        .unclear_field(format)
        .or_else(|| unclear::response_field(schema, format, source, &decoded));
    decoded.unclear_response = why.map(Into::into);
    decoded
}

/// True if the part of a value that was read may be the beginning of a rival of its format.
fn may_have_rival(schema: &Schema, format: &ValueFormat, views: &Views<'_>) -> bool {
    for index in &format.rivals {
        let rival = &schema.values[*index];
        if let Some(source) = views.source(rival)
            && may_fit(schema, rival, source)
        {
            return true;
        }
    }
    false
}

/// True if the part of a value that was read may be the beginning of a value of this format.
fn may_fit(schema: &Schema, format: &ValueFormat, source: FieldSource<'_>) -> bool {
    if fits(format, source) == Fit::No {
        return false;
    }
    let conformance = Conformance::of(schema, format, source.document, source.whole);
    !conformance.deviates() && !is_rejected(format, source.document, &conformance)
}

/// True if the values of this state that the schema writes begin as JSON does.
fn writes_document(schema: &Schema, format: &ValueFormat) -> bool {
    let write = &schema.write;
    let template = match format.state {
        State::InProgress => &write.lock_value,
        State::Failed if write.failed_value.is_some() => &write.failed_value,
        _ => &write.result_value,
    };
    let Some(template) = template else { return false };
    Encoding::Json.begins_so(&template.fill(|_| Vec::new()))
}

/// The formats at a Redis key for values of this type, with their indexes; `None` is a string.
fn formats_of<'a>(
    schema: &'a Schema,
    key_index: usize,
    kind: Option<&'a str>,
) -> impl Iterator<Item = (usize, &'a ValueFormat)> {
    let formats = schema.values.iter().enumerate();
    formats.filter(move |(_, format)| {
        format.key_index == key_index && format.encoding().other_type() == kind
    })
}

/// The results of the formats that were tested, for a value that has none of them so far.
#[derive(Default)]
struct TestedFormats {
    /// The states of the formats for which the unread rest decides.
    undecided: Vec<State>,
    /// The formats whose tests the value passes although its fields deviate.
    deviating: Vec<(usize, Deviation)>,
    /// Why the fields deviate from a format whose tests the value may yet pass.
    may_deviate: Option<String>,
}

impl TestedFormats {
    /// Tests one more format. Returns how far the value conforms to it, if the value has it.
    fn test(
        &mut self,
        schema: &Schema,
        format: &ValueFormat,
        index: usize,
        source: FieldSource<'_>,
    ) -> Option<Conformance> {
        let fit = fits(format, source);
        if fit == Fit::No {
            return None;
        }
        let conformance = Conformance::of(schema, format, source.document, source.whole);
        if is_rejected(format, source.document, &conformance) {
            return None;
        }
        match (fit, conformance) {
            (Fit::Yes, Conformance::Deviates(deviation)) => self.deviating.push((index, deviation)),
            (_, Conformance::Deviates(deviation)) => {
                if self.may_deviate.is_none() {
                    self.may_deviate = Some(deviation.why);
                }
            }
            // The value may still turn out to have an earlier format, of another state.
            (Fit::Yes, conformance)
                if self.undecided.iter().all(|state| *state == format.state) =>
            {
                return Some(conformance);
            }
            _ => self.undecided.push(format.state),
        }
        None
    }

    /// Keeps those of the formats with deviations that the value fits best.
    fn keep_nearest(&mut self, schema: &Schema) {
        let formats = &schema.values;
        keep_any(&mut self.deviating, |(index, _)| !formats[*index].tests.is_empty());
        keep_any(&mut self.deviating, |(_, deviation)| !deviation.lacks_field);
        if self.deviating.iter().any(|(_, deviation)| deviation.lacks_field) {
            return;
        }
        // A format that requires more fields, all of which the value has, says more of it.
        let required = |index: usize| match &formats[index].closed {
            Some(closed) => closed.paths(|member| member.is_required).len(),
            None => 0,
        };
        let most = self.deviating.iter().map(|(index, _)| required(*index)).max();
        self.deviating.retain(|(index, _)| Some(required(*index)) == most);
    }

    /// The reading of a value that no format fits exactly. It is the format that fits best with
    /// deviations, or else the reason why none fits.
    fn without_exact_format(mut self, schema: &Schema, views: Views<'_>, is_hash: bool) -> Reading {
        // The unread rest may still show that the value has one of these formats.
        if !self.undecided.is_empty() {
            return Reading::Undecided;
        }
        self.keep_nearest(schema);
        let state_of = |index: usize| schema.values[index].state;
        let mut states = self.deviating.iter().map(|(index, _)| state_of(*index));
        if let Some(first) = states.next()
            && states.any(|state| state != first)
        {
            return Reading::Ambiguous(several_reasons(schema, &self.deviating));
        }
        if let Some((index, deviation)) = self.deviating.into_iter().next() {
            let format = &schema.values[index];
            if let Some(source) = views.source(format) {
                if let Some(why) = field_of_another_state(schema, format, source) {
                    return Reading::Ambiguous(why);
                }
                let conformance = Conformance::Deviates(deviation);
                let decoded = decoded(schema, index, conformance, &views, source);
                return Reading::Value(Box::new(decoded));
            }
        }
        if let Some(why) = self.may_deviate {
            return Reading::Unrecognised { why, is_cut: true };
        }
        let why = if is_hash {
            "a hash of other fields".to_owned()
        } else if let Some(encoding) = views.document_encoding() {
            format!("{} of another shape", encoding.language())
        } else if let Some(encoding) = views.shown_only() {
            format!("not {}", encoding.language())
        } else {
            "not one of the words the schema knows".to_owned()
        };
        match views.rejected() {
            Some(reading) => reading,
            None => Reading::Unrecognised { why, is_cut: false },
        }
    }
}

/// Keeps the formats that pass the test, if any does.
fn keep_any(formats: &mut Vec<(usize, Deviation)>, passes: impl Fn(&(usize, Deviation)) -> bool) {
    if formats.iter().any(&passes) {
        formats.retain(passes);
    }
}

/// That a value has a field which its format does not have, and a format of another state has.
fn field_of_another_state(
    schema: &Schema,
    format: &ValueFormat,
    source: FieldSource<'_>,
) -> Option<String> {
    // The service goes by the values of these fields, whatever else there is.
    if !format.tests.fields.is_empty() {
        return None;
    }
    let Some(Json::Object(members)) = source.document else { return None };
    let own = format.closed.as_ref()?;
    for (name, _) in members {
        if own.has_member(name) {
            continue;
        }
        for other in &schema.values {
            let is_other = other.key_index == format.key_index && other.state != format.state;
            if is_other && other.closed.as_ref().is_some_and(|closed| closed.has_member(name)) {
                let (own, other) = (&format.name, &other.name);
                return Some(format!("`/{name}` is a field of `{other}`, and not of `{own}`"));
            }
        }
    }
    None
}

/// How a value deviates from each of these formats.
fn several_reasons(schema: &Schema, deviating: &[(usize, Deviation)]) -> String {
    let mut reasons = Vec::with_capacity(deviating.len());
    for (index, deviation) in deviating {
        reasons.push(format!("as `{}`, {}", schema.values[*index].name, deviation.why));
    }
    match deviating.split_first() {
        Some(((_, first), others)) if others.iter().all(|(_, other)| other.why == first.why) => {
            first.why.clone()
        }
        _ => reasons.join("; "),
    }
}

/// The document in a value, as the value's format decodes it; `None` if the value has no format, or
/// the format has no document.
pub(crate) fn document(
    schema: &Schema,
    key_index: usize,
    content: &Content,
) -> Option<Json<'static>> {
    let reading = decode_value(schema, key_index, content);
    let format = &schema.values[reading.decoded()?.format];
    let head = if let Content::Text { head, .. } = content { &head[..] } else { &[] };
    let without_codecs = views::without_codecs([format].into_iter(), head, content.is_whole());
    let views = match content {
        Content::Hash(hash) => Views::of_hash(&without_codecs, hash),
        _ => Views::of(&without_codecs, head),
    };
    let document = views.source(format)?.document?;
    Some(document.by_ref().into_owned())
}

/// Decodes the value of every Redis key as of the time of the read. A value whose contained expiry
/// has passed is absent, or reclaimable.
pub fn decode_all(schema: &Schema, seen: &Observation) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(seen.keys.len());
    for (key_index, key) in seen.keys.iter().enumerate() {
        readings.push(decode_at(schema, key_index, &key.content, seen.server_ms));
    }
    join_parts(schema, &mut readings);
    readings
}

/// Moves what the parts hold of a response into the result, so that the response is in one place.
/// Parts without a result hold nothing that a client gets.
fn join_parts(schema: &Schema, readings: &mut [Reading]) {
    let result_index = schema.result_key_index();
    let mut in_parts: Option<Stored> = None;
    // The parts follow the lock and the result.
    for reading in readings.iter_mut().skip(result_index + 1) {
        let Reading::Value(value) = reading else { continue };
        let Some(found) = value.response.take() else { continue };
        in_parts = Some(match in_parts {
            Some(earlier) => earlier.with(found),
            None => found,
        });
    }
    let Some(in_parts) = in_parts else { return };
    let Reading::Value(result) = &mut readings[result_index] else { return };
    if schema.values[result.format].state.is_result() {
        result.response = Some(match result.response.take() {
            Some(own) => own.with(in_parts),
            None => in_parts,
        });
    }
}

/// Decodes a value as of a time in milliseconds since the epoch; `None` if the time is unknown.
pub(crate) fn decode_at(
    schema: &Schema,
    key_index: usize,
    content: &Content,
    now_ms: Option<u64>,
) -> Reading {
    let mut reading = decode_value(schema, key_index, content);
    if let Reading::Value(value) = &mut reading
        && let Some(expires_ms) = value.expires_ms
        && let Some(now_ms) = now_ms
        && let Some(expires_at) = &schema.values[value.format].expires_at
        && expires_ms <= now_ms
    {
        value.past_expiry = Some(expires_at.past);
    }
    reading
}

/// Whether a content has a distinctive format ([`ValueFormat::is_distinctive`]) of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DistinctiveValue {
    Yes,
    /// The unread rest of the value decides.
    Undecided,
    No,
}

/// Whether the content of one of the schema's Redis keys has a distinctive format of this state.
pub(crate) fn distinctive_value(
    schema: &Schema,
    key_index: usize,
    content: &Content,
    state: State,
) -> DistinctiveValue {
    let head = if let Content::Text { head, .. } = content { &head[..] } else { &[] };
    // The first bytes rule out most values before they are decoded. That matters, because a scan
    // asks this of every value at a Redis key of another schema.
    let may_be = schema.values.iter().any(|format| {
        format.key_index == key_index && format.state == state && may_be_distinctive(format, head)
    });
    if !may_be {
        return DistinctiveValue::No;
    }
    match decode_value(schema, key_index, content) {
        Reading::Value(value) => {
            let format = &schema.values[value.format];
            let is_distinctive =
                format.state == state && format.is_distinctive() && !value.conformance.deviates();
            if is_distinctive { DistinctiveValue::Yes } else { DistinctiveValue::No }
        }
        Reading::Undecided if may_become_distinctive(schema, key_index, content, state) => {
            DistinctiveValue::Undecided
        }
        _ => DistinctiveValue::No,
    }
}

fn may_be_distinctive(format: &ValueFormat, head: &[u8]) -> bool {
    if let Some(equals) = &format.tests.equals {
        return head == &equals[..];
    }
    let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    format.closed.is_some() && (is_object || !format.reads_json_as_it_stands())
}

/// True if these bytes may be the beginning of a value with a distinctive format of this state.
fn may_become_distinctive(
    schema: &Schema,
    key_index: usize,
    content: &Content,
    state: State,
) -> bool {
    let Content::Text { head, .. } = content else { return false };
    let mut formats = Vec::new();
    for format in &schema.values {
        if format.key_index == key_index && format.state == state && format.is_distinctive() {
            formats.push(format);
        }
    }
    let without_codecs = views::without_codecs(formats.iter().copied(), head, content.is_whole());
    let views = Views::of(&without_codecs, head);
    for format in formats {
        let Some(source) = views.source(format) else {
            if views.is_undecided(format) {
                return true;
            }
            continue;
        };
        if may_fit(schema, format, source) {
            return true;
        }
    }
    false
}
