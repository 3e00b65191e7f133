//! `--body FILE`: the response's body, as the client would get it.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::domain::record::Record;
use crate::exit::{CommandError, Exit};
use crate::files;
use crate::render::escape;
use crate::store::read::lookup::LookupResult;

/// Writes the body of the one record that holds a response; nothing where there is no record at all.
///
/// # Errors
/// No record holds a response, or several do; the file is there already, or cannot be written.
pub(super) fn write(
    context: &mut Context,
    found: &[LookupResult],
    file: &Path,
    force: bool,
) -> Result<()> {
    let records = found.iter().flat_map(|found| &found.records);
    let responses = records.filter_map(Record::response);
    let bodies: Vec<_> = responses.map(|response| response.body).collect();
    let body = match bodies.as_slice() {
        [body] => body,
        [] if found.iter().all(|found| found.records.is_empty()) => return Ok(()),
        [] => {
            return Err(
                CommandError::new(Exit::No, "--body: the record contains no response").into()
            );
        }
        _ => {
            return Err(CommandError::usage("--body: several records contain a response")
                .hint("name exactly one KEY and one --schema")
                .into());
        }
    };
    if file.as_os_str() == "-" {
        if context.ui.out_is_terminal() {
            context.ui.data(for_terminal(body))?;
        } else {
            context.ui.data(body)?;
        }
        context.ui.flush()?;
        return Ok(());
    }
    match files::write(file, body, force) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message =
                format!("--body: {} exists already and was not overwritten", file.display());
            return Err(CommandError::usage(message)
                .hint("name another FILE, or overwrite this one with --force")
                .into());
        }
        written => written.with_context(|| format!("--body: cannot write {}", file.display()))?,
    }
    context.ui.status(&format!("wrote {} bytes to {}", body.len(), file.display()));
    Ok(())
}

/// A body for a terminal: its lines as they are, and whatever else moves a cursor or sets a colour escaped.
fn for_terminal(body: &[u8]) -> String {
    let mut lines = Vec::new();
    for line in body.split(|byte| *byte == b'\n') {
        lines.push(escape::text(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    let mut text = lines.join("\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
