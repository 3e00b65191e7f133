//! `idemctl apply`: makes the removals of a plan.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ChangeArgs, Output, SchemaArgs};
use crate::change::bulk::{BulkOptions, BulkRule, BulkRun, Named, Planned, PlannedAction, Scope};
use crate::change::plan::{Plan, PlannedCommand};
use crate::change::restore::may_go_to;
use crate::change::{
    in_backup, print_left, print_read_back, print_way_back, require_finished, write_report,
};
use crate::domain::change::{purgeable, unlock};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{FieldSet, Record};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::{Rate, Selected};
use crate::exit::{CommandError, Exit};
use crate::owner_check::OwnerCheck;
use crate::render::change::{purge_report, record_table};
use crate::render::{coverage, words};
use crate::scan::{RecordFilter, show_coverage};
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::{KeyAction, ScanOptions};

/// Make the removals of a plan
///
/// A plan is a file that `purge`, `sweep` or `force-unlock` writes with --plan. Another operator can
/// review and apply it within 24 hours. apply reads each record again, and removes it only if type,
/// length, hash and expiry of all its Redis keys are as planned. It does not evaluate filters again.
///
/// apply refuses a plan that has expired, was modified, is from another server, or was made with
/// other schema files.
///
/// Exit status 3 if planned records were left alone, 8 if the only planned record has changed.
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

pub async fn run(session: &mut Session, mut args: Args) -> Result<Exit> {
    let plan = Plan::open(&args.file, session.now())?;
    if plan.header.owner_alive && args.owner_alive.is_none() {
        return Err(plan.refused("it was made with --owner-alive, which apply needs, too").into());
    }
    let records = plan.records;
    let command = plan.header.command;
    let planner = plan.header.planner.clone();
    let mut from = plan.header.from.clone();
    from.taken_at = Some(plan.header.at.clone());
    let reason = &mut args.change_args.confirm_args.reason;
    *reason = reason.take().or_else(|| plan.header.reason.clone());
    let scope = Scope {
        catalog: catalog_of(session, &plan, &args.schemas)?,
        thresholds: Thresholds::default(),
        min_bytes: 0,
        needed_fields: FieldSet::NONE,
        reads_lengths: false,
    };
    let rule = PlanRule { scope, command };

    let only_shows = args.change_args.confirm_args.dry_run;
    let confirm_args = if only_shows { None } else { Some(&args.change_args.confirm_args) };
    let here = session.connect().await?.provenance().await?;
    may_go_to(session, "the plan", &from, &here, false)
        .map_err(|stop| stop.hint("nothing was changed; connect to the server of the plan"))?;
    let named = Some(Named::Plan(Box::new(plan)));
    let mut apply =
        BulkRun::open(session, &rule, confirm_args, ScanOptions::default(), named).await?;
    apply.count(session, true).await?;
    show(session, &args, &apply)?;
    let total = apply.selected.tally.total();
    if only_shows || total == 0 {
        report(session, &args, &apply)?;
        let changed = apply.selected.coverage.named.left_alone;
        apply.end_unchanged(session)?;
        return exit_of(total, changed, records);
    }

    let question =
        format!("Remove {total} of {} that {planner} planned?", words::counted(records, "record"));
    let (confirm_args, interrupt) = (&args.change_args.confirm_args, &apply.interrupt);
    let audit_word = match command {
        PlannedCommand::Purge => {
            confirm_args.confirm_by_name(session, &question, &apply.server, interrupt).await?;
            "purged"
        }
        PlannedCommand::Sweep | PlannedCommand::ForceUnlock => {
            confirm_args.confirm(session, &question, &apply.server, interrupt).await?;
            if command == PlannedCommand::Sweep { "swept" } else { "unlocked" }
        }
    };
    let options = BulkOptions {
        command: "apply",
        audit_word,
        removes: true,
        rate: args.rate,
        grace: Duration::ZERO,
        owners: args.owner_alive.clone().map(OwnerCheck::new),
        limit: u64::MAX,
        planner: Some(planner),
    };
    let result = apply.change(session, &args.change_args, options).await;
    let shown = report(session, &args, &apply);
    let changed = print_outcome(session, &apply, result, records)?;
    shown?;
    exit_of(apply.outcomes.done, changed, records)
}

