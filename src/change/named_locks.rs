//! Locks that are named one by one: read, changed after one question, and each reported by name.

use anyhow::Result;
use serde_json::{Value, json};

use super::Journal;
use super::removal_plan::PlanWriter;
use super::summary::{CHANGED, DRY_RUN, INSPECT_AGAIN};
use crate::args::{ChangeArgs, Output};
use crate::change;
use crate::domain::record::{GivenKey, Record, RecordName};
use crate::domain::schema::Catalog;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::change::named_key_table;
use crate::render::{escape, name, unclaimed_key, words};
use crate::session::{Session, interruptible};
use crate::store::backup::RecordLabel;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{Change, KeyAction, Outcome, StoreError};

/// Locks that are named at a time, with one question. All of them are read before it and kept in
/// memory.
pub const MOST: usize = 1_000;

/// What a command does to the locks.
pub struct LockAction {
    /// The command, as the log names it.
    pub command: &'static str,
    /// What is done to the lock's Redis key.
    pub action: KeyAction,
    /// The outcome of a dry run for a lock that the action can be applied to.
    pub possible: &'static str,
    /// The outcome for a lock that it was applied to.
    pub done: &'static str,
}

/// The index of the Redis key that can be changed in the record of a lock, and what is shown of the
/// lock.
///
/// # Errors
/// Why nothing is done, with the exit code if no other lock is named.
pub type LockDecision = Result<(usize, String), (Exit, String)>;

/// A key that the operator named, and what can be or was done.
struct NamedLock {
    key: Vec<u8>,
    status: LockStatus,
}

enum LockStatus {
    Possible(Box<PossibleLock>),
    /// Nothing is done, for this reason, with this exit code if no other lock is named: done if
    /// nothing needs to be, no if there is no record, and partial if that is unknown.
    Left(Exit, String),
    /// It could not be read.
    Unread(StoreError),
    /// The key names more than one record.
    Ambiguous(Vec<RecordName>),
    /// The change was tried.
    Tried(Outcome),
}

/// A lock that can be changed.
pub struct PossibleLock {
    /// The record as it was read, whole.
    pub record: Record,
    /// The index of the lock's Redis key among those of the record.
    pub key_index: usize,
    /// What the table shows of the lock.
    shown: String,
}

/// The locks of a run, and what is done to them.
pub struct NamedLocks {
    action: LockAction,
    locks: Vec<NamedLock>,
    server: String,
    backup: Option<String>,
}

impl NamedLocks {
    /// Reads the record of each key, and decides what can be done to its lock.
    ///
    /// # Errors
    /// As every read. What can be said of one key alone is in its status.
    pub async fn find(
        session: &mut Session,
        catalog: &Catalog,
        lookup: &Lookup,
        keys: Vec<GivenKey>,
        action: LockAction,
        decide: impl Fn(&Record) -> LockDecision,
    ) -> Result<Self> {
        let mut reader = session.connect_reader().await?;
        let found = interruptible(lookup.find(&mut reader, catalog, keys)).await?;
        let mut locks = Vec::new();
        for mut found in LookupResult::each_once(found) {
            session.fill_in_advice(&mut found.records);
            locks.push(NamedLock::new(found, catalog, &decide));
        }
        if locks.len() > 1 {
            for lock in &locks {
                if let LockStatus::Ambiguous(names) = &lock.status {
                    session.ui.warning(&name::ambiguous(&lock.key, names));
                    session.ui.hint(name::HINT);
                }
            }
        }
        Ok(Self { action, locks, server: reader.name(), backup: None })
    }

    /// How many locks can be changed.
    pub fn possible(&self) -> usize {
        self.all_possible().count()
    }

    /// True if the schemas of all these locks describe the begin step, and the answer to the next
    /// request depends on the record alone.
    pub fn describe_begin(&self) -> bool {
        self.all_possible().all(|possible| possible.record.schema.answers_by_record())
    }

    /// The first lock that can be changed.
    pub fn first_possible(&self) -> Option<&PossibleLock> {
        self.all_possible().next()
    }

    fn all_possible(&self) -> impl Iterator<Item = &PossibleLock> {
        self.locks.iter().filter_map(|lock| match &lock.status {
            LockStatus::Possible(possible) => Some(&**possible),
            _ => None,
        })
    }

