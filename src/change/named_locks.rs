//! Locks that are named one by one: found, shown in one table, changed after one question, and each told by name.

use anyhow::Result;
use serde_json::{Value, json};

use super::Journal;
use crate::args::ChangeArgs;
use crate::context::{Context, interruptible};
use crate::domain::record::{Given, Name, Record};
use crate::domain::schema::Catalog;
use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::{change, escape, name};
use crate::store::backup::About;
use crate::store::read::records::{Found, Lookup};
use crate::store::{Action, Change, Outcome, StoreError};

/// Locks that are named at a time, with one question.
pub const MOST: usize = 1_000;

/// What a command does to the locks.
pub struct Deed {
    pub command: &'static str,
    pub action: Action,
    /// What a lock that the deed can be done to is called.
    pub possible: &'static str,
    /// What is said of a lock afterwards.
    pub done: &'static str,
    /// True when something goes that has to be backed up.
    pub removes: bool,
}

/// What can be done to the lock of a record.
pub enum Verdict {
    /// The change of this role's Redis key, where the record is still as it was seen; and what is shown of the lock.
    Possible(usize, String),
    /// Nothing needs to be done, and why.
    Needless(String),
    /// Why nothing is done.
    Refused(String),
}

/// A key of the operator, and what can be done.
struct Lock {
    key: Vec<u8>,
    is: Is,
}

enum Is {
    Possible(Box<Change>, String),
    Needless(String),
    /// There is no record.
    Absent,
    Refused(String),
    /// It could not be read.
    Unread(StoreError),
    /// The key names more than one record.
    Ambiguous(Vec<Name>),
    /// What became of the change.
    Tried(Outcome),
}

pub struct NamedLocks {
    deed: Deed,
    locks: Vec<Lock>,
    server: String,
    backup: Option<String>,
}

impl NamedLocks {
    /// Looks for the lock of each key.
    pub async fn find(
        context: &mut Context,
        catalog: &Catalog,
        lookup: &Lookup,
        keys: Vec<Given>,
        deed: Deed,
        judge: impl Fn(&Record) -> Verdict,
    ) -> Result<Self> {
        let mut reader = context.reader().await?;
        let found = interruptible(lookup.find(&mut reader, catalog, keys)).await?;
        let found = Found::each_once(found);
        let locks: Vec<_> = found.into_iter().map(|found| Lock::of(found, catalog, &judge)).collect();
        for lock in &locks {
            if let Is::Ambiguous(names) = &lock.is {
                context.ui.warning(&name::ambiguous(&lock.key, names));
                context.ui.hint(name::HINT);
            }
        }
        Ok(Self { deed, locks, server: reader.name(), backup: None })
    }

    /// How many locks can be changed.
    pub fn possible(&self) -> usize {
        self.locks.iter().filter(|lock| matches!(lock.is, Is::Possible(..))).count()
    }

    pub fn show(&self, context: &mut Context) -> Result<()> {
        let rows = self.locks.iter().map(|lock| {
            let schema = match &lock.is {
                Is::Possible(change, _) => change.about.schema.clone(),
                _ => "-".to_owned(),
            };
            vec![escape::text(&lock.key), schema, lock.words(&self.deed)]
        });
        context.ui.page(change::named(&["KEY", "SCHEMA", "LOCK"], rows, context.ui.view()))?;
        Ok(context.ui.flush()?)
    }

    /// Asks, and changes each lock that is still the one that was shown.
    ///
    /// # Errors
    /// No leave, or what stopped the changes; what was done is told either way.
    pub async fn change(&mut self, context: &mut Context, args: &ChangeArgs, question: &str) -> Result<()> {
        let possible = |lock: &Lock| match &lock.is {
            Is::Possible(change, _) => Some((**change).clone()),
            _ => None,
        };
        let changes: Vec<_> = self.locks.iter().filter_map(possible).collect();
        let writer = context.writer(&args.confirmed).await?;
        args.confirmed.confirm(context, question, &writer.name())?;
        // A signal waits until the log tells of every lock that was changed.
        Interrupt::listen()?.heed_terminate()?;
        let mut journal = Journal::open(context, args, self.deed.command, self.deed.removes)?;
        let (action, now) = (self.deed.action, context.now());
        let (outcomes, ended) = journal.apply(&writer, &changes, action, self.deed.done, now).await;
        let (backup, ended) = journal.close(ended, context.now()).await;
        self.backup = backup.map(|file| file.display().to_string());
        let tried = self.locks.iter_mut().filter(|lock| matches!(lock.is, Is::Possible(..)));
        tried.zip(outcomes).for_each(|(lock, outcome)| lock.is = Is::Tried(outcome));
        self.say(context);
        let so_far = format!("{} of {} locks {}", self.done(), self.locks.len(), self.deed.done);
        ended.map_err(|error| exit::between(&error, self.done() > 0, &so_far).into())
    }

    /// True when a change was tried, whatever became of it.
    pub fn was_tried(&self) -> bool {
        self.locks.iter().any(|lock| matches!(lock.is, Is::Tried(_)))
    }

    /// Says what was done, and of each lock that was left alone, why.
    fn say(&self, context: &mut Context) {
        let locks = if self.done() == 1 { "lock" } else { "locks" };
        let done = format!("{}{}", self.deed.done[..1].to_uppercase(), &self.deed.done[1..]);
        let backup = self.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
        context.ui.status(&format!("{done} {} {locks}{backup}", self.done()));
        let left = self.locks.iter().filter(|lock| matches!(lock.is, Is::Tried(outcome) if !outcome.is_done()));
        left.for_each(|lock| context.ui.status(&format!("{}: {}", escape::text(&lock.key), lock.words(&self.deed))));
    }

