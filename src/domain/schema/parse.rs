//! Reading a `schema.toml`: every name resolved, every error with its line.

mod closed_form;
mod keys;
mod steps;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use super::forms::ValueCase;
use super::location::{At as _, Checked, line_of, wrong};
use super::model::{Origin, Schema, Script};
use super::raw::RawSchema;
use super::role::SlotKey;
use super::steps::Meaning;

/// What is wrong with a schema, and on which line of which file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SchemaError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The text of a schema before it is read.
pub struct SchemaSource<'a> {
    /// The file's name for errors.
    pub file: &'a str,
    /// The text of `schema.toml`.
    pub toml: &'a str,
    /// The file as JSON, for the built-in schemas: JSON is read many times faster, and the TOML only to find a line.
    pub json: Option<&'a str>,
    /// The scripts beside `schema.toml`.
    pub scripts: Vec<Script>,
    /// Where the schema came from.
    pub origin: Origin,
    /// The prefixes that the deployment sets.
    pub prefixes: Prefixes<'a>,
}

/// The prefixes of Redis keys that a deployment sets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prefixes<'a> {
    /// The prefix of this schema's Redis keys.
    pub own: Option<&'a str>,
    /// The prefix of the Redis keys of every schema whose key templates say where a prefix stands.
    pub shared: Option<&'a str>,
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
    let resolver = Resolver { scripts, slots: Vec::new(), values: Vec::new() };
    resolver.schema(raw, prefixes, origin).map_err(|wrong| error(wrong.line(toml), wrong.message))
}

/// What the later parts of a `schema.toml` refer to by name.
struct Resolver {
    scripts: BTreeMap<String, Script>,
    slots: Vec<SlotKey>,
    values: Vec<ValueCase>,
}

impl Resolver {
    fn schema(mut self, raw: RawSchema, prefixes: Prefixes<'_>, origin: Origin) -> Checked<Schema> {
        check_head(&raw)?;
        let (prefix, slots) = keys::resolve(&raw, prefixes).at("keys")?;
        self.slots = slots;
        for (index, value) in raw.value.into_iter().enumerate() {
            let case = self.value(value).at(index).at("value")?;
            self.values.push(case);
        }
        let begins = [Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];
        let begin = self.step(raw.begin, "begin", &begins)?;
        let renews = [Meaning::Renewed, Meaning::Refused];
        let renew = raw.renew.map(|step| self.step(step, "renew", &renews)).transpose()?;
        let complete = self.step(raw.complete, "complete", &[Meaning::Stored, Meaning::Refused])?;
        let releases = [Meaning::Released, Meaning::Refused];
        let release = raw.release.map(|step| self.step(step, "release", &releases)).transpose()?;
        Ok(Schema {
            name: raw.name,
            summary: raw.summary,
            older_release_of: raw.older_release_of,
            slots: self.slots,
            takes_prefix: prefix.place.refusal().is_none(),
            prefix,
            lock_ttl: raw.ttl.lock,
            result_ttl: raw.ttl.result,
            stated: Vec::new(),
            values: self.values,
            write: raw.write,
            begin,
            complete,
            renew,
            release,
            conduct: raw.service,
            scripts: self.scripts,
            origin,
        })
    }
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
