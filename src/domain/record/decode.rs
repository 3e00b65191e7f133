//! Telling the value of a Redis key: which of the schema's cases it is, and what it holds.

mod fields;
mod fit;
mod form;
mod reading;
mod shown;
mod stored;
#[cfg(test)]
mod tests;
mod views;

use self::fields::{FieldSource, decode};
use self::fit::{Fit, fits};
use self::views::Views;
use super::json::Json;
use super::observation::{Content, Observation, SeenKey};
use crate::domain::schema::{Encoding, Schema, State, ValueFormat};

pub(crate) use self::form::Form;
pub use self::reading::{Decoded, Reading};
pub use self::stored::Stored;

pub fn read(schema: &Schema, role: usize, content: &Content) -> Reading {
    let head = match content {
        Content::Absent => return Reading::Absent,
        Content::Text { head, .. } => &head[..],
        Content::Hash(_) | Content::Other(_) => &[],
    };
    let kind = content.other_type();
    let is_of_type = |case: &ValueFormat| case.role == role && case.encoding().other_type() == kind;
    let cases = || schema.values.iter().enumerate().filter(|(_, case)| is_of_type(case));
    if cases().next().is_none() {
        return Reading::WrongType(kind.unwrap_or("string").to_owned());
    }
    if let Content::Hash(hash) = content
        && hash.fields.is_empty()
        && hash.count > 0
    {
        return Reading::Foreign {
            why: format!("a hash of {} fields, too many to be a record's", hash.count),
            is_part: false,
        };
    }
    let undone = views::undone(cases().map(|(_, case)| case), head, content.is_whole());
    let views = match content {
        Content::Hash(hash) => Views::of_hash(&undone, hash),
        _ => Views::of(&undone),
    };

    let mut told = Told::default();
    for (index, case) in cases() {
        let Some(source) = views.source(case) else {
            told.open.extend(views.is_open(case).then_some(case.state));
            continue;
        };
        if let Some(form) = told.hear(schema, case, index, source) {
            // What was not read may hold the moment at which the value ends.
            let may_lapse =
                case.expires_at.is_some() && !source.whole && source.expires_ms(case).is_none();
            return if may_lapse {
                Reading::Undecided
            } else {
                Reading::Value(Box::new(decode(case, index, form, source)))
            };
        }
    }
    told.of_no_case(schema, views)
}

/// What the cases of a role say of a value that none of them has claimed yet.
#[derive(Default)]
struct Told {
    /// The states of the cases that what was not read may yet decide for.
    open: Vec<State>,
    /// The first case that it is of, though it has not its form.
    other: Option<(usize, Form)>,
    /// Why it has not the form of a case that it may be of.
    part: Option<String>,
}

impl Told {
    /// Takes in what one more case says; gives the form of the value when the case claims the value.
    fn hear(
        &mut self,
        schema: &Schema,
        case: &ValueFormat,
        index: usize,
        source: FieldSource<'_>,
    ) -> Option<Form> {
        let fit = fits(case, source);
        if fit == Fit::No {
            return None;
        }
        match Form::of(schema, case, source.document, source.whole) {
            Form::Foreign(why) if fit == Fit::Yes => {
                _ = self.other.get_or_insert((index, Form::Foreign(why)))
            }
            Form::Foreign(why) => _ = self.part.get_or_insert(why),
            form if fit == Fit::Yes && self.open.iter().all(|state| *state == case.state) => {
                return Some(form);
            }
            _ => self.open.push(case.state),
        }
        None
    }

    /// What a value is that none of the cases has claimed.
    fn of_no_case(self, schema: &Schema, views: Views<'_>) -> Reading {
        if !self.open.is_empty() {
            return Reading::Undecided;
        }
        if let Some((index, form)) = self.other {
            let case = &schema.values[index];
            if let Some(source) = views.source(case) {
                return Reading::Value(Box::new(decode(case, index, form, source)));
            }
        }
        if let Some(why) = self.part {
            return Reading::Foreign { why, is_part: true };
        }
        let is_hash = schema.values.iter().all(|case| case.encoding() == Encoding::Hash);
        let is_document = views.is_document();
        match views.unreadable_because() {
            Some(why) => Reading::Unreadable(why),
            None if is_hash => {
                Reading::Foreign { why: "a hash of other fields".to_owned(), is_part: false }
            }
            None if is_document => {
                Reading::Foreign { why: "JSON of another shape".to_owned(), is_part: false }
            }
            None => Reading::Foreign {
                why: "not one of the words the schema knows".to_owned(),
                is_part: false,
            },
        }
    }
}