    /// Why nothing is done to locks that are refused.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.locks.iter().filter_map(|lock| match &lock.status {
            LockStatus::Left(Exit::Usage, why) => Some(why.as_str()),
            _ => None,
        })
    }

    /// Shows what can be done to each lock as a table.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub fn show(&self, session: &mut Session) -> Result<()> {
        let mut rows = Vec::with_capacity(self.locks.len());
        for lock in &self.locks {
            let schema = match &lock.status {
                LockStatus::Possible(possible) => possible.record.schema.name.clone(),
                _ => "-".to_owned(),
            };
            rows.push(vec![escape::text(&lock.key), schema, lock.words(&self.action)]);
        }
        session.ui.page(named_key_table(
            &["KEY", "SCHEMA", "LOCK"],
            rows.into_iter(),
            session.ui.view(),
        ))?;
        Ok(session.ui.flush()?)
    }

    /// Asks, and changes each lock that is still the one that was shown.
    ///
    /// # Errors
    /// Not confirmed, or what stopped the changes. [`NamedLocks::was_tried`] says whether anything
    /// may have been changed.
    pub async fn change(
        &mut self,
        session: &mut Session,
        args: &ChangeArgs,
        question: &str,
    ) -> Result<()> {
        let changes: Vec<_> = self.all_possible().map(PossibleLock::change).collect();
        let writer = session.connect_writer(&args.confirm_args).await?;
        let LockAction { command, action, done, .. } = self.action;
        let removes = action == KeyAction::Remove;
        if removes {
            writer.require(&["UNLINK", "idemctl"]).await?;
        }
        let interrupt = Interrupt::listen()?;
        args.confirm_args.confirm(session, question, &writer.name(), &interrupt).await?;
        // A signal waits until the log has a line for every lock that was changed.
        interrupt.handle_terminate()?;
        // A lock that is removed has to be backed up.
        let mut journal = Journal::open(session, args, command, removes)?;
        let (outcomes, ended) = journal.apply(&writer, &changes, action, done, session.now()).await;
        let (backup, ended) = journal.close(ended, session.now()).await;
        self.backup = backup.map(|file| file.display().to_string());
        let read_back = outcomes.iter().filter(|outcome| **outcome == Outcome::FoundDone).count();
        change::print_read_back(session, read_back as u64);
        // An error ends the changes early: locks that are left over were not tried.
        let mut outcomes = outcomes.into_iter();
        for lock in &mut self.locks {
            if matches!(lock.status, LockStatus::Possible(_))
                && let Some(outcome) = outcomes.next()
            {
                lock.status = LockStatus::Tried(outcome);
            }
        }
        let so_far = format!("{} of {} locks {done}", self.done(), self.locks.len());
        ended.map_err(|error| exit::between(&error, self.done() > 0, &so_far).into())
    }

    /// Writes the plan of the removal of these locks.
    ///
    /// # Errors
    /// The errors of [`PlanWriter`].
    pub async fn plan(&self, session: &mut Session, mut plan: PlanWriter) -> Result<()> {
        let mut reader = session.connect_reader().await?;
        let records: Vec<_> = self.all_possible().map(|lock| lock.record.clone()).collect();
        plan.add(&mut reader, &records).await?;
        plan.finish(session, self.locks.len() as u64)
    }

    /// Asks and changes the locks, unless this is a dry run, and reports what was done to each.
    ///
    /// # Errors
    /// As [`NamedLocks::change`] and [`NamedLocks::exit`].
    pub async fn change_and_report(
        &mut self,
        session: &mut Session,
        output: Output,
        args: &ChangeArgs,
        question: &str,
    ) -> Result<Exit> {
        let mut ended = Ok(());
        if args.confirm_args.dry_run {
            session.ui.status(DRY_RUN);
        } else if self.possible() > 0 {
            ended = self.change(session, args, question).await;
            self.print_done(session);
        }
        // Changes are reported even if an error followed. Without a confirmation, nothing was tried.
        if ended.is_ok() || self.was_tried() {
            change::write_report(session, output, &self.report())?;
        }
        ended?;
        self.exit()
    }

    /// True when a change was tried, whatever its outcome.
    fn was_tried(&self) -> bool {
        self.locks.iter().any(|lock| matches!(lock.status, LockStatus::Tried(_)))
    }

    /// How many locks were changed.
    pub fn done(&self) -> usize {
        self.locks.iter().filter(|lock| lock.is_done()).count()
    }

    /// The file that holds what was removed.
    pub fn backup(&self) -> Option<&str> {
        self.backup.as_deref()
    }

    /// Prints how many locks were changed, and why the others were not.
    fn print_done(&self, session: &mut Session) {
        if !self.was_tried() {
            return;
        }
        let done = self.action.done;
        let verb = format!("{}{}", done[..1].to_uppercase(), &done[1..]);
        let locks = words::counted(self.done() as u64, "lock");
        session.ui.status(&format!("{verb} {locks}{}", change::in_backup(self.backup())));
        for lock in &self.locks {
            if matches!(lock.status, LockStatus::Tried(outcome) if !outcome.is_done()) {
                session.ui.status(&format!(
                    "{}: {}",
                    escape::text(&lock.key),
                    lock.words(&self.action)
                ));
            }
        }
    }

    /// What was done to each key, as one object.
    fn report(&self) -> Value {
        let mut locks = Vec::with_capacity(self.locks.len());
        for lock in &self.locks {
            let mut entry = json!({
                "key": escape::text(&lock.key),
                "outcome": lock.outcome(&self.action),
                "message": lock.words(&self.action),
            });
            if let LockStatus::Ambiguous(names) = &lock.status {
                entry["names"] = names.iter().map(|name| name.instead_of(&lock.key)).collect();
            }
            locks.push(entry);
        }
        let mut report = json!({ "format": 1, "done": self.done(), "locks": locks });
        if self.action.action == KeyAction::Remove {
            report["backup"] = json!(self.backup);
        }
        report
    }

    /// Done if every lock is as the operator wants.
    ///
    /// # Errors
    /// Partial if several keys were named; for one key its own reason.
    pub fn exit(&self) -> Result<Exit> {
        let left: Vec<_> = self.locks.iter().filter(|lock| lock.is_left()).collect();
        let all = self.locks.len();
        if left.is_empty() {
            return Ok(Exit::Done);
        }
        if let [lock] = self.locks.as_slice() {
            return Err(lock.error(&self.action, &self.server));
        }
        let is_ambiguous = left.iter().all(|lock| matches!(lock.status, LockStatus::Ambiguous(_)));
        if is_ambiguous && left.len() == all {
            return Err(CommandError::usage(format!(
                "each of the {all} keys names more than one record"
            ))
            .into());
        }
        let message = format!("{} of {all} locks were not {}", left.len(), self.action.done);
        Err(CommandError::new(Exit::Partial, message).into())
    }
}

