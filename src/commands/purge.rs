//! `idemctl purge`: counts many records, asks for a name to confirm, and removes each record only
//! if it has not changed since it was read.
//!
//! The path of a change:
//! 1. `commands/purge/rule.rs` turns the options into a `PurgeRule`.
//!    `domain/select/selection.rs` applies the filters.
//! 2. `change/bulk/source.rs` takes the records from a scan: `scan.rs` takes pages from
//!    `store/read/keyspace_scan.rs`, `store/read/scan_nodes.rs` takes them from all masters in
//!    turn, and `store/read/scan_page.rs` sends SCAN, with the reads of the page before, on the
//!    connection of each node. Named keys are read as `inspect` reads them.
//! 3. `change/bulk/bulk_run.rs` counts the records (`change/bulk/selected_counts.rs`), unless --yes
//!    or --confirm makes that unnecessary. It then changes them in batches of up to 500 records,
//!    while `change/bulk/read_ahead.rs` reads the next ones. `change/bulk/recheck.rs` selects each
//!    record again. It also reads it again (`store/read/for_change.rs`), unless it was read exactly
//!    enough within the last second.
//! 4. `change/bulk/change_batch.rs` and `change/journal.rs` pass the batch to
//!    `store/change/apply.rs`. It writes and syncs the backup of a few calls before it makes them.
//! 5. `store/change/batch.rs` splits the batch into smaller ones, and builds each call of
//!    `lua/admin/change_many_if_same.lua`: the Redis keys, what was read at each, and the command.
//!    `store/change/writer.rs` notes the masters before the call. After it, it detects a failover
//!    and waits for replicas. In between, `store/change/send.rs` sends the call, and reads the
//!    records back if the reply is lost. The script compares every record first, then changes those
//!    that are unchanged.
//! 6. `store/cluster/routing.rs` and `store/cluster/node.rs` choose the node (or the one server, if
//!    it is no cluster). On a cluster, `store/cluster/scripted.rs` calls the script by its digest,
//!    and again with its text after NOSCRIPT. `store/connection/connection.rs` queues the bytes,
//!    and `store/connection/transport.rs` writes them to the socket.
//! 7. Back: each change has an `Outcome`, which `change_batch.rs` counts in `OutcomeCounts`; the
//!    journal logs what was done or is unknown. `print_outcome` prints the counts, and returns an
//!    error or an interruption with its exit code (`exit::between`). Otherwise `with_named_keys`
//!    decides it.

pub mod apply;
mod rule;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::rule::LimitArgs;
use self::rule::{ChoiceArgs, PurgeRule};
use crate::args::{ChangeArgs, Output, PlanArgs, ScanCountArgs, SchemaArgs, ThresholdArgs};
use crate::change::bulk::{BulkOptions, BulkRule as _, BulkRun, Named, warn_of_refusal};
use crate::change::removal_plan::PlanWriter;
use crate::change::{
    in_backup, print_left, print_read_back, print_way_back, require_finished, write_report,
};
use crate::domain::change::outcome_counts::Ended;
use crate::domain::schema::{Catalog, State};
use crate::domain::select::Rate;
use crate::domain::select::named_keys::NamedKeys;
use crate::exit::{self, CommandError, Exit};
use crate::owner_check::OwnerCheck;
use crate::render::change::{purge_report, record_table};
use crate::render::{coverage, escape, name, words};
use crate::scan::{explain_nothing, show_coverage, show_none};
use crate::session::Session;
use crate::session::key_list::KeyList;

/// Remove many records, each only if it has not changed
///
/// Counts the selected records and shows a sample. After you type the server's name (host:port/db)
/// or the context's name, purge backs up and removes the selected records. If there are more than
/// 10,000, a second scan finds them again. purge never removes more than the number shown, or
/// --max. With --yes or --confirm, and without --max and --max-percent, it removes immediately,
/// without counting first. A record that completes, is renewed or re-acquired before its removal
/// stays. purge reads the state from the beginning of the value, as `list` does.
///
/// Without --state, purge removes only completed records. It removes locks only with --state
/// in-progress. It removes unreadable values only with --state unreadable or --finding unreadable,
/// together with --schema and one of these: --prefix, a --match with fixed text, or keys.
/// Schemas without a fixed prefix (go-chi) also need --schema and one of
/// these. purge never removes a value in a format that the schema does not write.
///
/// Exit status 3 if records were skipped because their age is only estimated, or because a value is
/// too large to be read completely, or matches no format of the schema although its beginning does.
/// Also 3 if a named key has no record, is ambiguous, or has
/// another format; without options that filter the keys, also if it is locked.
#[derive(Debug, Default, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    limit: LimitArgs,

    /// Remove at most this many records per second, e.g. 500/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    rate: Option<Rate>,

    /// Output format
    ///
    /// `json` and `jsonl` both print one object, `jsonl` on one line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    page: ScanCountArgs,

    #[command(flatten)]
    change_args: ChangeArgs,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let plan = PlanWriter::open(session, &args.change_args, &args.plan, "purge", false).await?;
    // A percentage of all records is known only if all of them are read.
    let reads_all = args.limit.max_percent.is_some();
    let mut key_list = KeyList::of(&args.choice.keys, session)?;
    let rule = PurgeRule::new(
        session,
        &args.choice,
        &args.schemas,
        &args.thresholds,
        reads_all,
        key_list.as_mut(),
    )?;
    if let Some(remark) = args.choice.select.filter.remark(&rule.scope().catalog) {
        session.ui.status(&remark);
    }
    // A dry run may select broadly, because it changes nothing and plans nothing.
    if let Err(error) = rule.check_narrow(&args.choice, &args.schemas) {
        if plan.is_some() || !args.change_args.confirm_args.dry_run {
            return Err(error.into());
        }
        warn_of_refusal(session, error);
    }
    remove(session, &args, &rule, key_list.map(Named::Keys), plan, None).await
}

