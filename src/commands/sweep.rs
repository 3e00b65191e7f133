//! `idemctl sweep`: finds the locks that no worker will release, and removes them after two checks.

mod orphans;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgGroup, Args as ClapArgs};

use self::orphans::{ActionArg, Orphans, SoughtArgs};
use crate::args::{ChangeArgs, Output, PlanArgs, ScanArgs, SchemaArgs, parse_duration};
use crate::change::bulk::{BulkOptions, BulkRule as _, BulkRun, warn_of_refusal};
use crate::change::removal_plan::PlanWriter;
use crate::change::{
    in_backup, print_left, print_read_back, print_way_back, require_finished, write_report,
};
use crate::domain::history::EXPIRED;
use crate::exit::{self, CommandError, Exit};
use crate::owner_check::OwnerCheck;
use crate::render::change::{orphan_table, sweep_report};
use crate::render::{coverage, words};
use crate::scan::{explain_nothing, show_coverage, show_none};
use crate::session::Session;

/// Find locks that no worker will release, and remove them
///
/// Counts the stuck locks of the selected schemas and asks. Then waits --grace and reads each
/// lock again. A lock that changed or got more time stays, because a worker is still running. Each
/// remaining lock is backed up and removed, unless it changed after the second check. sweep never
/// removes a stored result, or a value in a format that the schema does not write. Schemas without
/// a fixed prefix (go-chi) are swept only if --schema names them, and with
/// --prefix or a --match with fixed text.
///
/// A stuck lock never expires, whatever TTLs the deployment sets. sweep never selects a lock
/// because of a schema's default TTL. It counts such locks and names the option that sets the
/// deployment's own TTL.
///
/// --include adds locks with more time left than the stated lock TTL (`excess-ttl`), locks next to
/// a stored result (`leftover-lock`), and values that cannot be decoded where a lock is expected
/// (`unreadable`).
///
/// If the --owner-alive command ends with another status, by a signal, or not within 10s, the lock
/// stays and sweep exits with 3. It also exits with 3 if it leaves a lock whose value matches no
/// format of the schema although its beginning does. Schemas that store no owner ignore --owner-alive.
///
/// For monitoring use `idemctl check`, which changes nothing.
#[derive(Debug, ClapArgs)]
#[command(
    group = ArgGroup::new("sought")
        .args(["orphaned", "older_than", "include"])
        .required(true)
        .multiple(true)
)]
pub struct Args {
    /// Time between the two checks
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_duration,
        allow_hyphen_values = true,
        default_value = "2s"
    )]
    grace: Duration,

    /// Keep locks for whose owner CMD exits with 0 (alive); 1 means dead
    ///
    /// CMD is a shell command that gets the owner as $1, once for each lock. It exits with 0 if the
    /// owner is alive and with 1 if not. In its environment are IDEMCTL_OWNER, IDEMCTL_KEY,
    /// IDEMCTL_SCHEMA, and in milliseconds since 1970: IDEMCTL_LOCK_STARTED, if the value contains
    /// that time; otherwise IDEMCTL_LOCK_STARTED_AFTER, the earliest time that a stated lock TTL
    /// permits; and IDEMCTL_DEADLINE, if the lock expires. An unknown time is unset. A process that
    /// started after its lock is another one with the same name.
    #[arg(long, value_name = "CMD")]
    owner_alive: Option<OsString>,

    /// Action on the locks
    #[arg(
        long,
        value_name = "ACTION",
        value_enum,
        default_value_t = ActionArg::Unlock,
        conflicts_with = "plan"
    )]
    action: ActionArg,

    /// Output format
    ///
    /// `json` and `jsonl` both print one object, `jsonl` on one line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    sought: SoughtArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    change_args: ChangeArgs,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let plan = PlanWriter::open(
        session,
        &args.change_args,
        &args.plan,
        "sweep",
        args.owner_alive.is_some(),
    )
    .await?;
    let only_shows = args.change_args.confirm_args.dry_run || plan.is_some();
    let orphans = Orphans::new(session, &args.sought, args.action, &args.schemas)?;
    if let Some(remark) = args.sought.filter.remark(&orphans.scope().catalog) {
        session.ui.status(&remark);
    }
    let scan_options = args.scan.scan_options();
    if scan_options.from_replicas && !only_shows {
        let message = "--read-from replica needs --dry-run, because changes must not rely on a \
            replica";
        return Err(CommandError::usage(message).into());
    }
    // A dry run of a sweep that would be refused must not look as if there were nothing to sweep.
    if !only_shows || plan.is_some() || orphans.changes_unreadable() {
        orphans.check_narrow(&args.schemas)?;
    } else if let Err(error) = orphans.check_narrow(&args.schemas) {
        warn_of_refusal(session, error);
    }
    let leave = if only_shows { None } else { Some(&args.change_args.confirm_args) };
    let mut sweep = BulkRun::open(session, &orphans, leave, scan_options, None).await?;
    if args.action == ActionArg::Unlock {
        sweep.check_removal().await?;
    }
    sweep.plan = plan;

    // A lock that expires by itself is removed only if --owner-alive reports that its owner is
    // dead.
    let asks_owners = args.owner_alive.is_some();
    sweep.count(session, asks_owners).await?;
    if let Some(forbidden) = &sweep.selected.forbidden {
        session.ui.warning(forbidden);
    }
    sweep.outcomes.left_to_expire = sweep.selected.left_to_expire;
    show(session, &args, &sweep).await?;
    let count = sweep.selected.tally.total() - sweep.outcomes.left_to_expire;
    if only_shows || count == 0 {
        report(session, &args, &sweep)?;
        return sweep.end_unchanged(session);
    }

    let confirm_args = &args.change_args.confirm_args;
    let locks = words::counted(count, "lock");
    let question = match args.action {
        ActionArg::Unlock => format!("Remove {locks}?"),
        ActionArg::Expire => format!("Set the lock TTL on {locks}?"),
    };
    confirm_args.confirm(session, &question, &sweep.server, &sweep.interrupt).await?;
    let removes = args.action == ActionArg::Unlock;
    let options = BulkOptions {
        command: "sweep",
        audit_word: if removes { "swept" } else { EXPIRED },
        removes,
        rate: None,
        grace: args.grace,
        owners: args.owner_alive.clone().map(OwnerCheck::new),
        limit: u64::MAX,
    };
    let result = sweep.change(session, &args.change_args, options).await;
    print_outcome(session, &args, &sweep, result)
}

