//! One run of a purge or a sweep: what the rule chooses is counted, changed, and accounted for.

use std::time::Duration;

use anyhow::Result;

use super::ahead::Supply;
use super::flow::Flow;
use super::rule::BulkRule;
use super::selected::{Preview, RecordSource};
use crate::args::{ChangeArgs, ConfirmArgs};
use crate::change::{Journal, RateLimiter, exit_after};
use crate::context::Context;
use crate::context::key_file::KeyFile;
use crate::domain::change::outcome::{Account, Ended};
use crate::domain::select::Rate;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::owner_check::OwnerCheck;
use crate::store::{RecordReader, ScanOptions, Writer};
use crate::terminal::frame::ProgressLine;

/// A run, what the run found, and what became of the records.
pub struct BulkRun<'a, R: BulkRule> {
    rule: &'a R,
    pub reader: RecordReader,
    /// `None` when the run only shows what it finds, and once the change has begun.
    writer: Option<Writer>,
    pub server: String,
    key_file: Option<KeyFile>,
    interrupt: Interrupt,
    pub found: Preview<R::Group>,
    /// True once all that is chosen was counted.
    pub is_counted: bool,
    pub account: Account,
}

/// How the chosen records are changed.
pub struct BulkOptions {
    pub command: &'static str,
    /// What the audit log calls the change.
    pub what: &'static str,
    /// True when Redis keys are removed, which needs a backup.
    pub removes: bool,
    pub rate: Option<Rate>,
    /// The time between the look that chose a record and the look right before the change.
    pub grace: Duration,
    /// Whom to ask whether an owner is alive.
    pub owners: Option<OwnerCheck>,
    pub limit: u64,
}

impl<'a, R: BulkRule> BulkRun<'a, R> {
    /// Connects. Without `leave` the run only shows what it finds.
    pub async fn open(
        context: &mut Context,
        rule: &'a R,
        leave: Option<&ConfirmArgs>,
        scan_options: ScanOptions,
        key_file: Option<KeyFile>,
    ) -> Result<Self> {
        let writer = match leave {
            Some(args) => Some(context.writer(args).await?),
            None => None,
        };
        let interrupt = Interrupt::listen()?;
        let reader = context.reader().await?.scanning(scan_options);
        let server = writer.as_ref().map_or_else(|| reader.name(), Writer::name);
        let (found, account) = (Preview::default(), Account::default());
        Ok(Self {
            rule,
            reader,
            writer,
            server,
            key_file,
            interrupt,
            found,
            is_counted: false,
            account,
        })
    }

    /// Counts what the rule chooses. Records that end by themselves are kept for the change only where `keeps_ending`. Nothing
    /// is changed, whatever the error.
    pub async fn count(&mut self, context: &Context, keeps_ending: bool) -> Result<()> {
        let progress = context.ui.progress("keys scanned");
        let file = self.key_file.as_mut();
        let source =
            RecordSource::open(self.rule, self.reader.clone(), file, &self.interrupt, progress)
                .await?;
        let reader = &mut self.reader.clone();
        self.found =
            Preview::take(self.rule, source, reader, keeps_ending, &self.interrupt).await?;
        self.is_counted = true;
        Ok(())
    }

    /// Ends a run that changes nothing.
    pub fn end_unchanged(self, context: &mut Context) -> Result<Exit> {
        if self.writer.is_none() {
            context.ui.status("dry run: nothing was changed");
        }
        let exit =
            exit_after(&self.found.coverage, &self.rule.scope().catalog, self.key_file.is_none());
        Ok(self.found.missed.map_or(Ok(exit), Err)?)
    }

    /// Changes what was counted, or, if nothing was counted, what a scan finds now. The account says what was done,
    /// whatever the error; its outcome is [`Ended::Shown`] as long as no change was tried.
    ///
    /// # Errors
    /// As every change; partial when nodes of a cluster were left out.
    pub async fn change(
        &mut self,
        context: &mut Context,
        args: &ChangeArgs,
        how: BulkOptions,
    ) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.interrupt.heed_terminate()?;
        let missed = self.found.missed.take();
        let supply = match self.found.places.take().filter(|_| self.is_counted) {
            Some(places) => Supply::Kept(places),
            None => {
                // The progress of the changes is shown, and not that of the scan.
                let (file, hidden) = (self.key_file.as_mut(), ProgressLine::hidden());
                let source = RecordSource::open(
                    self.rule,
                    self.reader.clone(),
                    file,
                    &self.interrupt,
                    hidden,
                )
                .await?;
                Supply::Source(Box::new(source))
            }
        };
        let mut journal = Journal::open(context, args, how.command, how.removes)?;
        let chosen = self.is_counted.then(|| self.found.tally.total().min(how.limit));
        let mut flow = Flow {
            chosen,
            rule: self.rule,
            reader: self.reader.clone(),
            writer,
            journal: &mut journal,
            what: how.what,
            rate_limiter: RateLimiter::new(how.rate),
            grace: how.grace,
            owners: how.owners,
            limit: how.limit,
            uncounted: (!self.is_counted).then_some(&mut self.found),
            interrupt: &self.interrupt,
        };
        let ended = flow.run(context, supply, &mut self.account).await;
        if matches!(ended, Ok(Ended::Interrupted)) {
            journal.trail().stops_early();
        }
        let (backup, ended) = journal.close(ended, context.now()).await;
        let ended = ended.and_then(|ended| Ok(missed.map_or(Ok(ended), Err)?));
        self.account.backup = backup.map(|file| file.display().to_string());
        self.account.outcome = *ended.as_ref().unwrap_or(&Ended::Failed);
        ended.map(drop)
    }
}