/// Removes the records that the rule selects, or plans it, or only shows them. `apply` does so with
/// the records of a plan.
///
/// # Errors
/// As every change.
async fn remove(
    session: &mut Session,
    args: &Args,
    rule: &PurgeRule,
    named: Option<Named>,
    plan: Option<PlanWriter>,
    owners: Option<OwnerCheck>,
) -> Result<Exit> {
    let only_shows = args.change_args.confirm_args.dry_run || plan.is_some();
    let planner = &args.change_args.confirm_args.planner;
    // A dry run gets no `Writer`, without which nothing can be changed.
    let confirm_args = if only_shows { None } else { Some(&args.change_args.confirm_args) };
    let scan_options = args.page.scan_options();
    let mut purge = BulkRun::open(session, rule, confirm_args, scan_options, named).await?;
    purge.check_removal().await?;
    purge.plan = plan;

    // The limit holds for the second scan too, because more records may be selected by then.
    let mut limit = u64::MAX;
    // A person or an option decides by the number of selected records.
    let asks = args.change_args.confirm_args.asks_somebody(session);
    // A plan is read to its end before any of its records is removed.
    if only_shows || asks || args.limit.is_given() || planner.is_some() {
        purge.count(session, true).await?;
        let is_complete = purge.selected.unreachable.is_none();
        show(session, args, &purge, is_complete).await?;
        limit = args.limit.limit_for(purge.selected.tally.total(), purge.selected.records)?;
    }
    if only_shows || limit == 0 {
        report(session, args, &purge)?;
        let named = purge.selected.coverage.named.clone();
        let keys = purge.selected.keys;
        let exit = purge.end_unchanged(session)?;
        return with_named_keys(exit, &named, keys, args.choice.select.narrows());
    }

    let records = words::counted(purge.selected.tally.total(), "record");
    let question = match planner {
        Some(planner) => format!("Apply the plan of {} to {records}?", escape::again(planner)),
        None => format!("Purge {records}?"),
    };
    let confirm_args = &args.change_args.confirm_args;
    confirm_args.confirm_by_name(session, &question, &purge.server, &purge.interrupt).await?;
    let options = BulkOptions {
        command: if planner.is_some() { "apply" } else { "purge" },
        audit_word: purge.rule.done(),
        removes: true,
        rate: args.rate,
        // Only a sweep waits, to see whether a worker renews its lock. In a purge, the operator
        // decides which records to remove.
        grace: Duration::ZERO,
        owners,
        limit,
    };
    // An error is reported together with what was changed before it.
    let result = purge.change(session, &args.change_args, options).await;
    if purge.outcomes.ended == Ended::NothingTried {
        result?;
        return Ok(Exit::Done);
    }
    print_outcome(session, args, &purge, result).await?;
    let outcomes = &purge.outcomes;
    // Records remain that the same command would not remove either.
    let is_partial = !outcomes.partly.is_empty()
        || outcomes.too_large + outcomes.unrecognised > 0
        || (planner.is_some() && outcomes.done < purge.selected.tally.total());
    let exit = if is_partial { Exit::Partial } else { exit::judged(false, &purge.covered()) };
    with_named_keys(
        exit,
        &purge.selected.coverage.named,
        purge.selected.keys,
        args.choice.select.narrows(),
    )
}

/// The exit code with the keys that were named one by one: partial if one was not found, is
/// ambiguous, or was left alone. `keys` are the keys that were named. After a scan no key is named,
/// and `keys` does not matter.
///
/// # Errors
/// Usage: each of the named keys is ambiguous.
fn with_named_keys(exit: Exit, named: &NamedKeys, keys: u64, is_filtered: bool) -> Result<Exit> {
    if named.ambiguous > 0 && named.ambiguous == keys {
        return Err(CommandError::usage(
            "every key names more than one record; nothing was changed",
        )
        .hint(name::HINT)
        .into());
    }
    if exit == Exit::Done && named.has_left_any(is_filtered) {
        return Ok(Exit::Partial);
    }
    Ok(exit)
}

