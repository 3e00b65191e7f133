//! Finds problems in a schema that can be read.

use std::path::Path;

use crate::domain::schema::lua_check::{self, ArgumentCounts};
use crate::domain::schema::{Action, Encoding, Schema, SchemaError};
use crate::domain::self_check;
use crate::files;

/// Larger than any `schema.toml` or script.
pub(super) const LARGEST: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) what: SchemaError,
    /// False if the schema works in spite of the problem.
    pub(crate) is_error: bool,
}

/// All problems with the schema of a folder.
pub(super) fn problems(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let mut problems = mismatches(folder, schema);
    problems.extend(open_formats(folder, schema));
    problems.extend(shared_redis_keys(folder, schema));
    problems.extend(script_faults(folder, schema));
    problems
}

/// Contradictions within `schema.toml`.
fn mismatches(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let line = |about: &str| {
        text.lines().position(|line| line.trim_start().starts_with(about)).map_or(1, |at| at + 1)
    };
    self_check::mismatches(schema)
        .into_iter()
        .map(|mismatch| problem(&file, line(mismatch.about), mismatch.message, true))
        .collect()
}

/// Value formats that also match values of other programs.
fn open_formats(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let tables: Vec<_> =
        text.lines().enumerate().filter(|(_, line)| line.trim() == "[[value]]").collect();
    let mut problems = Vec::new();
    for (index, format) in schema.values.iter().enumerate() {
        let line = tables.get(index).map_or(1, |(line, _)| line + 1);
        let message = match format.encoding() {
            // Format 2 rejects this, so the file has format 1.
            Encoding::Text if format.is_opaque() && !format.is_marked_opaque => {
                "matches any text; write `opaque = true` if that is intended, otherwise `equals`"
            }
            encoding if encoding.has_fields() && format.closed.is_none() => {
                "also matches values with other fields; list its own fields in `required` and `optional`, unless it is an array"
            }
            _ => continue,
        };
        problems.push(problem(&file, line, format!("`{}` {message}", format.name), false));
    }
    problems
}

/// Problems in the scripts, compared with the calls that send them.
fn script_faults(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let mut problems = Vec::new();
    for script in schema.scripts.values() {
        let file = folder.join(format!("{}.lua", script.name));
        let calls = calls(schema, &script.name);
        if calls.is_empty() {
            problems.push(problem(
                &file,
                1,
                "no step of schema.toml sends this script".to_owned(),
                false,
            ));
        }
        let faults = lua_check::check(&script.text, &calls);
        problems.extend(
            faults.into_iter().map(|fault| problem(&file, fault.line, fault.message, fault.breaks)),
        );
    }
    problems
}

fn calls(schema: &Schema, script: &str) -> Vec<ArgumentCounts> {
    let mut counts = Vec::new();
    for call in schema.steps().flat_map(|step| &step.calls) {
        if let Action::Script { name, keys, args } = &call.action
            && name == script
        {
            counts.push(ArgumentCounts { keys: keys.len(), args: args.len() });
        }
    }
    counts
}

/// Key templates that also match the Redis keys of another template. With such a template, a client
/// can choose a key that makes two records share a Redis key.
fn shared_redis_keys(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let is_head = |line: &str| line.trim_start().starts_with("keys") || line.trim() == "[keys]";
    let line = text.lines().position(is_head).map_or(1, |at| at + 1);
    let mut problems = Vec::new();
    for wide in &schema.keys {
        for narrow in &schema.keys {
            let is_longer = narrow.template.specificity() > wide.template.specificity();
            let sample = narrow.template.pattern().into_bytes();
            if !is_longer || wide.template.idempotency_key(&sample).is_none() {
                continue;
            }
            let (wide, narrow) = (wide.template.display(), narrow.template.display());
            let message = format!(
                "`{wide}` also fits the Redis keys of `{narrow}`, so that a client can choose a key whose record shares a \
                 Redis key with another record. idemctl takes such a Redis key for `{narrow}` alone. Let the templates \
                 begin differently, or let `key` exclude such keys"
            );
            problems.push(problem(&file, line, message, false));
        }
    }
    problems
}

fn problem(file: &Path, line: usize, message: String, is_error: bool) -> Problem {
    Problem { what: SchemaError { file: file.display().to_string(), line, message }, is_error }
}
