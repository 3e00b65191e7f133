//! Telling a slot's value: which of the schema's cases it is, and what it holds.

mod fields;
mod fit;
mod form;
mod reading;
mod stored;
#[cfg(test)]
mod tests;

use self::fields::{Source, decode};
use self::fit::{Fit, fits};
use super::json_prefix;
use super::observation::Content;
use crate::domain::schema::{Encoding, Schema, State, ValueCase};

pub(crate) use self::form::Form;
pub use self::reading::{Decoded, Reading};
pub use self::stored::Stored;

pub fn read(schema: &Schema, slot: usize, content: &Content) -> Reading {
    let head = match content {
        Content::Absent => return Reading::Absent,
        Content::Other(kind) => return Reading::WrongType(kind.clone()),
        Content::Text { head, .. } => head,
    };
    let whole = content.is_whole();
    let cases = || schema.values.iter().enumerate().filter(|(_, case)| case.slot == slot);
    let wants_json = cases().any(|(_, case)| case.encoding == Encoding::Json);
    let json = wants_json.then(|| json_prefix::parse(head, whole));
    let source = |case: &ValueCase| match (case.encoding, &json) {
        (Encoding::Text, _) => Some(Source { head, whole, document: None }),
        (Encoding::Json, Some(Ok(document))) => Some(Source { head, whole, document: Some(document) }),
        (Encoding::Json, _) => None,
    };
    let mut told = Told::default();
    for (index, case) in cases() {
        let Some(source) = source(case) else { continue };
        if let Some(form) = told.hear(schema, case, index, source) {
            return Reading::Value(Box::new(decode(case, index, form, source)));
        }
    }
    if !told.open.is_empty() {
        return Reading::Undecided;
    }
    if let Some((index, form)) = told.other {
        let case = &schema.values[index];
        if let Some(source) = source(case) {
            return Reading::Value(Box::new(decode(case, index, form, source)));
        }
    }
    match (told.part, json) {
        (Some(why), _) => Reading::Foreign { why, is_part: true },
        (None, Some(Err(why))) => Reading::Unreadable(format!("not JSON: {why}")),
        (None, Some(Ok(_))) => Reading::Foreign { why: "JSON of another shape".to_owned(), is_part: false },
        (None, None) => Reading::Foreign { why: "not one of the words the schema knows".to_owned(), is_part: false },
    }
}

/// What the cases of a slot say of a value that none of them has claimed yet.
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
    fn hear(&mut self, schema: &Schema, case: &ValueCase, index: usize, source: Source<'_>) -> Option<Form> {
        let fit = fits(case, source);
        if fit == Fit::No {
            return None;
        }
        match Form::of(schema, case, source.document, source.whole) {
            Form::Foreign(why) if fit == Fit::Yes => _ = self.other.get_or_insert((index, Form::Foreign(why))),
            Form::Foreign(why) => _ = self.part.get_or_insert(why),
            form if fit == Fit::Yes && self.open.iter().all(|state| *state == case.state) => return Some(form),
            _ => self.open.push(case.state),
        }
        None
    }
}

/// True when a closed form of the schema reads what stands at one of its Redis keys as a result.
pub(crate) fn is_closed_result(schema: &Schema, slot: usize, content: &Content) -> bool {
    let Content::Text { head, .. } = content else { return false };
    let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let may_be = |case: &ValueCase| match &case.tests.equals {
        Some(equals) => head == equals,
        None => is_object && case.closed.is_some(),
    };
    let results = || schema.values.iter().filter(|case| case.slot == slot && case.state == State::Completed);
    results().any(may_be)
        && match read(schema, slot, content) {
            Reading::Value(value) => {
                let case = &schema.values[value.case];
                case.state == State::Completed && case.is_closed() && !value.form.is_foreign()
            }
            _ => false,
        }
}
