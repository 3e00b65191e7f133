//! One run of `purge`, `sweep` or `apply`: the records that a rule selects are counted and changed, and the
//! outcome of each is counted. A batch here is up to 500 records; `store/change/batch.rs` splits it
//! into the smaller batches that are sent together.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::change_batch::{BatchChanger, change_of};
use super::read_ahead::{PendingRecords, ReadAhead};
use super::recheck::{Rechecked, SelectedRecord, recheck};
use super::rule::{BulkRule, PlannedAction};
use super::selected_counts::{MAX_KEPT_RECORDS, SelectedCounts};
use super::source::{Named, RecordSource};
use crate::args::{ChangeArgs, ConfirmArgs};
use crate::change::removal_plan::PlanWriter;
use crate::change::{DRY_RUN, Journal, RateLimiter};
use crate::domain::change::outcome_counts::{Ended, OutcomeCounts};
use crate::domain::covered::Covered;
use crate::domain::select::Rate;
use crate::exit::{self, Exit};
use crate::interrupt::Interrupt;
use crate::owner_check::{OwnerAnswer, OwnerCheck};
use crate::render::words::count;
use crate::scan::ScanEnd;
use crate::session::Session;
use crate::store::{Change, KeyAction, RecordReader, ScanOptions, StoreError, Writer};
use crate::terminal::frame::ProgressLine;

/// A run, the records that it found, and their outcomes.
pub struct BulkRun<'a, R: BulkRule> {
    pub rule: &'a R,
    /// Reads records; it never changes any.
    pub reader: RecordReader,
    /// `None` for a dry run, and once the change has begun.
    writer: Option<Writer>,
    /// The server's name, for people.
    pub server: String,
    /// What names the records one by one, if anything does.
    named: Option<Named>,
    /// The plan that a dry run writes, if it writes one.
    pub plan: Option<PlanWriter>,
    pub interrupt: Interrupt,
    /// The selected records, counted before the prompt, or else while they are changed.
    pub selected: SelectedCounts<R::Group>,
    /// True once all selected records were counted.
    pub is_counted: bool,
    /// The outcomes of the records.
    pub outcomes: OutcomeCounts,
}

/// How the selected records are changed.
pub struct BulkOptions {
    /// The command, as the log and the backup name it.
    pub command: &'static str,
    /// What the audit log calls the change.
    pub audit_word: &'static str,
    /// True if Redis keys are removed, which needs a backup.
    pub removes: bool,
    /// The most records that are changed per second.
    pub rate: Option<Rate>,
    /// The time between the read that selected a record and the recheck.
    pub grace: Duration,
    /// The command that is asked whether an owner is alive.
    pub owners: Option<OwnerCheck>,
    /// The most records that are changed.
    pub limit: u64,
}

impl<'a, R: BulkRule> BulkRun<'a, R> {
    /// Connects. With `confirm_args` the run may change records once it is confirmed; without them
    /// it is a dry run.
    ///
    /// # Errors
    /// As every read; for a run that may change records, as every change.
    pub async fn open(
        session: &mut Session,
        rule: &'a R,
        confirm_args: Option<&ConfirmArgs>,
        scan_options: ScanOptions,
        named: Option<Named>,
    ) -> Result<Self> {
        let writer = match confirm_args {
            Some(args) => Some(session.connect_writer(args).await?),
            None => None,
        };
        let interrupt = Interrupt::listen()?;
        let reader = session.connect_reader().await?.scanning(scan_options);
        let server = writer.as_ref().map_or_else(|| reader.name(), Writer::name);
        Ok(Self {
            rule,
            reader,
            writer,
            server,
            named,
            plan: None,
            interrupt,
            selected: SelectedCounts::default(),
            is_counted: false,
            outcomes: OutcomeCounts::default(),
        })
    }

    /// Checks, before anything is shown, that the Redis user may remove Redis keys.
    ///
    /// # Errors
    /// The user may not.
    pub async fn check_removal(&self) -> Result<()> {
        if let Some(writer) = &self.writer {
            writer.require(&["UNLINK", "idemctl"]).await?;
        }
        Ok(())
    }