impl NamedLock {
    fn new(
        found: LookupResult,
        catalog: &Catalog,
        decide: impl Fn(&Record) -> LockDecision,
    ) -> Self {
        let status = LockStatus::new(&found, catalog, decide);
        Self { key: found.given, status }
    }

    /// What can be, or was, done to the lock, in words.
    fn words(&self, action: &LockAction) -> String {
        match &self.status {
            LockStatus::Possible(possible) => possible.shown.clone(),
            LockStatus::Left(_, why) => why.clone(),
            LockStatus::Unread(error) => error.to_string(),
            LockStatus::Ambiguous(names) => {
                format!("ambiguous: it names {}", name::choices(&self.key, names))
            }
            LockStatus::Tried(outcome) if outcome.is_done() => action.done.to_owned(),
            LockStatus::Tried(Outcome::Unknown) => {
                format!("it is unknown whether it was {}", action.done)
            }
            LockStatus::Tried(Outcome::Kept) => "unchanged, with more time left".to_owned(),
            LockStatus::Tried(_) => format!("it {CHANGED}"),
        }
    }

    /// The same as one word of the JSON.
    fn outcome(&self, action: &LockAction) -> &'static str {
        match &self.status {
            LockStatus::Possible(_) => action.possible,
            LockStatus::Left(Exit::Done, _) => "enough",
            LockStatus::Left(Exit::No, _) => "not-found",
            LockStatus::Left(..) | LockStatus::Unread(_) | LockStatus::Ambiguous(_) => "refused",
            LockStatus::Tried(outcome) if outcome.is_done() => action.done,
            LockStatus::Tried(Outcome::Unknown) => "unknown",
            LockStatus::Tried(Outcome::Kept) => "enough",
            LockStatus::Tried(_) => "changed",
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.status, LockStatus::Tried(outcome) if outcome.is_done())
    }

    /// True if the lock is not as the operator wants.
    fn is_left(&self) -> bool {
        match self.status {
            LockStatus::Left(exit, _) => exit != Exit::Done,
            LockStatus::Unread(_) | LockStatus::Ambiguous(_) => true,
            LockStatus::Tried(outcome) => !outcome.is_done() && outcome != Outcome::Kept,
            LockStatus::Possible(_) => false,
        }
    }

    /// Why the only lock that was named is not as the operator wants.
    fn error(&self, action: &LockAction, server: &str) -> anyhow::Error {
        let message = format!("{} on {server}: {}", escape::text(&self.key), self.words(action));
        match &self.status {
            LockStatus::Unread(error) => error.clone().into(),
            LockStatus::Ambiguous(names) => {
                CommandError::usage(name::ambiguous(&self.key, names)).hint(name::HINT).into()
            }
            LockStatus::Left(exit, _) => CommandError::new(*exit, message).into(),
            LockStatus::Tried(Outcome::ChangedMeanwhile) => {
                // Not the lock alone: a result that came beside it is a change of the record, too.
                CommandError::new(
                    Exit::Changed,
                    format!("{} on {server}: the record {CHANGED}", escape::text(&self.key)),
                )
                .hint(INSPECT_AGAIN)
                .into()
            }
            LockStatus::Tried(_) | LockStatus::Possible(_) => {
                CommandError::new(Exit::Changed, message).into()
            }
        }
    }
}

