//! `--expect`: the results that were accepted earlier, and the exit code of a report.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::domain::accepted_report::parse_accepted;
use crate::exit::{CommandError, Exit};
use crate::files;

/// In bytes; larger than any accepted report.
const LARGEST_ACCEPTED: u64 = 64 << 20;

/// The accepted results in the operator's file; `None` without a file.
///
/// # Errors
/// Usage: the file cannot be read, or is not a report of this version.
pub(crate) fn accepted<T: DeserializeOwned>(
    file: Option<&Path>,
) -> Result<Option<T>, CommandError> {
    let Some(file) = file else { return Ok(None) };
    let shown = file.display();
    let json = files::read_or_receive(file, LARGEST_ACCEPTED)
        .map_err(|error| CommandError::usage(format!("--expect: {shown}: {error}")))?;
    let accepted = parse_accepted(&json).map_err(|why| {
        CommandError::usage(format!("--expect: {shown}: {why}"))
            .hint("write it with `-o json` of this version")
    })?;
    Ok(Some(accepted))
}

/// The exit code of a report. With accepted results, known failures are accepted, and only the
/// differences count.
pub(crate) fn exit_of<D>(differences: Option<&[D]>, has_failure: bool, is_complete: bool) -> Exit {
    if differences.map_or(has_failure, |differences| !differences.is_empty()) {
        Exit::No
    } else if is_complete {
        Exit::Done
    } else {
        Exit::Partial
    }
}