/// A value as its form sees it, where that is a document; `None` for any other, and for what is of no form.
pub(crate) fn document(schema: &Schema, role: usize, content: &Content) -> Option<Json<'static>> {
    let reading = read(schema, role, content);
    let case = &schema.values[reading.decoded()?.case];
    let head = if let Content::Text { head, .. } = content { &head[..] } else { &[] };
    let undone = views::undone([case].into_iter(), head, content.is_whole());
    let views = match content {
        Content::Hash(hash) => Views::of_hash(&undone, hash),
        _ => Views::of(&undone),
    };
    views.source(case)?.document.map(|document| document.by_ref().into_owned())
}

/// Reads every value as it is at the moment of the look: one whose own moment is past is there no more, or reclaimable.
pub fn read_all(schema: &Schema, seen: &Observation) -> Vec<Reading> {
    let read = |(role, seen_key): (usize, &SeenKey)| {
        read_at(schema, role, &seen_key.content, seen.server_ms)
    };
    seen.keys.iter().enumerate().map(read).collect()
}

/// Reads a value at a time in milliseconds since the epoch; `None` where nobody knows the time.
pub(crate) fn read_at(
    schema: &Schema,
    role: usize,
    content: &Content,
    now_ms: Option<u64>,
) -> Reading {
    let mut reading = read(schema, role, content);
    if let Reading::Value(value) = &mut reading
        && let (Some(expires_ms), Some(now_ms)) = (value.expires_ms, now_ms)
        && let Some(expires_at) = &schema.values[value.case].expires_at
    {
        value.lapsed = (expires_ms <= now_ms).then_some(expires_at.past);
    }
    reading
}

/// Whether a closed form of a schema reads a content as a value of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedValue {
    Yes,
    /// The rest of the value, which was not read, decides.
    Undecided,
    No,
}

/// Whether a closed form of the schema reads the content of one of its Redis keys as a value of this state.
pub(crate) fn closed_value(
    schema: &Schema,
    role: usize,
    content: &Content,
    state: State,
) -> ClosedValue {
    let head = if let Content::Text { head, .. } = content { &head[..] } else { &[] };
    let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let may_be = |case: &ValueFormat| match &case.tests.equals {
        Some(equals) => head == &equals[..],
        None => case.closed.is_some() && (is_object || !case.reads_json_as_it_stands()),
    };
    let of_state = || schema.values.iter().filter(|case| case.role == role && case.state == state);
    if !of_state().any(may_be) {
        return ClosedValue::No;
    }
    match read(schema, role, content) {
        Reading::Value(value) => {
            let case = &schema.values[value.case];
            let is_closed = case.state == state && case.is_closed() && !value.form.is_foreign();
            if is_closed { ClosedValue::Yes } else { ClosedValue::No }
        }
        Reading::Undecided if may_become_closed(schema, role, content, state) => {
            ClosedValue::Undecided
        }
        _ => ClosedValue::No,
    }
}

/// True if the beginning of a value may be that of a value of this state, by a closed form.
fn may_become_closed(schema: &Schema, role: usize, content: &Content, state: State) -> bool {
    let Content::Text { head, .. } = content else { return false };
    let is_sought =
        |case: &&ValueFormat| case.role == role && case.state == state && case.is_closed();
    let cases = || schema.values.iter().filter(is_sought);
    let undone = views::undone(cases(), head, content.is_whole());
    let views = Views::of(&undone);
    for case in cases() {
        match views.source(case) {
            None if views.is_open(case) => return true,
            None => {}
            Some(source) => {
                let form = Form::of(schema, case, source.document, source.whole);
                if fits(case, source) != Fit::No && !form.is_foreign() {
                    return true;
                }
            }
        }
    }
    false
}