    fn done(&self) -> usize {
        self.locks.iter().filter(|lock| lock.is_done()).count()
    }

    /// What was done to each key, as one object.
    pub fn report(&self) -> Value {
        let lock = |lock: &Lock| {
            let (key, outcome) = (escape::text(&lock.key), lock.outcome(&self.deed));
            let mut entry = json!({ "key": key, "outcome": outcome, "message": lock.words(&self.deed) });
            if let Is::Ambiguous(names) = &lock.is {
                entry["names"] = names.iter().map(|name| name.instead_of(&lock.key)).collect();
            }
            entry
        };
        let locks: Vec<_> = self.locks.iter().map(lock).collect();
        let mut report = json!({ "format": 1, "done": self.done(), "locks": locks });
        if self.deed.removes {
            report["backup"] = json!(self.backup);
        }
        report
    }

    /// Done where every lock is as the operator wants.
    ///
    /// # Errors
    /// Partial, where several keys were named; of one key its own reason.
    pub fn exit(&self) -> Result<Exit> {
        let left: Vec<_> = self.locks.iter().filter(|lock| lock.is_left()).collect();
        match (left.as_slice(), self.locks.len()) {
            ([], _) => Ok(Exit::Done),
            ([lock], 1) => {
                let exit = match &lock.is {
                    Is::Unread(error) => return Err(error.clone().into()),
                    Is::Absent => Exit::No,
                    Is::Tried(_) => Exit::Changed,
                    _ => Exit::Usage,
                };
                let message = format!("{} on {}: {}", escape::text(&lock.key), self.server, lock.words(&self.deed));
                Err(Stop::new(exit, message).into())
            }
            (left, all) => {
                let is_ambiguous = left.iter().all(|lock| matches!(lock.is, Is::Ambiguous(_)));
                if is_ambiguous && left.len() == all {
                    return Err(Stop::usage(format!("each of the {all} keys names more than one record")).into());
                }
                let message = format!("{} of {all} locks were not {}", left.len(), self.deed.done);
                Err(Stop::new(Exit::Partial, message).into())
            }
        }
    }
}

impl Lock {
    fn of(found: Found, catalog: &Catalog, judge: impl Fn(&Record) -> Verdict) -> Self {
        let of_record = |record| Is::of_record(record, catalog.takes_bare() || found.says_schema_of(record), &judge);
        let is = match (&found.unread, found.several(), found.records.as_slice()) {
            (_, Some(names), _) => Is::Ambiguous(names),
            (Some(error), _, []) => Is::Unread(error.clone()),
            (None, _, []) => Is::Absent,
            (_, _, [record]) => of_record(record),
            // Several schemas read the one record.
            (_, _, records) => {
                let is_held = |record: &&Record| !matches!(judge(record), Verdict::Refused(_));
                match records.iter().filter(is_held).collect::<Vec<_>>().as_slice() {
                    [record] => of_record(record),
                    _ => Is::Refused(format!("{} schemas have a record there: name one with --schema", records.len())),
                }
            }
        };
        Self { key: found.key, is }
    }

    /// What is, or was, done to the lock, in words.
    fn words(&self, deed: &Deed) -> String {
        match &self.is {
            Is::Possible(_, shown) => shown.clone(),
            Is::Needless(why) | Is::Refused(why) => why.clone(),
            Is::Unread(error) => error.to_string(),
            Is::Ambiguous(names) => format!("ambiguous: it names {}", name::choices(&self.key, names)),
            Is::Absent => "no record".to_owned(),
            Is::Tried(outcome) if outcome.is_done() => deed.done.to_owned(),
            Is::Tried(Outcome::Absent) => "its lock is gone; nothing was done".to_owned(),
            Is::Tried(Outcome::Unknown) => format!("nobody knows whether it was {}", deed.done),
            Is::Tried(Outcome::Kept) => "stays: it has as much time left by now".to_owned(),
            Is::Tried(_) => "it changed since it was shown; nothing was done".to_owned(),
        }
    }

    fn outcome(&self, deed: &Deed) -> &'static str {
        match &self.is {
            Is::Possible(..) => deed.possible,
            Is::Needless(_) => "enough",
            Is::Absent => "not-found",
            Is::Refused(_) | Is::Unread(_) | Is::Ambiguous(_) => "refused",
            Is::Tried(outcome) if outcome.is_done() => deed.done,
            Is::Tried(Outcome::Unknown) => "unknown",
            Is::Tried(Outcome::Kept) => "enough",
            Is::Tried(_) => "changed",
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.is, Is::Tried(outcome) if outcome.is_done())
    }

    fn is_left(&self) -> bool {
        match self.is {
            Is::Absent | Is::Refused(_) | Is::Unread(_) | Is::Ambiguous(_) => true,
            Is::Tried(outcome) => !outcome.is_done() && outcome != Outcome::Kept,
            Is::Possible(..) | Is::Needless(_) => false,
        }
    }
}

impl Is {
    /// What can be done to a record, of which the operator said the schema or did not.
    fn of_record(record: &Record, is_schema_named: bool, judge: impl Fn(&Record) -> Verdict) -> Self {
        let name = &record.schema.name;
        if !record.schema.has_prefix() && !is_schema_named {
            return Self::Refused(format!(
                "any Redis key may be {name}'s: where this one is, say so with --schema {name}"
            ));
        }
        match judge(record) {
            Verdict::Refused(why) => Self::Refused(why),
            Verdict::Needless(why) => Self::Needless(why),
            Verdict::Possible(role, shown) => {
                let about = About { schema: name.clone(), key: record.key.clone(), state: record.state.as_str() };
                Self::Possible(Box::new(Change::new(vec![role], record.seen.clone(), about)), shown)
            }
        }
    }
}
