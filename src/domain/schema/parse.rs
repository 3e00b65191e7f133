//! Reading a `schema.toml`: every name resolved, every error with its line.

mod closed_form;
mod format;
mod keys;
mod names;
mod opening;
mod shadow;
mod steps;
#[cfg(test)]
mod tests;
mod unread;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use self::names::Names;
use super::key_hash::KeyHash;
use super::location::{AllChecked, At as _, Checked, Wrong, all, wrong};
use super::model::{Origin, Schema, Script};
use super::prefix::Prefixes;
use super::raw::{RawKeys, RawSchema, RawStep, RawValue};
use super::steps::{Meaning, Step};
use super::ttl::FOR_EVER;
use super::value_template::Place;
use super::write_format::WriteFormat;

/// What a reply of begin may mean, the first of which one reply must have.
const BEGINS: [Meaning; 5] = [Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];

/// What is wrong with a schema, and on which line of which file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SchemaError {
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The text of a schema before it is read.
pub struct SchemaSource<'a> {
    pub(crate) file: &'a str,
    pub(crate) toml: &'a str,
    /// The file as JSON, for the built-in schemas: JSON is read many times faster, and the TOML only to find a line.
    pub(crate) json: Option<&'a str>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) origin: Origin,
    pub(crate) prefixes: Prefixes<'a>,
}

/// Reads and checks a schema.
///
/// # Errors
/// All that is wrong, each with its line, in the order of the lines; one thing at least.
pub(crate) fn parse_all(source: SchemaSource<'_>) -> Result<Schema, Vec<SchemaError>> {
    let SchemaSource { file, toml, json, scripts, origin, prefixes } = source;
    let error = |line, message| SchemaError { file: file.to_owned(), line, message };
    let raw: RawSchema = match json {
        Some(json) => serde_json::from_str(json).map_err(|wrong| vec![error(1, wrong.to_string())])?,
        None => toml::from_str(toml).map_err(|wrong| {
            let all = unread::errors(toml, wrong).into_iter();
            all.map(|(line, message)| error(line, message)).collect::<Vec<_>>()
        })?,
    };
    let scripts = scripts.into_iter().map(|script| (script.name.clone(), script)).collect();
    resolve(raw, scripts, prefixes, origin).map_err(|found| {
        let mut all: Vec<_> = found.into_iter().map(|wrong| error(wrong.line(toml), wrong.told())).collect();
        all.sort_by_key(|error| error.line);
        all
    })
}

/// Reads and checks a schema.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(source: SchemaSource<'_>) -> Result<Schema, SchemaError> {
    let file = source.file.to_owned();
    let none = || SchemaError { file, line: 1, message: "it cannot be read".to_owned() };
    parse_all(source).map_err(|all| all.into_iter().next().unwrap_or_else(none))
}

fn resolve(
    raw: RawSchema,
    scripts: BTreeMap<String, Script>,
    prefixes: Prefixes<'_>,
    origin: Origin,
) -> AllChecked<Schema> {
    all(check_head(&raw))?;
    let hash = all(key_hash(&raw.keys).at("keys"))?;
    let mut places = all(keys::resolve(&raw, prefixes).at("keys"))?;
    let (prefix, keys) = places.remove(0);
    let mut names =
        Names { format: raw.format, scripts, keys, values: Vec::new(), broken: Vec::new(), unset: Vec::new() };
    let states: Vec<_> = raw.value.iter().map(|value| value.state).collect();
    let mut found = forms(&mut names, raw.value);
    let mut hear = |wrong: Vec<Wrong>| found.extend(wrong);
    let ttls = all(format::ttls(&raw.ttl, &states).at("ttl"));
    let (lock_ttl, result_ttl) = ttls.map_err(&mut hear).unwrap_or_default();
    let write = raw.write.unwrap_or_default();
    let _ = all(format::written(&write, lock_ttl, result_ttl)).map_err(&mut hear);
    names.unset = unset(&write, lock_ttl, result_ttl);
    let steps = [raw.begin, raw.renew, raw.complete, raw.release];
    let [begin, renew, complete, release] = all_steps(&names, steps, hear);
    if !found.is_empty() {
        return Err(found);
    }
    Ok(Schema {
        format: names.format,
        name: raw.name,
        summary: raw.summary,
        older_release_of: raw.older_release_of,
        keys: names.keys,
        takes_prefix: prefix.place.refusal().is_none(),
        prefix,
        other_places: places,
        is_elsewhere: false,
        key_hash: hash,
        lock_ttl,
        result_ttl,
        stated: Vec::new(),
        values: names.values,
        write,
        begin,
        complete,
        renew,
        release,
        behavior: raw.service,
        scripts: names.scripts,
        origin,
    })
}

/// The steps that there are, in the order of a record's life; `hear` is told what is wrong with those that are left out.
fn all_steps(names: &Names, raw: [Option<RawStep>; 4], mut hear: impl FnMut(Vec<Wrong>)) -> [Option<Step>; 4] {
    let mut step = |raw: Option<_>, name, meanings: &[Meaning]| {
        raw.and_then(|raw| steps::resolve(names, raw, name, meanings).at(name).map_err(&mut hear).ok())
    };
    let [begin, renew, complete, release] = raw;
    [
        step(begin, "begin", &BEGINS),
        step(renew, "renew", &[Meaning::Renewed, Meaning::Refused]),
        step(complete, "complete", &[Meaning::Stored, Meaning::Refused]),
        step(release, "release", &[Meaning::Released, Meaning::Refused]),
    ]
}

fn key_hash(keys: &RawKeys) -> Checked<Option<KeyHash>> {
    keys.hash.as_deref().map(|text| KeyHash::parse(text).or_else(wrong).at("hash")).transpose()
}

/// Adds the forms to the names, and gives what is wrong with those that are left out.
fn forms(names: &mut Names, raw: Vec<RawValue>) -> Vec<Wrong> {
    let mut found = Vec::new();
    for (index, value) in raw.into_iter().enumerate() {
        let name = value.name.clone();
        match values::resolve(names, value).at(index).at("value") {
            Ok(case) => names.values.push(case),
            Err(wrong) => {
                found.push(wrong);
                names.broken.push(name);
            }
        }
    }
    found
}

/// The placeholders that stand for nothing.
fn unset(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Vec<Place> {
    let given = [
        (Place::LockTtl, lock_ttl != FOR_EVER),
        (Place::ResultTtl, result_ttl != FOR_EVER),
        (Place::LockValue, write.lock_value.is_some()),
        (Place::ResultValue, write.result_value.is_some()),
    ];
    given.into_iter().filter_map(|(place, is_given)| (!is_given).then_some(place)).collect()
}

fn check_head(raw: &RawSchema) -> Checked<()> {
    format::check(raw)?;
    if raw.name.is_empty() || !raw.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return wrong("a schema's name is made of letters, digits, `-`, `_` and `.`").at("name");
    }
    Ok(())
}
