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

/// All problems with the schema of a folder.
pub(super) fn problems(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let mut problems = mismatches(folder, schema);
    problems.extend(open_formats(folder, schema));
    problems.extend(shared_redis_keys(folder, schema));
    problems.extend(short_results(folder, schema));
    problems.extend(keys_beside_records(folder, schema));
    problems.extend(unmatched_mismatches(folder, schema));
    problems.extend(unreached_calls(folder, schema));
    problems.extend(script_faults(folder, schema));
    problems
}

/// Contradictions within `schema.toml`.
fn mismatches(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    // The schema was read from this file before. If it cannot be read again, only the line numbers
    // of the problems are lost.
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let mut problems = Vec::new();
    for mismatch in self_check::mismatches(schema) {
        let line = find_line(&text, |line| line.trim_start().starts_with(mismatch.about));
        problems.push(problem(&file, line, mismatch.message, true));
    }
    problems
}

/// Value formats that also match values of other programs.
fn open_formats(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let mut problems = Vec::new();
    for (index, format) in schema.values.iter().enumerate() {
        if !format.encoding().has_fields() || format.closed.is_some() {
            continue;
        }
        let message = format!(
            "`{}` also matches values with other fields; list its own fields in `required` and \
            `optional`, unless it is an array",
            format.name
        );
        let line = line_of_table(&text, "[[value]]", index);
        problems.push(problem(&file, line, message, false));
    }
    problems
}

/// Replies for another payload whose value has no hash of a payload, so that none is recognised. The
/// client compares the hash that another call reads.
fn unmatched_mismatches(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let mut problems = Vec::new();
    for reply in schema.steps().flat_map(|step| &step.calls).flat_map(|call| &call.replies) {
        let Some(index) = reply.value else { continue };
        let format = &schema.values[index];
        if !reply.is_for_other_payloads() || format.fields.fingerprint.is_some() {
            continue;
        }
        let name = &format.name;
        let line = find_line(&text, |line| {
            line.contains(&format!("value = \"{name}\"")) && line.contains("fingerprint")
        });
        let message = format!(
            "this reply is never recognised, because `{name}` has no `fingerprint` that could \
            differ; put it at the call that reads the fingerprint"
        );
        problems.push(problem(&file, line, message, false));
    }
    problems
}

/// Calls that are never sent, because every reply of the call before them ends the step.
fn unreached_calls(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let mut problems = Vec::new();
    let steps = [
        ("begin", &schema.begin),
        ("renew", &schema.renew),
        ("complete", &schema.complete),
        ("release", &schema.release),
    ];
    for (name, step) in steps {
        let Some(step) = step else { continue };
        for (index, call) in step.calls.iter().enumerate() {
            let is_last = index + 1 == step.calls.len();
            if is_last || call.replies.iter().any(|reply| reply.means == Meaning::Next) {
                continue;
            }
            let line = line_of_table(&text, &format!("[[{name}.call]]"), index + 1);
            let message =
                "this call is never sent, because no reply of the call before it means `next`"
                    .to_owned();
            problems.push(problem(&file, line, message, false));
        }
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
        for fault in lua_check::check(&script.text, &calls) {
            problems.push(problem(&file, fault.line, fault.message, fault.breaks));
        }
    }
    problems
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
fn shared_redis_keys(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let line =
        find_line(&text, |line| line.trim_start().starts_with("keys") || line.trim() == "[keys]");
    let mut problems = Vec::new();
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
                key whose record shares a Redis key with another record. idemctl takes such a \
                Redis key for `{narrow}` alone. Let the templates begin differently, or let `key` \
                exclude such keys"
            );
            problems.push(problem(&file, line, message, false));
        }
    }
    problems
}

/// Results that expire before the locks do.
fn short_results(folder: &Path, schema: &Schema) -> Option<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let line =
        find_line(&text, |line| line.trim_start().starts_with("ttl =") || line.trim() == "[ttl]");
    Some(problem(&file, line, self_check::short_results(schema)?, false))
}

/// Steps that write Redis keys beside those of a record, of which idemctl knows nothing.
fn keys_beside_records(folder: &Path, schema: &Schema) -> Vec<Problem> {
    let file = folder.join("schema.toml");
    let text = files::read_text(&file, LARGEST).unwrap_or_default();
    let steps = [
        ("begin", &schema.begin),
        ("renew", &schema.renew),
        ("complete", &schema.complete),
        ("release", &schema.release),
    ];
    let mut problems = Vec::new();
    for (name, step) in steps {
        let Some(step) = step else { continue };
        let mut names = Vec::new();
        for redis_key in schema.keys_beside_record(&step.calls, b"KEY") {
            names.push(String::from_utf8_lossy(&redis_key).into_owned());
        }
        if names.is_empty() {
            continue;
        }
        let names = names.join(", ");
        let message = format!(
            "{name} may also write Redis keys beside those of the record: {names}. idemctl does not \
            look at them when it predicts answers, and neither backs them up nor restores them"
        );
        let line = line_of_table(&text, &format!("[[{name}.call]]"), 0);
        problems.push(problem(&file, line, message, false));
    }
    problems
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
