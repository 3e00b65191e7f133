//! What is wrong with a schema that can be read.

use std::path::Path;

use crate::domain::schema::lua_check::{self, Sent};
use crate::domain::schema::self_check;
use crate::domain::schema::{Action, Encoding, Schema, SchemaError, ValueCase};
use crate::files;

/// Larger than any `schema.toml` or script.
pub(super) const LARGEST: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) what: SchemaError,
    /// False when the schema works all the same.
    pub(crate) is_error: bool,
}

/// All that is wrong with the schema of a folder.
pub(super) fn of(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let mut problems = mismatches(folder, schema);
    problems.extend(open_forms(folder, schema));
    problems.extend(script_faults(folder, schema));
    problems
}

/// What does not fit together within `schema.toml`.
fn mismatches(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let line = |about: &str| text.lines().position(|line| line.trim_start().starts_with(about)).map_or(1, |at| at + 1);
    self_check::mismatches(schema)
        .into_iter()
        .map(|mismatch| problem(&file, line(mismatch.about), mismatch.message, true))
        .collect()
}

/// Forms that other programs' values fit as well.
fn open_forms(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let tables: Vec<_> = text.lines().enumerate().filter(|(_, line)| line.trim() == "[[value]]").collect();
    let is_open = |case: &ValueCase| match case.encoding() {
        Encoding::Text => case.is_opaque() && !case.is_marked_opaque,
        encoding => encoding.has_fields() && case.closed.is_none(),
    };
    let open = schema.values.iter().enumerate().filter(|(_, case)| is_open(case));
    open.map(|(index, case)| {
        let line = tables.get(index).map_or(1, |(line, _)| line + 1);
        let message = match case.encoding() {
            Encoding::Text => "takes any text: say `opaque = true` where that is meant, else `equals`",
            _ => "takes values with any other fields, too: list its own in `required` and `optional`, unless it is an array",
        };
        problem(&file, line, format!("`{}` {message}", case.name), false)
    })
    .collect()
}

/// What is wrong with the scripts, held against the calls that send them.
fn script_faults(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let mut problems = Vec::new();
    for script in schema.scripts.values() {
        let file = folder.join(format!("{}.lua", script.name));
        let calls = calls(schema, &script.name);
        if calls.is_empty() {
            problems.push(problem(&file, 1, "no step of schema.toml sends this script".to_owned(), false));
        }
        let faults = lua_check::check(&script.text, &calls);
        problems.extend(faults.into_iter().map(|fault| problem(&file, fault.line, fault.message, fault.breaks)));
    }
    problems
}

fn calls(schema: &Schema, script: &str) -> Vec<Sent> {
    let calls = schema.steps().flat_map(|step| &step.calls);
    calls
        .filter_map(|call| match &call.action {
            Action::Script { name, keys, args } if name == script => Some(Sent { keys: keys.len(), args: args.len() }),
            _ => None,
        })
        .collect()
}

fn problem(file: &Path, line: usize, message: String, is_error: bool) -> Problem {
    Problem { what: SchemaError { file: file.display().to_string(), line, message }, is_error }
}
