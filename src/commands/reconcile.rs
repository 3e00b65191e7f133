//! `idemctl reconcile`: finds out from the provider how operations ended whose locks were left
//! behind, and completes or releases these locks.
//!
//! The path of a run:
//! 1. `reconcile/find.rs` finds the locks: without expiry, or known to be old.
//! 2. `reconcile/hold.rs` extends those that would end, so that no retry executes meanwhile.
//! 3. `reconcile/reconciliation.rs` asks about each (`ask_program.rs`), and `reconcile/plan.rs`
//!    decides what to do. A response is tried on a temporary local Redis.
//! 4. One table, and one question.
//! 5. `reconcile/act.rs` makes the service's own steps. Before a release, the program is asked a
//!    second time.
//! 6. Locks that were not changed get their former deadlines back.

mod act;
mod find;
mod hold;
mod lock;
mod lock_report;
mod notice;
mod options;
mod plan;
mod reconciliation;

use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use self::find::{Extensions, Found, LockSearch};
use self::lock::{Fate, ReconciledLock};
use self::lock_report::Counts;
pub use self::options::Args;
use self::reconciliation::{Changes, Reconciliation};
use crate::args::Output;
use crate::change::bulk::check_narrow;
use crate::change::{DRY_RUN, Journal, in_backup, write_report};
use crate::domain::change::outcome_counts::Ended;
use crate::domain::reconcile::ProviderRow;
use crate::domain::record::{GivenKey, age};
use crate::domain::schema::Catalog;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::owner_check::OwnerCheck;
use crate::render::words;
use crate::scan::show_coverage;
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::RecordReader;

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if args.hold < Duration::from_secs(1) {
        return Err(CommandError::usage("--hold must be at least 1s").into());
    }
    let confirm_args = &args.change_args.confirm_args;
    let dry_run = confirm_args.dry_run;
    let scan_options = args.scan.scan_options();
    if scan_options.from_replicas {
        let message = "--read-from replica is not possible, because a lock may have changed on \
            the master";
        return Err(CommandError::usage(message).into());
    }
    // What the options and the file alone can refuse is refused before the first connection.
    let mut chosen = ChosenLocks::of(&args, session)?;
    let catalog = checked_catalog(session, &args, &mut chosen)?;
    let selection = args.filter.selection(session, &catalog)?;
    let writer = if dry_run { None } else { Some(session.connect_writer(confirm_args).await?) };
    let interrupt = Interrupt::listen()?;
    let mut reader = session.connect_reader().await?.scanning(scan_options);
    let server = reader.name();
    if writer.is_some() {
        // Locks are extended before the question, so it must be possible to answer it.
        confirm_args.check_answerable(session, &server)?;
    }

    let search = LockSearch {
        catalog: &catalog,
        selection,
        older_than_ms: age::millis(args.older_than),
        extensions: Extensions::read(session)?,
        asks_owners: args.owner_alive.is_some(),
    };
    let mut owners = args.owner_alive.clone().map(OwnerCheck::new);
    let found = search.find(session, &mut reader, &mut chosen, owners.as_mut(), &interrupt);
    let mut found = found.await?;
    lock_report::print_left_out(session, &found);
    show_coverage(session, &found.coverage, &catalog);
    let locks = std::mem::take(&mut found.locks);
    if locks.is_empty() {
        session.ui.status(&format!(
            "No locks to reconcile among {} of {server}",
            words::counted(found.keys, if found.is_scan { "Redis key" } else { "named key" })
        ));
        let report = lock_report::json(&[], &found, Ended::NothingTried, None, 0);
        write_report(session, args.output, &report)?;
        return exit_of(&[], found, &catalog, &Counts::default());
    }

    let changes = match writer {
        Some(writer) => {
            // From here on a signal waits until backup and log are whole.
            interrupt.handle_terminate()?;
            Some(Changes {
                writer,
                journal: Journal::open(session, &args.change_args, "reconcile", true)?,
            })
        }
        None => None,
    };
    let mut reconciliation = Reconciliation {
        session,
        confirm_args,
        args: &args,
        locks,
        reader,
        changes,
        interrupt,
        rehearsals: None,
        held_at: Instant::now(),
        next_check: Instant::now(),
        is_asking: false,
        left_out: found.left_out.len(),
        trouble: None,
        must_stop: false,
        behind: None,
        waits_for_replicas: true,
        unreachable: 0,
        not_reached: None,
    };
    let decided = reconciliation.decide(&server).await;
    reconciliation.finish(found, &catalog, decided).await
}