    /// Counts the records that the rule selects. Locks that may have a living owner are left to
    /// expire, unless `--owner-alive` can be asked about them (`asks_owners`). Nothing is changed,
    /// whatever the error.
    ///
    /// # Errors
    /// The server could not be asked; Ctrl-C.
    pub async fn count(&mut self, session: &Session, asks_owners: bool) -> Result<()> {
        let progress = session.ui.progress("keys scanned");
        let source = RecordSource::open(
            self.rule,
            self.reader.clone(),
            self.named.as_mut(),
            &self.interrupt,
            progress,
        )
        .await?;
        let mut reader = self.reader.clone();
        self.selected = SelectedCounts::count(
            self.rule,
            source,
            &mut reader,
            asks_owners,
            self.plan.as_mut(),
            &self.interrupt,
        )
        .await?;
        self.outcomes.unrecognised = self.selected.unrecognised;
        self.outcomes.first_unrecognised.clone_from(&self.selected.first_unrecognised);
        self.is_counted = true;
        Ok(())
    }

    /// Ends a run that changes nothing, and writes its plan if it makes one.
    ///
    /// # Errors
    /// `Exit::Partial`: nodes of a cluster were left out. Then a plan is not written.
    pub fn end_unchanged(self, session: &mut Session) -> Result<Exit> {
        if self.writer.is_none() {
            session.ui.status(DRY_RUN);
        }
        if let Some(error) = self.selected.unreachable {
            return Err(error.into());
        }
        let exit = exit::judged(false, &self.covered());
        if let Some(plan) = self.plan {
            plan.finish(session, self.selected.tally.total())?;
        }
        Ok(exit)
    }

    /// What was read of the records that the rule asks for.
    pub fn covered(&self) -> Covered {
        let scanned = self.named.is_none().then_some(&self.rule.scope().catalog);
        self.selected.covered(scanned)
    }

    /// Changes the records kept since the count, or, if none were kept, those that the source finds
    /// now. `outcomes` has the outcomes so far, whatever the error. It does not count a record that
    /// the recheck could not read, or whose change was not made because of an error. Until the
    /// backup and the audit log are open, the run itself counts as [`Ended::NothingTried`].
    ///
    /// # Errors
    /// As every change; `Exit::Partial` if nodes of a cluster were left out.
    pub async fn change(
        &mut self,
        session: &mut Session,
        args: &ChangeArgs,
        options: BulkOptions,
    ) -> Result<()> {
        // Only a dry run has no writer, and it ends before this.
        let Some(writer) = self.writer.take() else { return Ok(()) };
        // From here on SIGTERM, SIGQUIT and SIGHUP wait as Ctrl-C does, until backup and log are
        // whole.
        self.interrupt.handle_terminate()?;
        let unreachable = self.selected.unreachable.take();
        let kept = self.selected.kept.take();
        let mut source = None;
        if kept.is_none() {
            // The progress of the changes is shown, and not that of the scan.
            let hidden = ProgressLine::hidden();
            let keys = self.named.as_mut();
            let reader = self.reader.clone();
            let opened = RecordSource::open(self.rule, reader, keys, &self.interrupt, hidden);
            source = Some(opened.await?);
            // The second scan finds them again.
            self.outcomes.unrecognised = 0;
            self.outcomes.first_unrecognised = None;
        }
        let mut journal = Journal::open(session, args, options.command, options.removes)?;
        let mut changes = ChangeLoop {
            rule: self.rule,
            reader: self.reader.clone(),
            interrupt: &self.interrupt,
            rate_limiter: RateLimiter::new(options.rate),
            grace: options.grace,
            owners: options.owners,
            limit: options.limit,
            total: self.is_counted.then(|| self.selected.tally.total().min(options.limit)),
            batch_changer: BatchChanger {
                session,
                writer,
                journal: &mut journal,
                audit_word: options.audit_word,
            },
            outcomes: &mut self.outcomes,
        };
        // Records that were not counted before the prompt are counted while they are changed.
        let count_into = if self.is_counted { None } else { Some(&mut self.selected) };
        let ended = changes.run(kept.unwrap_or_default(), source, count_into).await;
        if matches!(ended, Ok(Ended::Interrupted)) {
            journal.audit_log().stops_early();
        }
        let (backup, ended) = journal.close(ended, session.now()).await;
        let ended = match (ended, unreachable) {
            (Ok(_), Some(error)) => Err(error.into()),
            (ended, _) => ended,
        };
        self.outcomes.backup = backup.map(|file| file.display().to_string());
        self.outcomes.ended = *ended.as_ref().unwrap_or(&Ended::Failed);
        ended.map(drop)
    }
}

/// The changes of a run, one batch after the other.
struct ChangeLoop<'a, R: BulkRule> {
    rule: &'a R,
    reader: RecordReader,
    interrupt: &'a Interrupt,
    rate_limiter: RateLimiter,
    grace: Duration,
    owners: Option<OwnerCheck>,
    limit: u64,
    /// How many records are to be changed, if they were counted.
    total: Option<u64>,
    batch_changer: BatchChanger<'a>,
    outcomes: &'a mut OutcomeCounts,
}

