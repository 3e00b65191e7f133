//! Parses a `schema.toml`: resolves every name, and reports every error with its line.

mod keys;
mod replies;
mod steps;
mod symbol_table;
mod syntax_errors;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use self::symbol_table::SymbolTable;
use super::files_hash;
use super::location::{AllChecked, At as _, Checked, Wrong, all, line_of_key, wrong};
use super::model::{Schema, SchemaOrigin, Script};
use super::protocol;
use super::raw::{RawSchema, RawStep};
use super::redis_keys::Prefixes;
use super::steps::{Meaning, Step};
use super::ttl::{NO_TTL, TtlOf};
use super::value_format::State;
use super::value_template::Placeholder;
use super::write_format::WriteFormat;
use super::written;

/// The format of the files.
const FORMAT: u32 = 2;

/// The meanings that the replies of each step may have. At least one reply must have the first of
/// them.
const BEGIN: &[Meaning] =
    &[Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];
const RENEW: &[Meaning] = &[Meaning::Renewed, Meaning::Refused];
const COMPLETE: &[Meaning] = &[Meaning::Stored, Meaning::Refused];
const RELEASE: &[Meaning] = &[Meaning::Released, Meaning::Refused];

/// An error in a schema, with its file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SchemaError {
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The text of a schema before it is parsed.
pub struct SchemaSource<'a> {
    pub(crate) file: &'a str,
    pub(crate) toml: &'a str,
    /// What the build has made of the files of a built-in schema.
    pub(crate) compiled_in: Option<CompiledIn<'a>>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) origin: SchemaOrigin,
    pub(crate) prefixes: Prefixes<'a>,
}

/// A built-in schema as the build has compiled it in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompiledIn<'a> {
    /// `schema.toml` as JSON, which parses many times faster. The TOML is then used only to find
    /// the line of an error.
    pub(crate) json: &'a str,
    /// The hash of the files, see [`Schema::files_hash`].
    pub(crate) files_hash: &'a str,
}

/// Parses and checks a schema.
///
/// # Errors
/// All errors, at least one, in the order of their lines.
pub(crate) fn parse_all(source: SchemaSource<'_>) -> Result<Schema, Vec<SchemaError>> {
    let SchemaSource { file, toml, compiled_in, scripts, origin, prefixes } = source;
    let error = |(line, message)| SchemaError { file: file.to_owned(), line, message };
    let raw: Result<RawSchema, Vec<(usize, String)>> = match compiled_in {
        // The lines of the JSON are not those of the file.
        Some(compiled_in) => {
            serde_json::from_str(compiled_in.json).map_err(|wrong| vec![(1, wrong.to_string())])
        }
        None => toml::from_str(toml).map_err(|wrong| {
            let open = syntax_errors::open_points(toml);
            if open.is_empty() { syntax_errors::all(toml, wrong) } else { open }
        }),
    };
    let raw = raw.map_err(|found| found.into_iter().map(&error).collect::<Vec<_>>())?;
    let scripts: BTreeMap<_, _> =
        scripts.into_iter().map(|script| (script.name.clone(), script)).collect();
    let files_hash = match compiled_in {
        Some(compiled_in) => compiled_in.files_hash.to_owned(),
        None => {
            let names_and_texts =
                scripts.values().map(|script| (script.name.as_str(), script.text.as_ref()));
            files_hash::of(toml, names_and_texts)
        }
    };
    let is_older = raw.format < FORMAT;
    let mut errors: Vec<_> = match resolve(raw, scripts, prefixes, origin) {
        Ok(schema) if !is_older => return Ok(Schema { files_hash, ..schema }),
        Ok(_) => Vec::new(),
        Err(found) => found.iter().map(|wrong| error((wrong.line(toml), wrong.told()))).collect(),
    };
    errors.sort_by_key(|error| error.line);
    if is_older {
        return Err(vec![older_format(file.to_owned(), toml, &errors)]);
    }
    Err(errors)
}