/// The schemas whose locks are reconciled.
///
/// # Errors
/// Usage: there are none, or the selection is not narrow enough to be changed.
fn checked_catalog(
    session: &mut Session,
    args: &Args,
    chosen: &mut ChosenLocks,
) -> Result<Catalog> {
    let catalog = match chosen {
        ChosenLocks::Named(keys) => session.catalog_to_change(&args.schemas, keys)?,
        _ => session.catalog(&args.schemas)?,
    };
    if catalog.scanned().is_empty() {
        let stop = CommandError::usage("no schema to reconcile").hint("name one with --schema");
        return Err(stop.into());
    }
    let key_glob = args.filter.key_glob.as_ref().map(|glob| glob.as_bytes());
    let names_keys = args.from.is_some() || args.keys.are_given();
    check_narrow(&catalog, &args.schemas, key_glob, names_keys, false)?;
    if let Some(remark) = args.filter.remark(&catalog) {
        session.ui.status(&remark);
    }
    Ok(catalog)
}

/// Which locks a run looks at.
enum ChosenLocks {
    /// Those that a scan finds.
    All,
    /// Those of these keys.
    Named(KeyList),
    /// Those of a provider's file, with what it says about each.
    Provided(Vec<ProviderRow>),
}

impl ChosenLocks {
    /// Reads the file or the list of keys.
    ///
    /// # Errors
    /// Usage: it cannot be read, or the first line that is wrong.
    fn of(args: &Args, session: &mut Session) -> Result<Self, CommandError> {
        if let Some(file) = &args.from {
            if options::is_stdin(file) {
                // The prompt then reads the terminal instead of stdin.
                session.ui.stdin_carries_data();
            }
            return Ok(Self::Provided(options::read_provided(file)?));
        }
        if args.keys.are_given() || args.keys.null {
            return Ok(Self::Named(KeyList::of_few(&args.keys, session)?));
        }
        Ok(Self::All)
    }
}

impl LockSearch<'_> {
    /// Finds the locks by a scan, or by the keys that were named. Those of a provider's file have
    /// what it says about each.
    ///
    /// # Errors
    /// As the scan.
    async fn find(
        &self,
        session: &mut Session,
        reader: &mut RecordReader,
        chosen: &mut ChosenLocks,
        owners: Option<&mut OwnerCheck>,
        interrupt: &Interrupt,
    ) -> Result<Found> {
        let finding = async {
            let mut found = match chosen {
                ChosenLocks::All => self.scan(session, reader.clone(), interrupt).await?,
                ChosenLocks::Named(keys) => {
                    self.look_up(reader, &keys.all(find::MOST)?, false).await?
                }
                ChosenLocks::Provided(rows) => {
                    let keys = rows.iter().map(|row| GivenKey::word(row.key.as_bytes()));
                    self.look_up(reader, &keys.collect::<Vec<_>>(), true).await?
                }
            };
            if let Some(owners) = owners {
                found.ask_owners(owners).await?;
            }
            if let ChosenLocks::Provided(rows) = chosen {
                for lock in &mut found.locks {
                    let row = found.named_by.get(&lock.record.seen.keys[0].redis_key);
                    lock.answer = row.map(|row| rows[*row].answer.clone());
                }
            }
            Ok(found)
        };
        match interrupt.unless_raised(finding).await {
            Some(found) => found,
            None => Err(CommandError::interrupted("interrupted").changed_nothing().into()),
        }
    }
}

