//! `idemctl apply`: makes the removals of a plan, as a purge of its records.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args as ClapArgs;

use super::rule::PurgeRule;
use crate::args::{ChangeArgs, Output, SchemaArgs};
use crate::change::bulk::Named;
use crate::change::removal_plan::{Plan, PlanHeader, UNUSABLE};
use crate::change::restore::may_go_to;
use crate::domain::change::provenance::Provenance;
use crate::domain::record::RecordName;
use crate::domain::schema::Catalog;
use crate::domain::select::Rate;
use crate::exit::{CommandError, Exit};
use crate::owner_check::OwnerCheck;
use crate::session::Session;
use crate::session::key_list::KeyList;

/// Make the removals of a plan
///
/// A plan is a file that `purge`, `sweep` or `force-unlock` writes with --plan. Another operator can
/// review it, and apply it within 24 hours. apply reads each record again, and removes it only if
/// the type, length, hash and expiry of all its Redis keys are as planned. It does not evaluate
/// filters again.
///
/// apply refuses a plan that has expired or is damaged, that is from another server, or that was
/// made with other schema files.
///
/// Exit status 3 if planned records were left alone.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Plan to apply
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Keep locks for whose owner CMD exits with 0 (alive), as in `sweep`
    ///
    /// Required if `sweep` made the plan with --owner-alive.
    #[arg(long, value_name = "CMD")]
    owner_alive: Option<OsString>,

    /// Remove at most this many records per second, e.g. 500/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    rate: Option<Rate>,

    /// Output format
    ///
    /// `json` and `jsonl` both print one object, `jsonl` on one line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    change_args: ChangeArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let Args { file, owner_alive, rate, output, mut change_args, schemas } = args;
    let shown = file.display().to_string();
    let plan = Plan::open(file).with_context(|| format!("{UNUSABLE} ({shown})"))?;
    let header = &plan.header;
    let expires_at = humantime::parse_rfc3339(&header.expires_at);
    let is_valid = expires_at.is_ok_and(|at| at > session.now());
    ensure!(is_valid, CommandError::usage("the plan has expired"));
    let why = "the plan was made with --owner-alive, so apply needs it, too";
    ensure!(!header.owner_alive || owner_alive.is_some(), CommandError::usage(why));
    let begin = &header.begin;
    let from = Provenance { taken_at: Some(begin.at.clone()), ..header.place.clone() };
    let here = session.connect().await?.provenance().await?;
    let hint = "nothing was changed; connect to the server of the plan";
    may_go_to(session, "the plan", &from, &here, false).map_err(|stop| stop.hint(hint))?;
    let only_locks = begin.command != "purge";
    let rule = PurgeRule::of_plan(catalog_of(session, header, schemas)?, only_locks);

    let confirm_args = &mut change_args.confirm_args;
    confirm_args.reason = confirm_args.reason.take().or_else(|| begin.reason.clone());
    confirm_args.planner = Some(format!("{}@{}", begin.who, begin.host));
    let args = super::Args { rate, output, change_args, ..super::Args::default() };
    let named = Some(Named::Plan(Box::new(plan)));
    super::remove(session, &args, &rule, named, None, owner_alive.map(OwnerCheck::new)).await
}

/// The schemas of the plan's records.
///
/// # Errors
/// Usage: a schema is missing, or its files are not those of the plan.
fn catalog_of(session: &mut Session, plan: &PlanHeader, mut args: SchemaArgs) -> Result<Catalog> {
    let mut keys = Vec::new();
    for text in plan.schemas.keys() {
        keys.push(OsString::from(text));
        args.schema.extend(RecordName::parse(text.as_bytes()).map(|name| name.schema));
    }
    let catalog = session.catalog_to_change(&args, &mut KeyList::of_words(&keys)?)?;
    for (text, hash) in &plan.schemas {
        let is_same = catalog.by_name().any(|schema| {
            schema.files_hash == *hash && RecordName::new(schema, b"").text() == *text
        });
        let why = format!("the schema of {text} is not the one of the plan");
        ensure!(is_same, CommandError::usage(why));
    }
    Ok(catalog)
}
