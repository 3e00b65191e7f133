//! Reading a `schema.toml`: every name resolved, every error with its line.

mod closed_form;
mod keys;
mod names;
mod steps;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use self::names::Names;
use super::location::{At as _, Checked, line_of, wrong};
use super::model::{Origin, Schema, Script};
use super::prefix::Prefixes;
use super::raw::RawSchema;
use super::steps::Meaning;

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
/// The first thing that is wrong, with its line.
pub fn parse(source: SchemaSource<'_>) -> Result<Schema, SchemaError> {
    let SchemaSource { file, toml, json, scripts, origin, prefixes } = source;
    let error = |line, message| SchemaError { file: file.to_owned(), line, message };
    let raw: RawSchema = match json {
        Some(json) => serde_json::from_str(json).map_err(|wrong| error(1, wrong.to_string()))?,
        None => toml::from_str(toml).map_err(|wrong| {
            error(line_of(toml, wrong.span().map_or(0, |span| span.start)), wrong.message().to_owned())
        })?,
    };
    let scripts = scripts.into_iter().map(|script| (script.name.clone(), script)).collect();
    resolve(raw, scripts, prefixes, origin).map_err(|wrong| error(wrong.line(toml), wrong.message))
}

fn resolve(
    raw: RawSchema,
    scripts: BTreeMap<String, Script>,
    prefixes: Prefixes<'_>,
    origin: Origin,
) -> Checked<Schema> {
    check_head(&raw)?;
    let (prefix, slots) = keys::resolve(&raw, prefixes).at("keys")?;
    let mut names = Names { scripts, slots, values: Vec::new() };
    for (index, value) in raw.value.into_iter().enumerate() {
        let case = values::resolve(&names, value).at(index).at("value")?;
        names.values.push(case);
    }
    let step = |raw, name, meanings: &[Meaning]| steps::resolve(&names, raw, name, meanings).at(name);
    let begins = [Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];
    let begin = step(raw.begin, "begin", &begins)?;
    let renews = [Meaning::Renewed, Meaning::Refused];
    let renew = raw.renew.map(|raw| step(raw, "renew", &renews)).transpose()?;
    let complete = step(raw.complete, "complete", &[Meaning::Stored, Meaning::Refused])?;
    let releases = [Meaning::Released, Meaning::Refused];
    let release = raw.release.map(|raw| step(raw, "release", &releases)).transpose()?;
    Ok(Schema {
        name: raw.name,
        summary: raw.summary,
        older_release_of: raw.older_release_of,
        slots: names.slots,
        takes_prefix: prefix.place.refusal().is_none(),
        prefix,
        lock_ttl: raw.ttl.lock,
        result_ttl: raw.ttl.result,
        stated: Vec::new(),
        values: names.values,
        write: raw.write,
        begin,
        complete,
        renew,
        release,
        conduct: raw.service,
        scripts: names.scripts,
        origin,
    })
}

fn check_head(raw: &RawSchema) -> Checked<()> {
    if raw.format != 1 {
        return wrong(format!("format {} is not known: this idemctl reads format 1", raw.format)).at("format");
    }
    if raw.name.is_empty() || !raw.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return wrong("a schema's name is made of letters, digits, `-`, `_` and `.`").at("name");
    }
    Ok(())
}
