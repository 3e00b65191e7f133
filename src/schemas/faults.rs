//! Finds problems in a schema that can be read.

use std::path::Path;

use crate::domain::schema::lua_check::{self, ArgumentCounts};
use crate::domain::schema::{Action, Meaning, Schema, SchemaError};
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

/// The lines of problems, with a message for each.
type Told = Vec<(usize, String)>;

/// All problems with the schema of a folder.
pub(super) fn problems(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    // The schema was read from this file before. If it cannot be read again, only the line numbers
    // of the problems are lost.
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let mut problems = Vec::new();
    for (told, is_error) in [
        (mismatches(&text, schema), true),
        (open_formats(&text, schema), false),
        (shared_redis_keys(&text, schema), false),
        (short_results(&text, schema), false),
        (unreached_calls(&text, schema), true),
    ] {
        for (line, message) in told {
            problems.push(problem(&file, line, message, is_error));
        }
    }
    // Scripts that read what a call does not send.
    for script in schema.scripts.values() {
        let file = folder.join(format!("{}.lua", script.name));
        for fault in lua_check::check(&script.text, &calls(schema, &script.name)) {
            problems.push(problem(&file, fault.line, fault.message, true));
        }
    }
    problems
}

/// Contradictions within `schema.toml`.
fn mismatches(text: &str, schema: &Schema) -> Told {
    let mut told = Vec::new();
    for mismatch in self_check::mismatches(schema) {
        let line = find_line(text, |line| line.trim_start().starts_with(mismatch.about));
        told.push((line, mismatch.message));
    }
    told
}

/// Value formats that also match values of other programs.
fn open_formats(text: &str, schema: &Schema) -> Told {
    let mut told = Vec::new();
    for (index, format) in schema.values.iter().enumerate() {
        if !format.encoding().has_fields() || format.closed.is_some() {
            continue;
        }
        let message = format!(
            "`{}` also matches values with other fields; list its own fields in `required` and \
            `optional`, unless it is an array",
            format.name
        );
        told.push((line_of_table(text, "[[value]]", index), message));
    }
    told
}

/// Calls that are never sent, because every reply of the call before them ends the step.
fn unreached_calls(text: &str, schema: &Schema) -> Told {
    let mut told = Vec::new();
    for (name, step) in schema.named_steps() {
        for (index, call) in step.calls.iter().enumerate() {
            let is_last = index + 1 == step.calls.len();
            if is_last || call.replies.iter().any(|reply| reply.means == Meaning::Next) {
                continue;
            }
            let line = line_of_table(text, &format!("[[{name}.call]]"), index + 1);
            let message =
                "this call is never sent, because no reply of the call before it means `next`";
            told.push((line, message.to_owned()));
        }
    }
    told
}

/// How many KEYS and ARGV each call of this script sends.
fn calls(schema: &Schema, script: &str) -> Vec<ArgumentCounts> {
    let mut counts = Vec::new();
    for step in schema.steps() {
        for call in &step.calls {
            if let Action::Script { name, keys, args } = &call.action
                && name == script
            {
                let several = args.iter().position(|word| schema.is_words_of_hash(word));
                counts.push(ArgumentCounts {
                    keys: keys.len(),
                    args: several.unwrap_or(args.len()),
                    more_args: several.is_some(),
                });
            }
        }
    }
    counts
}

/// Key templates that also match the Redis keys of another template. With such a template, a client
/// can choose a key that makes two records share a Redis key.
fn shared_redis_keys(text: &str, schema: &Schema) -> Told {
    let line = line_of_part(text, "keys");
    let mut told = Vec::new();
    for wide in &schema.keys {
        for narrow in &schema.keys {
            // The template with more literal bytes owns the Redis keys that both match.
            if narrow.template.specificity() <= wide.template.specificity() {
                continue;
            }
            // The pattern of a template represents all of its Redis keys.
            let sample = narrow.template.pattern().into_bytes();
            if wide.template.idempotency_key(&sample).is_none() {
                continue;
            }
            let wide = wide.template.display();
            let narrow = narrow.template.display();
            let message = format!(
                "`{wide}` also fits the Redis keys of `{narrow}`, so that a client can choose a \
                key whose record shares a Redis key with another record; let the templates begin \
                differently, or let `key` exclude such keys"
            );
            told.push((line, message));
        }
    }
    told
}

/// Results that expire before the locks do.
fn short_results(text: &str, schema: &Schema) -> Told {
    let line = line_of_part(text, "ttl");
    self_check::short_results(schema).into_iter().map(|message| (line, message)).collect()
}

/// The line of a table that may also be written in one line.
fn line_of_part(text: &str, name: &str) -> usize {
    find_line(text, |line| {
        line.trim_start().starts_with(&format!("{name} =")) || line.trim() == format!("[{name}]")
    })
}

/// The number of the first line that fits, from 1; 1 if no line fits.
fn find_line(text: &str, fits: impl Fn(&str) -> bool) -> usize {
    for (index, line) in text.lines().enumerate() {
        if fits(line) {
            return index + 1;
        }
    }
    1
}

/// The line of the table with this heading and index, from 1. For a call that the file does not have,
/// the line that names the protocol; 1 if there is none.
pub(super) fn line_of_table(text: &str, heading: &str, index: usize) -> usize {
    let mut tables = 0;
    for (number, line) in text.lines().enumerate() {
        if line.trim() != heading {
            continue;
        }
        if tables == index {
            return number + 1;
        }
        tables += 1;
    }
    find_line(text, |line| line.trim_start().starts_with("protocol"))
}

fn problem(file: &Path, line: usize, message: String, is_error: bool) -> Problem {
    Problem { what: SchemaError { file: file.display().to_string(), line, message }, is_error }
}