impl<R: BulkRule> ChangeLoop<'_, R> {
    /// Changes the records that were kept, or those that `source` finds, until the limit or
    /// Ctrl-C. While a batch is changed, the next ones are read.
    ///
    /// # Errors
    /// As every change; `outcomes` has those so far. If a node of a cluster does not answer, the
    /// records of the others are changed, and the error is returned at the end.
    async fn run(
        &mut self,
        kept: Vec<SelectedRecord>,
        mut source: Option<RecordSource<'_>>,
        count_into: Option<&mut SelectedCounts<R::Group>>,
    ) -> Result<Ended> {
        let ui = &self.batch_changer.session.ui;
        // The selected records were not counted, so that the keys of the server are the total.
        let mut keys_on_server = None;
        if self.total.is_none()
            && matches!(source, Some(RecordSource::Scan(_)))
            && ui.shows_progress()
        {
            keys_on_server = self.reader.keys_on_server().await.ok();
        }
        let progress = match keys_on_server {
            Some(keys) => ui.progress_of(&processed_of_keys(0), Some(keys)),
            None => ui.progress_of("records processed", self.total),
        };
        let waits = !self.grace.is_zero() || self.rate_limiter.is_limited();
        let mut ahead = ReadAhead {
            rule: self.rule,
            reader: self.reader.clone(),
            waits,
            asks_owners: self.owners.is_some(),
            count_into,
            bar: keys_on_server.map(|_| progress.clone()),
        };
        // With a grace all records wait for it together; otherwise the next batch waits while one
        // is changed.
        let most_waiting =
            if self.grace.is_zero() { self.rate_limiter.batch() } else { MAX_KEPT_RECORDS };
        let (queue, waiting) = mpsc::channel(most_waiting);
        let reading = async {
            ahead.read(kept, source.as_mut(), queue).await;
            // The end of the reading ends nothing: records still wait for their change.
            pending::<Infallible>().await
        };
        let changing =
            self.change_batches(PendingRecords::new(waiting), &progress, keys_on_server.is_some());
        let ended = tokio::select! {
            biased;
            ended = changing => ended,
            never = reading => match never {},
        };
        // However the changes ended, the report says which records the scan left out.
        let mut unread = None;
        if let Some(source) = source {
            let report = source.finish();
            if let ScanEnd::Incomplete(error) = &report.end {
                unread = Some(error.clone());
            }
            if let Some(counts) = ahead.count_into {
                counts.add_report(report);
            }
        }
        let (ended, unreachable) = ended?;
        // An interrupted run reports the interruption: more is left than those nodes.
        if ended != Ended::Finished {
            return Ok(ended);
        }
        match StoreError::prefer_unknown_outcome_or_first(unread, unreachable) {
            Some(error) => Err(error.into()),
            None => Ok(ended),
        }
    }

    /// Scan, recheck, back up, compare and change, count: for one batch after the other.
    ///
    /// Returns, beside how the changes ended, why some records could not be read, if nothing worse
    /// ended them.
    ///
    /// # Errors
    /// As every change; `outcomes` has those so far.
    async fn change_batches(
        &mut self,
        mut pending: PendingRecords,
        bar: &ProgressBar,
        shows_keys: bool,
    ) -> Result<(Ended, Option<StoreError>)> {
        let interrupt = self.interrupt;
        let mut unreachable = None;
        let mut processed = 0;
        loop {
            // Scan. The records of this batch were read while the batch before was changed.
            // A record that was changed partly, or perhaps, counts for the limit as a changed one.
            let partly = self.outcomes.partly.len() as u64;
            let used = self.outcomes.done + partly + self.outcomes.unknown;
            let allowed = self.limit.saturating_sub(used);
            if allowed == 0 {
                bar.finish_and_clear();
                return Ok((Ended::Finished, unreachable));
            }
            let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
            let most = self.rate_limiter.batch().min(allowed);
            let Some(batch) = interrupt.unless_raised(pending.next(most)).await else {
                return Ok((Ended::Interrupted, None));
            };
            let batch = batch?;
            if batch.is_empty() {
                bar.finish_and_clear();
                return Ok((Ended::Finished, unreachable));
            }
            let records = batch.len();

            // Recheck. Until here nothing was done to this batch, so that Ctrl-C drops it.
            let Some(rechecked) = interrupt.unless_raised(self.recheck(batch)).await else {
                return Ok((Ended::Interrupted, None));
            };
            let mut rechecked = rechecked?;
            unreachable =
                StoreError::prefer_unknown_outcome_or_first(unreachable, rechecked.unread.take());
            let changes = self.planned_changes(&mut rechecked);
            *self.outcomes = rechecked.outcomes;

            // Back up, compare and change, count. Ctrl-C waits: a change without its line in the
            // log cannot be undone.
            self.batch_changer.change(changes, self.outcomes).await?;

            processed += records as u64;
            if shows_keys {
                // The bar shows the keys that were scanned, and its message the records.
                bar.set_message(processed_of_keys(processed));
            } else {
                bar.set_position(processed);
            }
            if interrupt.unless_raised(self.rate_limiter.wait(records)).await.is_none() {
                return Ok((Ended::Interrupted, None));
            }
        }
    }

    /// Rechecks a batch once its grace is over, and leaves out the locks whose owners live.
    ///
    /// # Errors
    /// The server, or `--owner-alive`, could not be asked.
    async fn recheck(&mut self, batch: Vec<SelectedRecord>) -> Result<Rechecked<R::Group>> {
        if let Some(last) = batch.last() {
            sleep_until(last.read_at() + self.grace).await;
        }
        let outcomes = self.outcomes.clone();
        let mut rechecked = recheck(&mut self.reader, self.rule, batch, outcomes).await?;
        let Some(owners) = &mut self.owners else { return Ok(rechecked) };
        leave_out_living(owners, &mut rechecked).await?;
        // The command may take seconds for an owner, and a lock may have been renewed meanwhile.
        let mut dead = Vec::with_capacity(rechecked.same.len());
        for (record, _) in rechecked.same {
            dead.push(SelectedRecord::new(record).compact());
        }
        let mut again = recheck(&mut self.reader, self.rule, dead, rechecked.outcomes).await?;
        again.unread = StoreError::prefer_unknown_outcome_or_first(rechecked.unread, again.unread);
        Ok(again)
    }

    /// The changes to the records of a recheck. Those that are left to expire are counted.
    fn planned_changes(&self, rechecked: &mut Rechecked<R::Group>) -> Vec<(KeyAction, Change)> {
        // The list is taken, not drained, so that its memory is free before the backup is written.
        let same = std::mem::take(&mut rechecked.same);
        let mut changes = Vec::with_capacity(same.len());
        for (record, planned) in same {
            // Also a lock that the scan took for one that never expires: `--owner-alive` was not
            // asked about its owner.
            let is_left = planned.is_left_to_expire(self.owners.is_some());
            match planned.action {
                PlannedAction::Change(action) if !is_left => {
                    changes.push((action, change_of(record, &planned)));
                }
                PlannedAction::Change(_) | PlannedAction::LeaveToExpire => {
                    rechecked.outcomes.left_to_expire += 1;
                }
            }
        }
        changes
    }
}