/// Shows the locks that were found, and what will happen to them.
async fn show(session: &mut Session, args: &Args, sweep: &BulkRun<'_, Orphans>) -> Result<()> {
    let selected = &sweep.selected;
    let catalog = &sweep.rule.scope().catalog;
    let total = selected.tally.total();
    let left = sweep.outcomes.left_to_expire;
    // A node that was not read may have such locks, so only a complete scan reports that none
    // exist.
    if total == 0 && selected.unreachable.is_none() {
        // There may be locks without expiry that were not sought, or that a filter leaves out.
        let seeks_all = args.sought.orphaned && !args.sought.filter.narrows();
        let none = if seeks_all { "no stuck locks" } else { "no locks were selected" };
        show_none(
            session,
            none,
            &sweep.covered(),
            &selected.coverage,
            selected.keys,
            &sweep.reader,
            &sweep.server,
        )
        .await;
        explain_nothing(session, catalog, &sweep.reader, &selected.keys_of_other_schemas).await;
    } else if total > 0 && args.output == Output::Text {
        session.ui.page(orphan_table(&selected.tally, session.ui.view()))?;
        session.ui.flush()?;
        // The table shows three keys of each finding, and the operator has to see all before
        // deciding.
    }
    if left > 0 {
        session.ui.status(&format!("Left to expire: {}.", words::counted(left, "lock")));
    }
    if args.owner_alive.is_some() && selected.without_owner > 0 {
        let locks = words::counted(selected.without_owner, "lock");
        session.ui.warning(&format!("--owner-alive is not asked about {locks} without an owner"));
    }
    if total > left {
        match args.action {
            ActionArg::Unlock => {
                if catalog.describe_begin(selected.tally.schemas()) {
                    session.ui.status(words::NEXT_EXECUTES);
                }
                session.ui.warning(words::RUNS_TWICE);
            }
            ActionArg::Expire => session.ui.status(
                "Each lock gets the configured lock TTL; locks with less time left are left \
                unchanged.",
            ),
        }
    }
    selected.print_skipped(session);
    show_coverage(session, &selected.coverage, catalog);
    Ok(())
}

fn report(session: &mut Session, args: &Args, sweep: &BulkRun<'_, Orphans>) -> Result<()> {
    let selected = &sweep.selected;
    let covered = coverage::fields(&selected.coverage, &sweep.rule.scope().catalog, selected.keys);
    write_report(
        session,
        args.output,
        &sweep_report(&selected.tally, &sweep.rule.codes(), covered, &sweep.outcomes),
    )
}

/// Reports how far the sweep got, and why locks were left alone.
///
/// # Errors
/// How the sweep ended, which matters more than a stdout that cannot be written.
fn print_outcome(
    session: &mut Session,
    args: &Args,
    sweep: &BulkRun<'_, Orphans>,
    result: Result<()>,
) -> Result<Exit> {
    let shown = report(session, args, sweep);
    let outcomes = &sweep.outcomes;
    let backup = in_backup(outcomes.backup.as_deref());
    let total = sweep.selected.tally.total();
    let so_far = format!("{} of {} done{backup}", outcomes.done, words::counted(total, "lock"));
    print_read_back(session, outcomes.read_back);
    require_finished(result, outcomes.ended, outcomes.done, &so_far)?;
    session.ui.status(&format!("Swept: {so_far}"));
    if outcomes.done > 0 {
        print_way_back(session);
    }
    let because = match &outcomes.owner_unknown_because {
        Some(why) => format!(" ({why})"),
        None => String::new(),
    };
    let undecided = format!("for which --owner-alive gave no result{because}");
    let changed = outcomes.changed_meanwhile + outcomes.gone;
    let more = [
        (changed, "modified or removed since the first check, or no longer selected"),
        (outcomes.renewed, "renewed or re-acquired since the first check"),
        (outcomes.skipped_alive, "whose owner is alive"),
        (outcomes.left_to_expire, "that will expire"),
        (outcomes.owner_unknown, undecided.as_str()),
    ];
    print_left(session, "lock", outcomes, &more);
    shown?;
    if outcomes.owner_unknown > 0 {
        session.ui.hint(
            "fix the command, and sweep again; it must exit with status 0 for a living owner and 1 \
            for a dead one",
        );
    }
    // Locks that the operator wanted to remove may be among these.
    if outcomes.owner_unknown > 0 || outcomes.too_large > 0 || outcomes.unrecognised > 0 {
        return Ok(Exit::Partial);
    }
    Ok(exit::judged(false, &sweep.covered()))
}
