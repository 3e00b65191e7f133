//! Reading a `schema.toml`: every name resolved, every error with its line.

mod format_1;
mod keys;
mod steps;
mod strict;
mod symbol_table;
mod syntax_errors;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use self::symbol_table::SymbolTable;
use super::key_hash::KeyHash;
use super::location::{AllChecked, At as _, Checked, Wrong, all, wrong};
use super::model::{Schema, SchemaOrigin, Script};
use super::raw::{RawSchema, RawStep};
use super::redis_keys::Prefixes;
use super::steps::{Meaning, Step};
use super::ttl::{NO_TTL, TtlOf};
use super::value_format::{State, Timestamp};
use super::value_template::Placeholder;
use super::write_format::WriteFormat;

/// What the replies of each step may mean. One reply must have the first of its meanings.
const BEGIN: &[Meaning] =
    &[Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];
const RENEW: &[Meaning] = &[Meaning::Renewed, Meaning::Refused];
const COMPLETE: &[Meaning] = &[Meaning::Stored, Meaning::Refused];
const RELEASE: &[Meaning] = &[Meaning::Released, Meaning::Refused];

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
    pub(crate) origin: SchemaOrigin,
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
        Some(json) => {
            serde_json::from_str(json).map_err(|wrong| vec![error(1, wrong.to_string())])?
        }
        None => toml::from_str(toml).map_err(|wrong| {
            let found = syntax_errors::all(toml, wrong);
            found.into_iter().map(|(line, message)| error(line, message)).collect::<Vec<_>>()
        })?,
    };
    let scripts = scripts.into_iter().map(|script| (script.name.clone(), script)).collect();
    resolve(raw, scripts, prefixes, origin).map_err(|found| {
        let mut all: Vec<_> =
            found.into_iter().map(|wrong| error(wrong.line(toml), wrong.told())).collect();
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
    origin: SchemaOrigin,
) -> AllChecked<Schema> {
    let from_format_1 = raw.format == 1;
    let raw = all(in_format_2(raw))?;
    all(check_name(&raw.name))?;
    let key_hash = all(key_hash(raw.keys.hash.as_deref()).at("hash").at("keys"))?;
    let mut places = all(keys::resolve(&raw, prefixes).at("keys"))?;
    let (prefix, keys) = places.remove(0);

    // From here on an error in one part does not stop the others, so that all errors are reported at once.
    let mut found: Vec<Wrong> = Vec::new();
    let mut symbols = SymbolTable::new(scripts, keys);
    for (index, value) in raw.value.iter().enumerate() {
        match values::resolve(&symbols, value).at(index).at("value") {
            Ok(resolved) => {
                symbols.values.push(resolved);
                symbols.indexes.push(index);
            }
            Err(wrong) => {
                found.push(wrong);
                symbols.broken.push(value.name.clone());
            }
        }
    }
    let lock_ttl = ttl(&raw, TtlOf::Lock).unwrap_or_else(|wrong| {
        found.push(wrong);
        Duration::ZERO
    });
    let result_ttl = ttl(&raw, TtlOf::Result).unwrap_or_else(|wrong| {
        found.push(wrong);
        Duration::ZERO
    });
    let write = raw.write.clone().unwrap_or_default();
    found.extend(check_written(&write, lock_ttl, result_ttl).at("write").err());
    symbols.unset = unset(&write, lock_ttl, result_ttl);
    let begin = step(&symbols, "begin", raw.begin.as_ref(), BEGIN, &mut found);
    let renew = step(&symbols, "renew", raw.renew.as_ref(), RENEW, &mut found);
    let complete = step(&symbols, "complete", raw.complete.as_ref(), COMPLETE, &mut found);
    let release = step(&symbols, "release", raw.release.as_ref(), RELEASE, &mut found);
    if !from_format_1 {
        let steps =
            [("begin", &begin), ("renew", &renew), ("complete", &complete), ("release", &release)];
        found.extend(strict::faults(&raw, &symbols, &steps));
    }
    if !found.is_empty() {
        return Err(found);
    }
    Ok(Schema {
        from_format_1,
        name: raw.name,
        summary: raw.summary,
        older_release_of: raw.older_release_of,
        is_draft: raw.draft,
        keys: symbols.keys,
        takes_prefix: prefix.place.refusal().is_none(),
        prefix,
        other_places: places,
        is_elsewhere: false,
        key_hash,
        lock_ttl,
        result_ttl,
        stated: Vec::new(),
        values: symbols.values,
        write,
        begin,
        complete,
        renew,
        release,
        service: raw.service,
        scripts: symbols.scripts,
        origin,
    })
}

fn in_format_2(raw: RawSchema) -> Checked<RawSchema> {
    match raw.format {
        1 => format_1::convert(raw),
        2 => Ok(raw),
        other => wrong(format!("format {other} is not known: this idemctl reads formats 1 and 2"))
            .at("format"),
    }
}

fn check_name(name: &str) -> Checked<()> {
    if name.is_empty()
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    {
        return wrong("a schema's name is made of letters, digits, `-`, `_` and `.`").at("name");
    }
    Ok(())
}

fn key_hash(text: Option<&str>) -> Checked<Option<KeyHash>> {
    match text {
        Some(text) => KeyHash::parse(text).map(Some).or_else(wrong),
        None => Ok(None),
    }
}

/// How long locks or results live; [`NO_TTL`] if no value of the schema is one.
fn ttl(raw: &RawSchema, of: TtlOf) -> Checked<Duration> {
    let (name, ttl, state) = match of {
        TtlOf::Lock => ("lock", raw.ttl.lock, State::InProgress),
        TtlOf::Result => ("result", raw.ttl.result, State::Completed),
    };
    match ttl {
        Some(ttl) => Ok(ttl),
        None if !raw.value.iter().any(|value| value.state == state) => Ok(NO_TTL),
        None => wrong(format!(
            "missing field `{name}`: write how long the service lets it live, such as {name} = \"24h\", or \"none\" for no TTL"
        ))
        .at("ttl"),
    }
}

/// Passes values whose placeholders all have a TTL or a previous value to take their text from.
fn check_written(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Checked<()> {
    for (name, text) in write.values() {
        if let Some(left) = text.leftover() {
            return wrong(format!(
                "`{left}` is no placeholder of a value, and would be written as it is"
            ))
            .at(name);
        }
        for (of, ttl) in [(TtlOf::Lock, lock_ttl), (TtlOf::Result, result_ttl)] {
            if ttl == NO_TTL && text.has(&Timestamp::ALL.map(|unit| Placeholder::Expires(of, unit)))
            {
                let message =
                    format!("it is to end with a {0} TTL, and [ttl] gives no {0} TTL", of.as_str());
                return wrong(message).at(name);
            }
        }
        if name == "lock_value" && text.keeps() {
            return wrong(
                "a lock keeps nothing: `{kept}` goes with `result_value` and `failed_value`",
            )
            .at(name);
        }
    }
    Ok(())
}

/// The placeholders of TTLs and values that the file does not give.
fn unset(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Vec<Placeholder> {
    let given = [
        (Placeholder::LockTtl, lock_ttl != NO_TTL),
        (Placeholder::ResultTtl, result_ttl != NO_TTL),
        (Placeholder::LockValue, write.lock_value.is_some()),
        (Placeholder::ResultValue, write.result_value.is_some()),
    ];
    given.into_iter().filter(|(_, is_given)| !is_given).map(|(place, _)| place).collect()
}

/// A step of the file; `None` if it has no such step, or one with errors, which are added to `found`.
fn step(
    symbols: &SymbolTable,
    name: &'static str,
    raw: Option<&RawStep>,
    meanings: &[Meaning],
    found: &mut Vec<Wrong>,
) -> Option<Step> {
    match steps::resolve(symbols, raw?, name, meanings).at(name) {
        Ok(step) => Some(step),
        Err(wrong) => {
            found.extend(wrong);
            None
        }
    }
}