/// The schemas of the plan's records.
///
/// # Errors
/// Usage: a schema is missing, or its files are not those of the plan.
fn catalog_of(session: &mut Session, plan: &Plan, schemas: &SchemaArgs) -> Result<Catalog> {
    let mut schemas = schemas.clone();
    let mut names = Vec::new();
    for ((schema, ..), name) in &plan.places {
        names.push(OsString::from(name.quoted()));
        if !schemas.schema.contains(schema) {
            schemas.schema.push(schema.clone());
        }
    }
    let catalog = session.catalog_to_change(&schemas, &mut KeyList::of_words(&names)?)?;
    for (name, _, hash) in plan.places.keys() {
        let mut known = catalog.all().iter().filter(|schema| schema.name == *name);
        if !known.any(|schema| schema.files_hash == *hash) {
            return Err(plan.refused(format!("the files of schema {name} have changed")).into());
        }
    }
    Ok(catalog)
}

/// What a plan removes of each record. Its filters were evaluated when it was made.
struct PlanRule {
    scope: Scope,
    command: PlannedCommand,
}

impl BulkRule for PlanRule {
    /// The schema's name and the records' state.
    type Group = (String, &'static str);

    fn scope(&self) -> &Scope {
        &self.scope
    }
}

impl RecordFilter for PlanRule {
    type Plan = Planned<(String, &'static str)>;

    fn select(&self, record: &Record) -> Selected<Self::Plan> {
        let key_indexes = match self.command {
            PlannedCommand::Purge => purgeable::key_indexes(record),
            PlannedCommand::Sweep | PlannedCommand::ForceUnlock => {
                unlock::removable(record).map(|key_index| vec![key_index])
            }
        };
        let Ok(key_indexes) = key_indexes else { return Selected::No };
        Selected::Yes(Planned {
            group: (record.schema.name.clone(), record.state.as_str()),
            age: record.age,
            key_indexes,
            action: PlannedAction::Change(KeyAction::Remove),
            needs_dead_owner: false,
            has_no_owner: false,
        })
    }
}

/// Shows the records that are as planned, and names those that changed.
fn show(session: &mut Session, args: &Args, apply: &BulkRun<'_, PlanRule>) -> Result<()> {
    let selected = &apply.selected;
    if selected.tally.total() > 0 {
        if args.output == Output::Text {
            session.ui.page(record_table(&selected.tally, session.ui.view()))?;
            session.ui.flush()?;
        }
        if selected.tally.groups().any(|((_, state), _)| *state == State::InProgress.as_str()) {
            session.ui.status("If a worker is still running, the operation executes twice.");
        }
    }
    selected.print_skipped(session);
    show_coverage(session, &selected.coverage, &apply.rule.scope().catalog);
    Ok(())
}

fn report(session: &mut Session, args: &Args, apply: &BulkRun<'_, PlanRule>) -> Result<()> {
    let selected = &apply.selected;
    let covered = coverage::fields(&selected.coverage, &apply.rule.scope.catalog, selected.keys);
    write_report(session, args.output, &purge_report(&selected.tally, covered, &apply.outcomes))
}

/// Reports how far the run got, and why records were left alone. Returns how many changed since the
/// plan.
///
/// # Errors
/// The error or the interruption that ended it.
fn print_outcome(
    session: &mut Session,
    apply: &BulkRun<'_, PlanRule>,
    result: Result<()>,
    records: u64,
) -> Result<u64> {
    let outcomes = &apply.outcomes;
    let backup = in_backup(outcomes.backup.as_deref());
    let of = words::counted(records, "planned record");
    let so_far = format!("{} of {of} removed{backup}", outcomes.done);
    print_read_back(session, outcomes.read_back);
    for name in &outcomes.partly {
        session.ui.warning(&format!("{name} was removed only in part; inspect the key"));
    }
    let touched = outcomes.done + outcomes.partly.len() as u64;
    require_finished(result, outcomes.ended, touched, &so_far)?;
    session.ui.status(&so_far);
    if touched > 0 {
        print_way_back(session);
    }
    let owners = [
        (outcomes.skipped_alive, "whose owner is alive"),
        (outcomes.owner_unknown, "for which --owner-alive gave no result"),
    ];
    let mut changed = records.saturating_sub(touched + outcomes.unknown + outcomes.unrecognised);
    changed = changed.saturating_sub(outcomes.too_large + owners[0].0 + owners[1].0);
    let more = [(changed, "changed since the plan"), owners[0], owners[1]];
    print_left(session, "record", outcomes, &more);
    Ok(changed)
}

/// The exit code if so many of the planned records were removed, or would be, and so many changed.
///
/// # Errors
/// Changed: the only record of the plan has changed.
fn exit_of(removed: u64, changed: u64, records: u64) -> Result<Exit> {
    if changed == 1 && records == 1 {
        let message = "the record changed since the plan";
        return Err(CommandError::new(Exit::Changed, message).changed_nothing().into());
    }
    Ok(if removed == records { Exit::Done } else { Exit::Partial })
}
