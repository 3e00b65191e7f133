//! All that a `schema.toml` has which its types do not know: a parser stops at the first, so each part is read by itself.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::domain::schema::location::{CALL, REPLIES, in_field, line_of};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep, RawValue};

const STEPS: [&str; 4] = ["begin", "renew", "complete", "release"];

/// The lines and messages of all parts that cannot be read; `first` is the error of the whole.
pub(super) fn errors(toml: &str, first: toml::de::Error) -> Vec<(usize, String)> {
    let table = DeTable::parse(toml).map(Spanned::into_inner).unwrap_or_default();
    let found = parts(&table).into_iter().chain([first]);
    let told = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let field = calls(&table).find_map(|call| field_at(call, at)).unwrap_or_default();
        (line_of(toml, at), in_field(error.message(), &field))
    };
    let mut all: Vec<_> = found.map(told).collect();
    all.sort();
    all.dedup();
    all
}

fn parts(table: &DeTable<'_>) -> Vec<toml::de::Error> {
    let values = table.get("value").into_iter().flat_map(items).filter_map(wrong::<RawValue>);
    let steps = STEPS.iter().filter_map(|name| table.get(*name)).flat_map(step);
    values.chain(steps).collect()
}

/// The calls of all steps.
fn calls<'a, 'd>(table: &'a DeTable<'d>) -> impl Iterator<Item = &'a Spanned<DeValue<'d>>> {
    let steps = STEPS.iter().filter_map(|name| table.get(*name));
    steps.flat_map(|step| step.get_ref().get(CALL)).flat_map(items)
}

/// The keys that lead to the innermost value at this place of the file; `None` where the place is in no value of these.
fn field_at<'a>(value: &'a Spanned<DeValue<'_>>, at: usize) -> Option<Vec<&'a str>> {
    let is_there = |value: &Spanned<DeValue<'_>>| value.span().contains(&at);
    match value.get_ref() {
        DeValue::Table(fields) => {
            let (key, inner) = fields.iter().find(|(_, value)| is_there(value))?;
            let within = field_at(inner, at).unwrap_or_default();
            Some([&[key.get_ref().as_ref()][..], &within].concat())
        }
        DeValue::Array(items) => field_at(items.iter().find(|value| is_there(value))?, at),
        _ => None,
    }
}

/// What is wrong with a step: with its replies, else with the calls, else with the step.
fn step(step: &Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    let calls = || step.get_ref().get(CALL).into_iter().flat_map(items);
    let call = |call: &Spanned<DeValue<'_>>| {
        let replies = call.get_ref().get(REPLIES).into_iter().flat_map(items);
        let found: Vec<_> = replies.filter_map(wrong::<RawReply>).collect();
        if found.is_empty() { wrong::<RawCall>(call).into_iter().collect() } else { found }
    };
    let found: Vec<_> = calls().flat_map(call).collect();
    if found.is_empty() { wrong::<RawStep>(step).into_iter().collect() } else { found }
}

fn items<'a, 'd>(value: &'a Spanned<DeValue<'d>>) -> impl Iterator<Item = &'a Spanned<DeValue<'d>>> {
    value.get_ref().as_array().into_iter().flat_map(|array| array.iter())
}

/// Why a part cannot be read, where it cannot.
fn wrong<T: for<'de> Deserialize<'de>>(part: &Spanned<DeValue<'_>>) -> Option<toml::de::Error> {
    T::deserialize(ValueDeserializer::from(part.clone())).err()
}
