//! `idemctl undo`: undoes an operation of the audit log.

mod changed_records;
mod operation_to_undo;
mod plan;
mod revert;
mod undone;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::revert::{RevertMode, Reverter};
use self::undone::UndoneOperation;
use crate::args::{ChangeArgs, Output, ReturnArgs};
use crate::change::Journal;
use crate::change::restore::{
    CheckedBackup, KeysToRestore, Mode, RestoredRows, bring_back, check_only, finish,
};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::escape;
use crate::session::Session;
use crate::store::{Client, Writer};

/// The most rows of the preview above the question.
const MAX_ROWS: u64 = 100;

/// Undo an operation: restore every key not modified since
///
/// OP defaults to the last operation on this server in `log`. If that is an undo that was
/// interrupted, it is finished. If it is an undo without the records in --only, OP is the operation
/// that this undo reverted.
///
/// Removed records are restored from the backup as with `restore`: only if the key does not exist,
/// and a result only if the key is not locked. Extended locks get their former expiry, and
/// completed records their former value. The undo of `begin` removes the lock, and the undo of
/// `restore` removes the restored records. Each key is reverted only if its type, bytes and expiry
/// are still those that the operation left; other keys are reported and left alone, with exit
/// status 3. A record whose TTL has ended is not restored.
///
/// The undo of `reconcile` restores locks with the time that they got from --hold, does not take
/// this time from the others, and keeps a result whose lock would have ended by now. It refuses a
/// killed reconcile that only extended locks.
///
/// An undo is an operation itself, so a second `undo` reverts it. undo refuses an operation that is
/// still running.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Operation ID from `idemctl log`, or its first letters [default: the last one on this server]
    #[arg(value_name = "OP")]
    op: Option<String>,

    #[command(flatten)]
    returns: ReturnArgs,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    change_args: ChangeArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let catalog = session.catalog_with_libraries()?;
    let dry_run = args.change_args.confirm_args.dry_run;
    // A dry run gets no connection that can change records.
    let writer = if dry_run {
        None
    } else {
        Some(session.connect_writer(&args.change_args.confirm_args).await?)
    };
    let client = session.connect().await?;
    let here = match &writer {
        Some(writer) => writer.provenance().await?,
        None => client.provenance().await?,
    };
    let undone =
        UndoneOperation::find(session, args.op.as_deref(), &args.returns, &here, &client.name())?;
    let why = format!("{} made no change to such a key that can be undone", undone.name());
    let is_partial = check_only(session, &undone.only, &why)?;
    undone.may_go_to(session, &here, args.returns.elsewhere)?;
    let of = KeysToRestore { args: &args.returns, only: &undone.only, but: undone.but.clone() };
    // Every backup is checked before the first change, so that a damaged one stops the whole undo.
    let mut sources = Vec::with_capacity(undone.backups.len());
    for file in &undone.backups {
        let source = CheckedBackup::open(session, file, &of, Some(&undone.operation.op))?;
        source.may_go_to(session, &here, args.returns.elsewhere)?;
        sources.push(source);
    }
    if let Some(writer) = &writer
        && !sources.is_empty()
    {
        writer.require(&["RESTORE", "idemctl", "0", ""]).await?;
    }
    session.ui.status(&format!("Undo of {}.", undone.name()));
    let interrupt = Interrupt::listen()?;
    let reverter =
        Reverter { client: &client, catalog: &catalog, undone: &undone, interrupt: &interrupt };
    let mut undo = Undo { args: &args, of, sources, reverter, is_partial };
    let Some(writer) = writer else { return undo.dry_run(session).await };
    let predicted = undo.predict_and_show(session).await?;
    match predicted.restored() {
        0 => undo.leave(session, &predicted),
        _ => undo.change(session, &writer, &predicted).await,
    }
}

struct Undo<'a> {
    args: &'a Args,
    of: KeysToRestore<'a>,
    sources: Vec<CheckedBackup>,
    reverter: Reverter<'a>,
    /// True if a key that was named means no record, or more than one.
    is_partial: bool,
}

