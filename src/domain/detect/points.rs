//! How much a value of a schema's form says for the schema. A word that the service writes says most, a field something,
//! text of any kind nothing.

use crate::domain::schema::{Schema, ValueFormat};

/// A word of the service's own in a field, or as the whole value.
const WORD: f64 = 3.0;

/// A number or a truth value that a field has to have.
const OTHER_VALUE: f64 = 2.0;

/// A field that is there.
const FIELD: f64 = 1.0;

/// The service's own words in the Redis key.
const KEY: f64 = 2.0;

/// Words of that many characters are nobody else's in the middle of a Redis key.
const TELLING: usize = 4;

/// Points of a value of this case.
pub(super) fn of_value(case: &ValueFormat) -> f64 {
    let word = case
        .tests
        .equals
        .as_ref()
        .map_or(0.0, |word| if word.len() < TELLING { FIELD } else { WORD });
    let values = case
        .tests
        .fields
        .iter()
        .map(|(_, value)| if value.is_string() { WORD } else { OTHER_VALUE });
    let required =
        case.closed.as_ref().map_or(0, |closed| closed.paths(|member| member.is_required).len());
    let fields = required.max(case.tests.has.len());
    word + values.sum::<f64>() + FIELD * count(fields)
}

/// Points of Redis keys with this role in a schema, whose prefix is the one that the schema is read with here. `is_default`
/// says that the schema has this prefix by itself.
pub(super) fn of_keys(schema: &Schema, role: usize, is_default: bool) -> f64 {
    let words = schema.keys[role].template.specificity().saturating_sub(schema.prefix.text.len());
    let is_in_front = is_default || schema.prefix.text.is_empty();
    match words {
        0 if is_default && !schema.prefix.text.is_empty() => KEY,
        0 => 0.0,
        _ if is_in_front || words >= TELLING => KEY,
        _ => FIELD,
    }
}

#[expect(clippy::cast_precision_loss, reason = "no form has so many fields")]
fn count(fields: usize) -> f64 {
    fields as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{catalog, schema};

    fn value(name: &str, case: &str) -> f64 {
        of_value(schema(name).values.iter().find(|value| value.name == case).unwrap())
    }

    #[test]
    fn words_say_more_than_fields_and_any_text_nothing() {
        assert!(
            (value("express", "in-progress") - 4.0).abs() < f64::EPSILON,
            "its word, and the field that has the word"
        );
        assert!(value("express", "completed") > value("express", "in-progress"));
        assert!(
            (value("go-chi", "in-progress") - 3.0).abs() < f64::EPSILON,
            "a number says less than a word"
        );
        assert!((value("event-consumer", "held") - 1.0).abs() < f64::EPSILON, "`1` is anybody's");
        assert!(value("event-consumer", "stored").abs() < f64::EPSILON, "any text");
    }

    #[test]
    fn a_key_speaks_for_whom_its_words_are() {
        let express = schema("express");
        assert!((of_keys(&express, 0, true) - KEY).abs() < f64::EPSILON);
        assert!(of_keys(&schema("go-chi"), 0, true).abs() < f64::EPSILON, "it has no words");
        let chi = catalog(&["go-chi"], Some("pay:")).chosen()[0].clone();
        assert!(of_keys(&chi, 0, false).abs() < f64::EPSILON, "a prefix that was guessed");
    }
}