fn processed_of_keys(records: u64) -> String {
    format!("{} records processed, keys scanned", count(records))
}

/// Leaves out the records whose owners are alive, or may be. A lock that expires stays unless its
/// owner is known to be dead.
///
/// # Errors
/// `Exit::Usage`: the command cannot be run.
async fn leave_out_living<G>(owners: &mut OwnerCheck, rechecked: &mut Rechecked<G>) -> Result<()> {
    // An owner may die after an answer.
    owners.forget();
    let known = rechecked.same.iter().filter(|(record, _)| record.is_owner_known());
    owners.ask(known.map(|(record, _)| record)).await?;
    let outcomes = &mut rechecked.outcomes;
    let mut dead = Vec::with_capacity(rechecked.same.len());
    for (record, planned) in rechecked.same.drain(..) {
        let answer = match record.owner() {
            _ if !record.is_owner_known() => OwnerAnswer::of_part(&record.key),
            Some(owner) => owners.answer(&record, owner),
            None if planned.needs_dead_owner => {
                outcomes.left_to_expire += 1;
                continue;
            }
            // The schema keeps no owner, and such a lock never expires.
            None => OwnerAnswer::Dead,
        };
        match answer {
            OwnerAnswer::Dead => dead.push((record, planned)),
            OwnerAnswer::Alive => outcomes.skipped_alive += 1,
            OwnerAnswer::Unknown(why) => {
                outcomes.owner_unknown += 1;
                outcomes.owner_unknown_because.get_or_insert(why);
            }
        }
    }
    rechecked.same = dead;
    Ok(())
}
