//! `--body FILE`: the response's body, as the client would get it.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::exit::{CommandError, Exit};
use crate::files;
use crate::render::escape;
use crate::session::Session;
use crate::store::read::lookup::LookupResult;

/// Writes the body of the only record that contains a response. If no record exists, it writes
/// nothing.
///
/// # Errors
/// No record contains a response, or several do; the file exists already, or cannot be written.
pub(super) fn write(
    session: &mut Session,
    found: &[LookupResult],
    file: &Path,
    force: bool,
) -> Result<()> {
    let mut bodies = Vec::new();
    for found in found {
        for record in &found.records {
            if let Some(response) = record.response() {
                bodies.push(response.body);
            }
        }
    }
    let body = match bodies.as_slice() {
        [body] => body,
        // The exit code and a line on stderr report that no record exists.
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
        // A program gets the exact bytes. On a terminal, a client's bytes could move the cursor.
        if session.ui.out_is_terminal() {
            session.ui.data(for_terminal(body))?;
        } else {
            session.ui.data(body)?;
        }
        session.ui.flush()?;
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
    session.ui.status(&format!("wrote {} bytes to {}", body.len(), file.display()));
    Ok(())
}

/// A body for a terminal. Line ends stay, and other control characters are escaped.
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
