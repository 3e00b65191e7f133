//! A service's own step, done by hand to one record: predicted, confirmed, backed up, guarded by what was seen, noted, and
//! read back.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::guarded_calls::{ManualStep, StepResult};
use super::journal::{Journal, JournalStep};
use crate::args::{Output, StepArgs};
use crate::context::Context;
use crate::domain::history::{OUTCOME_UNKNOWN, PARTIAL};
use crate::domain::record::{Identity, Record};
use crate::domain::schema::Meaning;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::change::StepOutcome;
use crate::render::words;
use crate::store::backup::About;
use crate::store::{StoreError, Writer};

impl ManualStep<'_> {
    /// Does the step after the operator's leave, and says what came of it; a dry run only says what is predicted.
    /// `read_back` tells the outcome from the record where the reply was lost. The answer is no unless the step did what
    /// it is for.
    ///
    /// # Errors
    /// Changed: the record is no longer as it was shown, and nothing was done. Outcome unknown, partial, refused leave, and
    /// whatever the server says.
    pub async fn perform(
        &self,
        context: &mut Context,
        args: &StepArgs,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<Exit> {
        if args.change.confirmed.dry_run {
            self.write(context, args.output, None)?;
            let predicted = self.report.predicted.as_str();
            context.ui.status(&format!("dry run: nothing was changed; foretold: {predicted}"));
            return Ok(Exit::Done);
        }
        let writer = context.writer(&args.change.confirmed).await?;
        args.change.confirmed.confirm(context, self.question, &writer.name())?;
        let (result, backup) = self.account_for(context, args, &writer, read_back).await?;
        let outcome = StepOutcome {
            means: result.means,
            reply: result.reply.as_ref(),
            now: &result.now,
            backup: backup.as_deref(),
        };
        self.write(context, args.output, Some(&outcome))?;
        self.say(context, &result, backup.as_deref());
        writer.replicas_have_it()?;
        Ok(if result.is_done() { Exit::Done } else { Exit::No })
    }

    /// Makes the step's calls between the backup and the audit log; gives the backup beside the result.
    async fn account_for(
        &self,
        context: &mut Context,
        args: &StepArgs,
        writer: &Writer,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<(StepResult, Option<PathBuf>)> {
        // A signal waits until the log tells of the step.
        Interrupt::listen()?.heed_terminate()?;
        let record = self.report.record;
        let about = About {
            schema: record.schema.name.clone(),
            key: record.key.clone(),
            state: record.state.as_str(),
        };
        let mut journal =
            Journal::open(context, &args.change, self.report.name, !record.seen.is_absent())?;
        let now = context.now();
        if let Err(error) = journal.back_up(writer, &record.seen, &about, now).await {
            return journal.close(Err(error), now).await.1;
        }
        let result = self.make_calls(writer, read_back).await;
        let noted = match self.noted_as(&result) {
            Some(what) => {
                // A reply that was lost leaves open what came since.
                let told = result.as_ref().ok().filter(|result| result.reply.is_some());
                let after = told.map(|result| &result.now.seen);
                let step =
                    JournalStep { about: &about, before: &record.seen, after, role: self.role };
                journal.note_step(writer, step, what, now).await
            }
            None => {
                journal.nothing_changed(&record.seen);
                Ok(())
            }
        };
        let ended = result.and_then(|result| noted.map(|()| result));
        let (backup, result) = journal.close(ended, context.now()).await;
        Ok((result?, backup))
    }

    /// What the audit log says of the step; `None` where nothing was changed.
    fn noted_as(&self, result: &Result<StepResult>) -> Option<&'static str> {
        match result {
            Ok(result) if result.is_done() => Some(self.what),
            // A service may change a lock that it does not take, e.g. give the lock a TTL.
            Ok(result) => self.changed_by(result).then_some("changed"),
            Err(error)
                if matches!(error.downcast_ref(), Some(StoreError::OutcomeUnknown { .. })) =>
            {
                Some(OUTCOME_UNKNOWN)
            }
            Err(error)
                if matches!(
                    error.downcast_ref(),
                    Some(CommandError { exit: Exit::Partial, .. })
                ) =>
            {
                Some(PARTIAL)
            }
            Err(_) => None,
        }
    }

    fn changed_by(&self, result: &StepResult) -> bool {
        Identity::of(&self.report.record.seen).differs(&result.now.seen)
    }

    /// Says what the service answered, and what the next request gets now.
    fn say(&self, context: &mut Context, result: &StepResult, backup: Option<&Path>) {
        let name = &self.report.record.schema.name;
        let kept = backup.map(|file| format!("; backup: {}", file.display())).unwrap_or_default();
        let word =
            result.means.map_or("its schema does not list this reply", |means| means.as_str());
        let left = match (result.is_done(), self.changed_by(result)) {
            (true, _) => "",
            (false, false) => "; nothing was changed",
            (false, true) => "; it changed the record all the same",
        };
        context.ui.status(&match &result.reply {
            Some(reply) => format!("{name} answers {}: {word}{left}{kept}", words::reply(reply)),
            None => {
                format!("The reply was lost; reading back shows that it was done: {word}{kept}")
            }
        });
        let then = words::then(&result.now);
        context.ui.status(&match self.vouched || !result.is_done() {
            true => format!("Read back: {then}."),
            false => format!(
                "Read back: {}. By its schema {then}; nobody saw that.",
                result.now.state.as_str()
            ),
        });
        if let Some(afterwards) = self.afterwards.as_ref().filter(|_| result.is_done()) {
            context.ui.status(afterwards);
        }
    }

    fn write(
        &self,
        context: &mut Context,
        output: Output,
        outcome: Option<&StepOutcome<'_>>,
    ) -> Result<()> {
        if output != Output::Table {
            context.ui.data(self.report.json(outcome, output == Output::Jsonl))?;
            context.ui.flush()?;
        }
        Ok(())
    }
}
