//! `idemctl log show`: one operation, and the records that it changed.

use std::path::Path;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use super::reading::{each, is_there, path, warn_of_skipped};
use crate::args::Output;
use crate::exit::{CommandError, Exit};
use crate::render::{document, history};
use crate::session::Session;

/// Show one operation and the records that it changed
///
/// Exit status 1 if the log has no such operation.
#[derive(Debug, ClapArgs)]
pub(super) struct ShowOperation {
    /// Operation ID from `idemctl log`, or its first letters [default: the last operation]
    #[arg(value_name = "OP")]
    op: Option<String>,

    /// Show at most this many of its records
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,

    /// Output format
    ///
    /// `json` prints one document, `jsonl` one record per line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub(super) fn run(session: &mut Session, args: &ShowOperation) -> Result<Exit> {
    let path = path(session)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let op = match &args.op {
        Some(op) => op.clone(),
        None => last(&path)?,
    };
    // The log is read once for the operation and its records, so a beginning that several
    // operations share collects the records of all. It is then refused below.
    let mut records = Vec::new();
    let read = each(&path, |entry, operation| {
        if operation.op.starts_with(&op) && records.len() < limit {
            records.push(entry);
        }
    })?;
    let unknown = CommandError::new(Exit::No, format!("the audit log has no operation {op}"));
    let Some((operations, skipped)) = read else { return Err(unknown.into()) };
    warn_of_skipped(session, &path, skipped);
    let operation = match operations.named(&op).as_slice() {
        [] => return Err(unknown.hint("`idemctl log` lists the operations").into()),
        [one] => history::ShownOperation::of(one, is_there(one)),
        several => {
            let names: Vec<_> = several.iter().map(|operation| operation.op.as_str()).collect();
            return Err(CommandError::usage(format!(
                "{op} matches several operations: {}",
                names.join(", ")
            ))
            .into());
        }
    };
    let all = operation.redis_keys();
    match args.output {
        Output::Text => session.ui.data(history::page(session.ui.view(), &operation, &records))?,
        Output::Json => {
            let document = json!({ "format": 1, "operation": operation, "changes": records });
            session.ui.data(document::pretty(&document))?;
        }
        Output::Jsonl => {
            for record in &records {
                session.ui.data(document::line(record))?;
            }
        }
    }
    session.ui.flush()?;
    if all > records.len() as u64 {
        session.ui.status(&format!("The first {} of {all}; --limit shows more.", records.len()));
    }
    Ok(Exit::Done)
}

/// The name of the last operation.
fn last(path: &Path) -> Result<String, CommandError> {
    if let Some((operations, _)) = each(path, |_, _| {})?
        && let Some(last) = operations.last()
    {
        return Ok(last.op.clone());
    }
    Err(CommandError::new(Exit::No, "the audit log has no operation")
        .hint("`idemctl log` lists the operations"))
}