/// One error for a file of format 1, with all lines to change.
fn older_format(file: String, toml: &str, changes: &[SchemaError]) -> SchemaError {
    let line = line_of_key(toml, "format");
    let mut message = format!(
        "`format = {FORMAT}` is missing; idemctl no longer reads format 1, of idemctl 0.2. Change \
        these lines, then run `idemctl schema check DIR`:\n  line {line}: write `format = {FORMAT}`"
    );
    for change in changes {
        message.push_str(&format!("\n  line {}: {}", change.line, change.message));
    }
    SchemaError { file, line, message }
}

/// Parses and checks a schema.
///
/// # Errors
/// The first error, with its line.
pub fn parse(source: SchemaSource<'_>) -> Result<Schema, SchemaError> {
    let file = source.file.to_owned();
    match parse_all(source) {
        Ok(schema) => Ok(schema),
        Err(errors) => Err(match errors.into_iter().next() {
            Some(first) => first,
            // `parse_all` returns at least one error, so that this message is never used.
            None => SchemaError { file, line: 1, message: "it cannot be read".to_owned() },
        }),
    }
}

fn resolve(
    raw: RawSchema,
    scripts: BTreeMap<String, Script>,
    prefixes: Prefixes<'_>,
    origin: SchemaOrigin,
) -> AllChecked<Schema> {
    let mut raw = raw;
    let mut scripts = scripts;
    let mut found = check_format(&mut raw)?;
    all(check_name(&raw.name))?;
    // An error in a step of the protocol is at the line that names the protocol.
    let [begin_at, complete_at, release_at] =
        [("begin", &raw.begin), ("complete", &raw.complete), ("release", &raw.release)].map(
            |(name, step)| {
                let is_own = step.is_some() || raw.protocol.is_none();
                if is_own { name } else { protocol::PROTOCOL }
            },
        );
    all(written::add_formats(&mut raw))?;
    if raw.value.is_empty() {
        return all(wrong("write a [[value]] for each value format, or a [write] that shows it"));
    }
    all(protocol::add_steps(&mut raw, &mut scripts))?;
    let mut places = all(keys::resolve(&raw, prefixes).at("keys"))?;
    // There is at least one place, and the first has the prefix in use.
    let (prefix, keys) = places.remove(0);

    // From here on, an error in one part does not stop the other parts, so that all errors are
    // reported at once.
    let mut symbols = SymbolTable::new(scripts, keys);
    // Values before steps, because the steps refer to values by name.
    for (index, value) in raw.value.iter().enumerate() {
        match values::resolve(&symbols, value).at(index).at("value") {
            Ok(resolved) => symbols.values.push(resolved),
            Err(wrong) => {
                found.push(wrong);
                symbols.broken.push(value.name.clone());
            }
        }
    }
    let lock_ttl = ttl(&raw, TtlOf::Lock, &mut found);
    let result_ttl = ttl(&raw, TtlOf::Result, &mut found);
    let write = raw.write.clone().unwrap_or_default();
    found.extend(check_written(&write, lock_ttl, result_ttl).at("write").err());
    symbols.unset = unset(&write, lock_ttl, result_ttl);
    let begin = step(&symbols, begin_at, raw.begin.as_ref(), BEGIN, &mut found);
    let renew = step(&symbols, "renew", raw.renew.as_ref(), RENEW, &mut found);
    let complete = step(&symbols, complete_at, raw.complete.as_ref(), COMPLETE, &mut found);
    let release = step(&symbols, release_at, raw.release.as_ref(), RELEASE, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    let mut formats = symbols.values;
    values::find_rivals(&mut formats);
    Ok(Schema {
        name: raw.name,
        summary: raw.summary,
        older_release_of: raw.older_release_of,
        keys: symbols.keys,
        takes_prefix: prefix.place.refusal().is_none(),
        prefix,
        other_places: places,
        only_by_name: false,
        lock_ttl,
        result_ttl,
        stated: Vec::new(),
        limited_to: None,
        values: formats,
        write,
        begin,
        complete,
        renew,
        release,
        service: raw.service,
        scripts: symbols.scripts,
        origin,
        // `parse_all` adds it.
        files_hash: String::new(),
    })
}

/// The errors about the format of the file that no other check finds.
///
/// # Errors
/// The file has the format of a newer idemctl.
fn check_format(raw: &mut RawSchema) -> AllChecked<Vec<Wrong>> {
    let mut found = Vec::new();
    if raw.format > FORMAT {
        let message =
            format!("format {} is not known; this idemctl reads format {FORMAT}", raw.format);
        return all(wrong(message).at("format"));
    }
    if raw.format == FORMAT {
        return Ok(found);
    }
    let keys = &mut raw.keys;
    for (name, template) in
        [("record", &mut keys.record), ("lock", &mut keys.lock), ("result", &mut keys.result)]
    {
        if let Some(template) = template
            && template.contains('\\')
        {
            // Changed here, too, so that the other checks find the other lines to change.
            *template = template.replace('\\', r"\\");
            let escapes: Checked<()> =
                wrong("double each backslash, which is an escape in format 2");
            found.extend(escapes.at(name).at("keys").err());
        }
    }
    Ok(found)
}

fn check_name(name: &str) -> Checked<()> {
    // The name is also the name of the schema's folder.
    if name.is_empty()
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    {
        return wrong("a schema's name consists of letters, digits, `-`, `_` and `.`").at("name");
    }
    Ok(())
}

/// The TTL of locks or results; [`NO_TTL`] if the schema has no such values. An error is added to
/// `found`.
fn ttl(raw: &RawSchema, of: TtlOf, found: &mut Vec<Wrong>) -> Duration {
    let (name, ttl) = match of {
        TtlOf::Lock => ("lock", raw.ttl.lock),
        TtlOf::Result => ("result", raw.ttl.result),
    };
    if let Some(ttl) = ttl {
        return ttl;
    }
    let is_needed = raw.value.iter().any(|value| match of {
        TtlOf::Lock => value.state == Some(State::InProgress),
        TtlOf::Result => value.is_result(),
    });
    if !is_needed {
        return NO_TTL;
    }
    let missing: Checked<()> = wrong(format!(
        "missing field `{name}`; write the service's TTL, such as {name} = \"24h\", or \"none\" \
        for no TTL"
    ));
    found.extend(missing.at("ttl").err());
    // Not `NO_TTL`, which would cause further errors about the same TTL.
    Duration::ZERO
}

/// Checks that every placeholder in the written values has a TTL or a previous value that provides
/// its text.
fn check_written(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Checked<()> {
    for (name, text) in write.values() {
        if let Some(left) = text.leftover() {
            return wrong(format!(
                "`{left}` is not a placeholder of a value and would be written unchanged"
            ))
            .at(name);
        }
        for (of, ttl) in [(TtlOf::Lock, lock_ttl), (TtlOf::Result, result_ttl)] {
            if ttl == NO_TTL && text.has_expiry(of) {
                let message =
                    format!("it ends with a {0} TTL, and [ttl] has no {0} TTL", of.as_str());
                return wrong(message).at(name);
            }
        }
        if name == "lock_value" && text.keeps() {
            return wrong(
                "a lock keeps nothing; use `{kept}` with `result_value` and `failed_value`",
            )
            .at(name);
        }
    }
    Ok(())
}

/// The placeholders of TTLs and values that the file does not define.
fn unset(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Vec<Placeholder> {
    let mut unset = Vec::new();
    if lock_ttl == NO_TTL {
        unset.extend([Placeholder::LockTtl, Placeholder::LockTtlMilliseconds]);
    }
    if result_ttl == NO_TTL {
        unset.extend([Placeholder::ResultTtl, Placeholder::ResultTtlMilliseconds]);
    }
    if write.lock_value.is_none() {
        unset.push(Placeholder::LockValue);
    }
    if write.result_value.is_none() {
        unset.push(Placeholder::ResultValue);
    }
    unset
}

/// Resolves a step of the file. Returns `None` if the file has no such step, or if the step has
/// errors, which are added to `found`.
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
