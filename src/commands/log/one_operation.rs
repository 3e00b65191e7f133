//! `idemctl log show`: one operation, and the records that it changed.

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use super::reading::{each_change, is_there, read};
use crate::args::Output;
use crate::exit::{CommandError, Exit};
use crate::render::{document, history};
use crate::session::Session;
use crate::session::operations::named;

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
    let (folder, operations) = read(session)?;
    let operation = match &args.op {
        Some(op) => named(&operations, op)?,
        None => operations
            .all()
            .last()
            .ok_or_else(|| CommandError::new(Exit::No, "the audit log has no operation"))?,
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut records = Vec::new();
    each_change(session, &folder, operation, |entry| {
        if records.len() < limit {
            records.push(entry);
        }
    })?;
    let all = operation.totals.redis_keys;
    let operation = history::ShownOperation::of(operation, is_there(operation));
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