impl Undo<'_> {
    fn rows(&self, is_prediction: bool) -> RestoredRows {
        RestoredRows::new(self.args.output, is_prediction)
            .knowing(self.reverter.catalog.all())
            .of_undo(&self.reverter.undone.operation.op)
    }

    fn left_out(&self) -> u64 {
        self.sources.iter().map(|source| source.left_out).sum()
    }

    /// Redis keys that the operation removed, and that no backup holds.
    fn missing(&self) -> u64 {
        self.sources.iter().map(|source| source.missing).sum()
    }

    /// True if the backups hold all that the operation removed, according to the audit log.
    fn holds_all(&self) -> bool {
        self.missing() + self.left_out() == 0
    }

    fn exit(&self, rows: &RestoredRows) -> Exit {
        let is_whole = !self.is_partial
            && !self.reverter.undone.may_lack_changes()
            && rows.kept_away() + self.left_out() + self.missing() == 0;
        if is_whole { Exit::Done } else { Exit::Partial }
    }

    /// Names the Redis keys beside the records that the undone step may also have changed. idemctl
    /// has no copy of them.
    fn warn_of_keys_beside(&self, session: &mut Session, rows: &RestoredRows) {
        let command = self.reverter.undone.operation.command.as_str();
        let is_step = matches!(command, "begin" | "complete" | "release");
        let mut unknown = None;
        let mut names = Vec::new();
        let untouched = &self.reverter.undone.untouched;
        for (schema, key) in rows.records().iter().chain(untouched) {
            let all = self.reverter.catalog.all();
            let Some(schema) = all.iter().find(|known| known.name == *schema) else {
                unknown = Some(schema.as_str());
                continue;
            };
            let Some(step) = schema.step_of_command(command) else { continue };
            for redis_key in schema.keys_beside_record(&step.calls, key) {
                let name = escape::text(&redis_key);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        if !names.is_empty() {
            let names = names.join(", ");
            session.ui.warning(&format!(
                "{command} may also have changed {names}, which undo does not put back"
            ));
        }
        if let Some(schema) = unknown.filter(|_| is_step) {
            let schema = escape::text(schema.as_bytes());
            session.ui.warning(&format!(
                "{command} may also have changed keys beside the records, because the schema \
                {schema} is not known here"
            ));
        }
    }

    async fn dry_run(&mut self, session: &mut Session) -> Result<Exit> {
        let mut rows = self.rows(true);
        let ended = self.predict(session, &mut rows).await;
        let whole = matches!(ended, Ok(true)) && self.holds_all();
        // How the undo ended matters more than a stdout that cannot be written.
        let shown = rows.close(session, whole, self.left_out());
        finish(session, true, &rows, ended, rows.seen() + self.missing())?;
        self.warn_of_keys_beside(session, &rows);
        shown?;
        Ok(self.exit(&rows))
    }

    /// Shows what would be done, before the question. JSON reports at the end what was done.
    async fn predict_and_show(&mut self, session: &mut Session) -> Result<RestoredRows> {
        let most = if self.args.output == Output::Text { MAX_ROWS } else { 0 };
        let mut rows = self.rows(true).showing(most);
        if !self.predict(session, &mut rows).await? {
            return Err(CommandError::interrupted("interrupted").changed_nothing().into());
        }
        rows.were_shown()?;
        if most > 0 && rows.seen() > most {
            session.ui.status(&format!("… and {} more.", rows.seen() - most));
        }
        session.ui.status(&format!("{}.", rows.summary(rows.seen() + self.missing())));
        rows.warn_of_endless(session);
        self.warn_of_keys_beside(session, &rows);
        Ok(rows)
    }

    /// Ends without a question, because nothing can be undone.
    fn leave(&self, session: &mut Session, predicted: &RestoredRows) -> Result<Exit> {
        let mut rows = predicted.changed_nothing();
        rows.close(session, self.holds_all(), self.left_out())?;
        session.ui.status("Nothing was changed.");
        Ok(self.exit(predicted))
    }

    async fn predict(&mut self, session: &mut Session, rows: &mut RestoredRows) -> Result<bool> {
        let client: &Client = self.reverter.client;
        let interrupt = self.reverter.interrupt;
        for source in &mut self.sources {
            let mut mode = Mode::Looks(client);
            let whole = bring_back(session, &self.of, source, &mut mode, rows, interrupt).await?;
            if !whole {
                return Ok(false);
            }
        }
        self.reverter.run(session, &mut RevertMode::Predict, rows).await
    }

    async fn change(
        &mut self,
        session: &mut Session,
        writer: &Writer,
        predicted: &RestoredRows,
    ) -> Result<Exit> {
        let operation = &self.reverter.undone.operation;
        let reason = match &operation.reason {
            Some(reason) => format!(", {reason}"),
            None => String::new(),
        };
        let question = format!(
            "Undo {} of {} by {}{reason}?",
            self.reverter.undone.name(),
            operation.at,
            operation.who
        );
        let question = escape::again(&question);
        let interrupt = &self.reverter.interrupt;
        let confirm_args = &self.args.change_args.confirm_args;
        confirm_args.confirm(session, &question, &writer.name(), interrupt).await?;
        // From here on, a signal ends the undo after the current batch, which is then in the log.
        self.reverter.interrupt.handle_terminate()?;
        let is_partial = !self.args.returns.keys.is_empty();
        let mut journal = Journal::open(session, &self.args.change_args, "undo", true)?;
        journal.audit_log().undoes(&operation.op, is_partial);
        // The preview showed the rows already, and the counts show what ended differently.
        let most = if self.args.output == Output::Text { 0 } else { u64::MAX };
        let mut rows = self.rows(false).showing(most);
        let ended = self.revert_records(session, writer, &mut journal, &mut rows).await;
        // What could not be reached may be restored later, so the next undo continues this one.
        if !matches!(ended, Ok(true)) || rows.may_go_on() {
            journal.audit_log().stops_early();
        }
        let (backup, ended) = journal.close(ended, session.now()).await;
        let whole = matches!(ended, Ok(true)) && self.holds_all();
        let shown = rows.close(session, whole, self.left_out());
        finish(session, false, &rows, ended, predicted.seen() + self.missing())?;
        self.warn_of_keys_beside(session, &rows);
        if let Some(file) = backup {
            session.ui.status(&format!("Backup of the replaced values: {}", file.display()));
        }
        shown?;
        Ok(self.exit(&rows))
    }

    async fn revert_records(
        &mut self,
        session: &mut Session,
        writer: &Writer,
        journal: &mut Journal,
        rows: &mut RestoredRows,
    ) -> Result<bool> {
        journal.begin(writer, session.now()).await?;
        let interrupt = self.reverter.interrupt;
        for source in std::mem::take(&mut self.sources) {
            // The preview has read the backup to its end.
            let mut source = source.again()?;
            let mut mode = Mode::Restores(writer, journal.audit_log());
            let whole =
                bring_back(session, &self.of, &mut source, &mut mode, rows, interrupt).await;
            // The counts of every source are needed for the report, whatever its end.
            self.sources.push(source);
            if !whole? {
                return Ok(false);
            }
        }
        self.reverter.run(session, &mut RevertMode::Revert(writer, journal), rows).await
    }
}
