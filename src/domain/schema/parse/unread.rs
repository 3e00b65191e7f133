//! All that a `schema.toml` has which its types do not know: a parser stops at the first, so each part is read by itself.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::domain::schema::location::line_of;
use crate::domain::schema::raw::{RawCall, RawReply, RawStep, RawValue};

const STEPS: [&str; 4] = ["begin", "renew", "complete", "release"];

/// The lines and messages of all parts that cannot be read; `first` is the error of the whole.
pub(super) fn errors(toml: &str, first: toml::de::Error) -> Vec<(usize, String)> {
    let mut found = DeTable::parse(toml).map(|table| parts(table.get_ref())).unwrap_or_default();
    found.push(first);
    let place = |error: &toml::de::Error| line_of(toml, error.span().map_or(0, |span| span.start));
    let mut all: Vec<_> = found.iter().map(|error| (place(error), error.message().to_owned())).collect();
    all.sort();
    all.dedup();
    all
}

fn parts(table: &DeTable<'_>) -> Vec<toml::de::Error> {
    let values = table.get("value").into_iter().flat_map(items).filter_map(wrong::<RawValue>);
    let steps = STEPS.iter().filter_map(|name| table.get(*name)).flat_map(step);
    values.chain(steps).collect()
}

/// What is wrong with a step: with its replies, else with the calls, else with the step.
fn step(step: &Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    let calls = || step.get_ref().get("call").into_iter().flat_map(items);
    let call = |call: &Spanned<DeValue<'_>>| {
        let replies = call.get_ref().get("replies").into_iter().flat_map(items);
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