/// Warns of what the Redis keys of the selected locks hold beside the locks.
fn warn_of_lost_data(session: &mut Session, catalog: &Catalog, names: &BTreeSet<String>) {
    for schema in catalog.all() {
        let Some(holds) = &schema.write.lock_holds else { continue };
        if names.contains(&schema.name) {
            session.ui.warning(&format!(
                "a lock of {} also holds {holds}, which is removed, too",
                schema.name
            ));
        }
    }
}

/// Shows the selected records, and the consequence of their removal. Only a complete scan can
/// report that there are none.
async fn show(
    session: &mut Session,
    args: &Args,
    purge: &BulkRun<'_, PurgeRule>,
    is_complete: bool,
) -> Result<()> {
    let selected = &purge.selected;
    let catalog = &purge.rule.scope().catalog;
    if let Some(forbidden) = &selected.forbidden {
        session.ui.warning(forbidden);
    }
    if selected.tally.total() == 0 && is_complete {
        let (none, covered) = ("no such records", purge.covered());
        let (of, keys) = (&selected.coverage, selected.keys);
        show_none(session, none, &covered, of, keys, &purge.reader, &purge.server).await;
        // A named record that was found is in this database.
        if selected.coverage.named.left_alone == 0 {
            let others = &selected.keys_of_other_schemas;
            explain_nothing(session, catalog, &purge.reader, others).await;
        }
    } else if selected.tally.total() > 0 {
        if args.output == Output::Text {
            session.ui.page(record_table(&selected.tally, session.ui.view()))?;
            session.ui.flush()?;
        }
        // Without a count before, this is shown after the removal, which may have left records.
        let done = if purge.is_counted { selected.tally.total() } else { purge.outcomes.done };
        if done > 0 && !purge.rule.only_locks && catalog.describe_begin(selected.tally.schemas()) {
            session.ui.status(words::NEXT_IS_FIRST);
        }
        let locked = State::InProgress.as_str();
        if purge.rule.only_locks || selected.tally.groups().any(|((_, state), _)| *state == locked)
        {
            session.ui.warning(words::RUNS_TWICE);
            warn_of_lost_data(session, catalog, selected.tally.schemas());
        } else if catalog.have_separate_locks(selected.tally.schemas()) {
            session.ui.status(
                "A lock beside a result is removed with it, even if its worker is still running.",
            );
        }
    }
    selected.print_skipped(session);
    show_coverage(session, &selected.coverage, catalog);
    Ok(())
}

fn report(session: &mut Session, args: &Args, purge: &BulkRun<'_, PurgeRule>) -> Result<()> {
    let covered = coverage::fields(
        &purge.selected.coverage,
        &purge.rule.scope().catalog,
        purge.selected.keys,
    );
    write_report(
        session,
        args.output,
        &purge_report(&purge.selected.tally, covered, &purge.outcomes),
    )
}

/// Reports how far the purge got, and why records were left alone.
///
/// # Errors
/// The error or the interruption that ended the purge; else the error of stdout.
async fn print_outcome(
    session: &mut Session,
    args: &Args,
    purge: &BulkRun<'_, PurgeRule>,
    result: Result<()>,
) -> Result<()> {
    let outcomes = &purge.outcomes;
    let is_whole = outcomes.ended == Ended::Finished;
    // Counted records were shown before the question. If nothing could be read, it is unknown
    // whether there are records.
    let mut shown = Ok(());
    if !purge.is_counted && (result.is_ok() || purge.selected.keys > 0) {
        shown = show(session, args, purge, is_whole).await;
    }
    // An error of stdout waits until the end, so that the outcome still reaches stderr.
    if shown.is_ok() {
        shown = report(session, args, purge);
    }
    let total = purge.selected.tally.total();
    let done = purge.rule.done();
    let mut so_far = format!("{} {done}", words::counted(outcomes.done, "record"));
    if purge.is_counted || is_whole {
        so_far = format!("{} of {} {done}", outcomes.done, words::counted(total, "record"));
    }
    so_far += &in_backup(outcomes.backup.as_deref());
    print_read_back(session, outcomes.read_back);
    for name in &outcomes.partly {
        session.ui.warning(&format!(
            "{name} was removed only in part, because the cluster keeps its Redis keys in several \
            slots; inspect the key"
        ));
    }
    require_finished(
        result,
        outcomes.ended,
        outcomes.done + outcomes.partly.len() as u64,
        &so_far,
    )?;
    if total > 0 {
        session.ui.status(&so_far);
        print_way_back(session);
    }
    let changed = outcomes.changed_meanwhile + outcomes.renewed;
    let more = [
        (changed, "modified since the scan, or no longer selected"),
        (outcomes.gone, "that expired, or that another client removed"),
        (outcomes.skipped_alive, "whose owner is alive"),
        (outcomes.owner_unknown, "for which --owner-alive gave no result"),
    ];
    print_left(session, "record", outcomes, &more);
    shown
}