impl LockStatus {
    fn new(
        found: &LookupResult,
        catalog: &Catalog,
        decide: impl Fn(&Record) -> LockDecision,
    ) -> Self {
        if let Some(names) = found.several() {
            return Self::Ambiguous(names);
        }
        if let Some(unread) = found.may_name_another(catalog) {
            return Self::Left(Exit::Partial, format!("unknown: {unread}"));
        }
        let mut records = found.records.iter().collect::<Vec<_>>();
        if records.len() > 1 {
            // Several schemas read the one record: the one meant is the one whose lock it can be.
            records.retain(|record| !matches!(decide(record), Err((Exit::Usage, _))));
        }
        match (records.as_slice(), &found.why_unread) {
            ([record], _) => {
                let is_schema_named = catalog.includes_unprefixed() || found.says_schema_of(record);
                Self::of_record(record, is_schema_named, decide)
            }
            // Without an answer there may be a record, or none.
            ([], Some(error)) if found.records.is_empty() => Self::Unread(error.clone()),
            ([], None) if found.records.is_empty() => {
                if let Some(unclaimed) = found.unclaimed.first() {
                    return Self::Left(Exit::Usage, unclaimed_key::line(unclaimed));
                }
                if let Some(unread) = found.uncovered(catalog) {
                    return Self::Left(Exit::Partial, format!("unknown: {unread}"));
                }
                match GivenKey::word(&found.given[..]).excluded_because(catalog) {
                    Some((why, hint)) => Self::Left(Exit::Usage, format!("{why}; {hint}")),
                    None => Self::Left(Exit::No, "no record".to_owned()),
                }
            }
            _ => {
                let mut names = Vec::new();
                for record in &found.records {
                    names.push(record.schema.name.as_str());
                }
                let names = names.join(" and ");
                let why = format!("it has records under {names}; choose one with --schema");
                Self::Left(Exit::Usage, why)
            }
        }
    }

    /// What can be done to a record; `is_schema_named` says whether the operator named its schema.
    fn of_record(
        record: &Record,
        is_schema_named: bool,
        decide: impl Fn(&Record) -> LockDecision,
    ) -> Self {
        let name = &record.schema.name;
        if !record.schema.has_fixed_prefix() && !is_schema_named {
            let why = format!(
                "it matches only {name}, and any Redis key could match {name}; if this is a record \
                of {name}, add --schema {name}"
            );
            return Self::Left(Exit::Usage, why);
        }
        match decide(record) {
            Err((exit, why)) => Self::Left(exit, why),
            Ok((key_index, shown)) => {
                Self::Possible(Box::new(PossibleLock { record: record.clone(), key_index, shown }))
            }
        }
    }
}

impl PossibleLock {
    fn change(&self) -> Change {
        let label = RecordLabel::of(&self.record);
        Change::new(vec![self.key_index], self.record.seen.clone(), label)
    }
}