impl Reconciliation<'_> {
    /// Holds the locks, asks, shows the table, asks the operator, and acts.
    ///
    /// # Errors
    /// Not confirmed, interrupted, or the table cannot be written.
    async fn decide(&mut self, server: &str) -> Result<Ended> {
        // First of all, because a lock may be about to end.
        let hold = self.args.hold;
        if let Err(error) = self.hold(hold).await {
            self.trouble.get_or_insert(error);
        }
        self.start_rehearsals().await;
        if self.may_go_on() {
            self.ask_first().await;
        }
        if self.may_go_on() {
            self.plan().await;
        }
        self.ended()?;
        // What stays unknown is not held any longer.
        self.put_back(|lock| !lock.fate.is_pending() && !lock.is_done_without_result()).await;
        self.ended()?;
        let counts = Counts::of(&self.locks);
        let to_do = counts.to_complete + counts.to_release;
        let ui = &mut self.session.ui;
        let mut is_shown = false;
        if self.args.output == Output::Text {
            ui.page(lock_report::table(&self.locks, ui.view(), ui.is_verbose()))?;
            ui.flush()?;
            is_shown = ui.out_is_terminal();
        }
        let asks = self.changes.is_some() && self.confirm_args.asks_somebody(self.session);
        if asks && to_do > 0 && !is_shown {
            // Nobody is asked about a table that is not shown.
            let ui = &mut self.session.ui;
            let table = lock_report::table(&self.locks, ui.err_view(), ui.is_verbose());
            for line in table.lines() {
                ui.status(line);
            }
        }
        lock_report::print_untested(self.session, &self.locks);
        self.session.ui.status(&format!("Planned: {}", counts.planned(self.left_out)));
        if self.changes.is_none() || to_do == 0 {
            return Ok(Ended::NothingTried);
        }
        let before = self.plans();
        self.hold(hold / 4 * 3).await?;
        self.tell_void_plans(&before);
        self.ended()?;
        let counts = Counts::of(&self.locks);
        let question = format!(
            "Complete {}, and release {}, each if a second answer confirms it?",
            words::counted(counts.to_complete as u64, "lock"),
            words::counted(counts.to_release as u64, "lock")
        );
        self.confirm(&question, server).await?;
        let confirmed_at = Instant::now();
        // Another server may have become the master while the operator thought.
        self.reconnect().await;
        self.keep_held().await;
        self.complete_all().await;
        if self.may_go_on() {
            self.ask_again(confirmed_at).await;
        }
        self.ended()?;
        Ok(Ended::Finished)
    }

    /// Gives the locks that were not changed their deadlines back, and reports.
    async fn finish(
        mut self,
        found: Found,
        catalog: &Catalog,
        decided: Result<Ended>,
    ) -> Result<Exit> {
        let is_interrupted =
            decided.as_ref().is_err_and(|error| exit::of(error) == Exit::Interrupted);
        for lock in &mut self.locks {
            if decided.is_err() && lock.fate.is_pending() {
                lock.fate = Fate::Left("it was not tried".to_owned());
            }
        }
        // An operation that took effect must not be executed again, so its lock is held on, however
        // the run ended: the operator may not have confirmed, and the terminal may be gone.
        self.put_back(|lock| !lock.is_done_without_result()).await;
        if !self.must_stop {
            self.hold_on().await;
        }
        self.look_at_held().await;
        self.look_at_lost().await;
        let mut decided = decided;
        if let Some(trouble) = self.trouble.take()
            && decided.is_ok()
        {
            decided = Err(trouble);
        }
        // If no step could be tried, the run failed as any command without a server does.
        if let Some(error) = self.not_reached.take()
            && decided.is_ok()
            && Counts::of(&self.locks).done() == 0
        {
            decided = Err(error.into());
        }
        let mut backup = None;
        if let Some(Changes { mut journal, .. }) = self.changes.take() {
            if is_interrupted {
                journal.audit_log().stops_early();
            }
            let (file, closed) = journal.close(decided, self.session.now()).await;
            decided = closed;
            backup = file.map(|file| file.display().to_string());
        } else {
            self.session.ui.status(DRY_RUN);
        }
        let counts = Counts::of(&self.locks);
        let ended = match &decided {
            Ok(ended) => *ended,
            Err(_) if is_interrupted => Ended::Interrupted,
            Err(_) => Ended::Failed,
        };
        let shown = write_report(
            self.session,
            self.args.output,
            &lock_report::json(
                &self.locks,
                &found,
                ended,
                backup.as_deref(),
                self.session.now_ms(),
            ),
        );
        let so_far = counts.words(found.left_out.len()) + &in_backup(backup.as_deref());
        if !self.confirm_args.dry_run {
            lock_report::print_locks(self.session, &self.locks);
            self.session.ui.status(&format!("Reconciled: {so_far}"));
        }
        let behind = self.behind.take();
        if let Some(behind) = &behind
            && (decided.is_err() || counts.unknown > 0)
        {
            // Another error matters more.
            self.session.ui.warning(&format!("a change was {behind}"));
        }
        if let Err(error) = decided {
            return Err(stopped(&error, &counts, &so_far).into());
        }
        shown?;
        if counts.unknown == 0
            && let Some(error) = behind
        {
            return Err(error.into());
        }
        exit_of(&self.locks, found, catalog, &counts)
    }
}

/// The error that ended the run, with what is known of the locks.
fn stopped(error: &anyhow::Error, counts: &Counts, so_far: &str) -> CommandError {
    let mut stop = exit::between(error, counts.done() > 0, so_far);
    // Some locks may have been extended.
    stop.changed_nothing = false;
    if counts.unknown > 0 {
        stop.exit = Exit::OutcomeUnknown;
    } else if exit::of(error) == Exit::Interrupted {
        stop.exit = Exit::Interrupted;
    }
    stop.hint = Some(match stop.hint {
        // The server was named, because its locks were found.
        Some(hint) if hint != exit::GOES_ON && exit::of(error) != Exit::Unreachable => {
            format!("{hint}; then {}", exit::GOES_ON)
        }
        _ => exit::GOES_ON.to_owned(),
    });
    stop
}

/// Done if every lock is completed or released, and nothing was left out.
fn exit_of(
    locks: &[ReconciledLock],
    found: Found,
    catalog: &Catalog,
    counts: &Counts,
) -> Result<Exit> {
    if counts.unknown > 0 {
        return Ok(Exit::OutcomeUnknown);
    }
    if let Some(error) = found.unreachable {
        return Err(error.into());
    }
    let is_fine = |lock: &ReconciledLock| {
        matches!(
            lock.fate,
            Fate::Completed(_) | Fate::Released(_) | Fate::ToComplete(_) | Fate::ToRelease
        )
    };
    if !locks.iter().all(is_fine) || !found.left_out.is_empty() {
        return Ok(Exit::Partial);
    }
    let scanned = found.is_scan.then_some(catalog);
    Ok(exit::judged(false, &found.coverage.covered(scanned, found.forbidden.as_deref())))
}
