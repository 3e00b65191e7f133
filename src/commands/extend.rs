//! `idemctl extend`: gives locks more time, while somebody finds out what became of their operations.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::{Value, json};

use crate::args::{ChangeArgs, ConfirmArgs, KeysArgs, Output, SchemaArgs, parse_ttl};
use crate::change::bulk::KeyFile;
use crate::change::{Journal, write_report};
use crate::context::{Context, interruptible};
use crate::domain::change::extension::{self, Needless};
use crate::domain::diagnosis::Thresholds;
use crate::domain::duration;
use crate::domain::record::{Record, age};
use crate::domain::schema::Catalog;
use crate::exit::{Exit, Stop};
use crate::render::{change, escape};
use crate::store::backup::About;
use crate::store::read::records::{Found, Lookup};
use crate::store::{Action, Change, Head, Outcome};

/// Locks that are extended at a time, with one question.
const MOST: usize = 1_000;

/// Give locks more time, so that no retry executes while somebody finds out what became of the operation
///
/// Each lock lives --for this long from now on; one that has as much time left, or no expiry, stays as it is. Nothing but the
/// moment of expiry changes, and only if the lock is still the one that was shown. A worker that renews its lock, or completes,
/// goes on as before. Exit status 1 when no record is there, 3 when some of several keys could not be extended, 8 when the lock
/// changed since it was shown.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// How long the locks live from now on
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ttl)]
    time: Duration,

    /// How to show what was done; both kinds of JSON are one object, jsonl in one line
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    confirmed: ConfirmArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    let keys = keys(context, &args)?;
    let mut reader = context.reader().await?;
    let lookup = Lookup { head: Head::Whole, thresholds: Thresholds::default(), both: false };
    let found = interruptible(lookup.find(&mut reader, &catalog, keys)).await?;
    let millis = age::millis(args.time);
    let locks: Vec<_> = found.into_iter().map(|found| Lock::of(found, &catalog, millis)).collect();
    explain(context, &args, &locks)?;
    let mut extended = Extended { locks, done: 0 };
    let mut ended = Ok(());
    if args.confirmed.dry_run {
        context.ui.status("dry run: nothing was changed");
    } else if extended.changes().next().is_some() {
        ended = extended.change(context, &args).await;
    }
    // What was changed is told even where an error followed; without leave nothing was tried.
    if ended.is_ok() || extended.locks.iter().any(|lock| matches!(lock.is, Is::Tried(_))) {
        write_report(context, args.output, &extended.report())?;
    }
    ended?;
    extended.exit(&reader.name())
}

/// The keys that the operator names.
fn keys(context: &Context, args: &Args) -> Result<Vec<Vec<u8>>> {
    let named = KeyFile::of(&args.keys, &context.settings.environment().temp_dir())?;
    let mut file = named.ok_or_else(|| Stop::usage("which locks? name their keys, or give --key-file"))?;
    let mut keys = file.next(MOST + 1)?;
    if keys.len() > MOST {
        return Err(Stop::usage(format!("more than {MOST} keys at a time are more than anybody reads")).into());
    }
    // A key that is named twice is one.
    let mut known = HashSet::new();
    keys.retain(|key| known.insert(key.clone()));
    Ok(keys)
}

/// A key of the operator, and what can be done.
struct Lock {
    key: Vec<u8>,
    is: Is,
}

enum Is {
    /// The lock gets more time, where it is still as it was seen.
    Extendable(Box<Change>, String),
    /// The lock lives as long as it is to live.
    Enough(String),
    /// There is no record.
    Absent,
    /// Why the record's lock is not extended.
    Refused(String),
    /// What became of the change.
    Tried(Outcome),
}

impl Lock {
    fn of(found: Found, catalog: &Catalog, millis: u64) -> Self {
        let is = match (found.unread, found.records.as_slice()) {
            (Some(error), []) => Is::Refused(error.to_string()),
            (None, []) => Is::Absent,
            (_, [record]) => Self::of_record(record, catalog, millis),
            (_, records) => {
                let held: Vec<_> = records.iter().filter(|record| extension::extendable(record).is_ok()).collect();
                match held.as_slice() {
                    [record] => Self::of_record(record, catalog, millis),
                    _ => Is::Refused(format!("{} schemas have a record there: name one with --schema", records.len())),
                }
            }
        };
        Self { key: found.key, is }
    }

    fn of_record(record: &Record, catalog: &Catalog, millis: u64) -> Is {
        let name = &record.schema.name;
        if !record.schema.has_prefix() && !catalog.is_named() {
            return Is::Refused(format!(
                "any Redis key may be {name}'s: where this one is, say so with --schema {name}"
            ));
        }
        let slot = match extension::extendable(record) {
            Ok(slot) => slot,
            Err(why) => return Is::Refused(why),
        };
        let left = record.seen.slots[slot].expiry.millis().map(duration::short).unwrap_or_default();
        match extension::is_needless(record, slot, millis) {
            Some(Needless::ForEver) => {
                Is::Refused("it has no expiry, so any TTL would be less: `idemctl sweep` is for such locks".to_owned())
            }
            Some(Needless::Longer(left)) => Is::Enough(duration::short(left)),
            None => {
                let about = About { schema: name.clone(), key: record.key.clone(), state: record.state.as_str() };
                Is::Extendable(Box::new(Change { slot, seen: record.seen.clone(), about }), left)
            }
        }
    }

    /// What is, or was, done to the lock, in words.
    fn words(&self) -> String {
        match &self.is {
            Is::Extendable(_, left) => format!("{left} left"),
            Is::Enough(left) => format!("stays: it has {left} left"),
            Is::Absent => "no record".to_owned(),
            Is::Refused(why) => why.clone(),
            Is::Tried(outcome) if outcome.is_done() => "extended".to_owned(),
            Is::Tried(Outcome::Absent) => "its lock is gone; nothing was done".to_owned(),
            Is::Tried(Outcome::Unknown) => "nobody knows whether it was extended".to_owned(),
            Is::Tried(_) => "it changed since it was shown; nothing was done".to_owned(),
        }
    }

    fn outcome(&self) -> &'static str {
        match &self.is {
            Is::Extendable(..) => "extendable",
            Is::Enough(_) => "enough",
            Is::Absent => "not-found",
            Is::Refused(_) => "refused",
            Is::Tried(outcome) if outcome.is_done() => "extended",
            Is::Tried(Outcome::Unknown) => "unknown",
            Is::Tried(_) => "changed",
        }
    }
}

fn explain(context: &mut Context, args: &Args, locks: &[Lock]) -> Result<()> {
    if args.output == Output::Table {
        let rows = locks.iter().map(|lock| {
            let schema = match &lock.is {
                Is::Extendable(change, _) => change.about.schema.clone(),
                _ => "-".to_owned(),
            };
            vec![escape::text(&lock.key), schema, lock.words()]
        });
        context.ui.data(change::named(&["KEY", "SCHEMA", "LOCK"], rows, context.ui.view()))?;
        context.ui.flush()?;
    }
    if locks.iter().any(|lock| matches!(lock.is, Is::Extendable(..))) {
        let time = duration::short(age::millis(args.time));
        context.ui.status(&format!(
            "Retries with these keys are turned away for {time} from now, unless a worker is done before."
        ));
    }
    Ok(())
}

/// The locks, and how many were extended.
struct Extended {
    locks: Vec<Lock>,
    done: u64,
}

impl Extended {
    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.locks.iter().filter_map(|lock| match &lock.is {
            Is::Extendable(change, _) => Some(&**change),
            _ => None,
        })
    }

    async fn change(&mut self, context: &mut Context, args: &Args) -> Result<()> {
        let changes: Vec<_> = self.changes().cloned().collect();
        let writer = context.writer(&args.confirmed).await?;
        let locks = if changes.len() == 1 { "this lock".to_owned() } else { format!("these {} locks", changes.len()) };
        let question = format!("Let {locks} live {} from now on?", duration::short(age::millis(args.time)));
        args.confirmed.confirm(context, &question, &writer.name())?;
        let accounted = ChangeArgs { confirmed: args.confirmed.clone(), ..ChangeArgs::default() };
        let mut journal = Journal::open(context, &accounted, "extend", false)?;
        let (action, now) = (Action::ExpireIn(age::millis(args.time)), context.now());
        let (outcomes, ended) = journal.apply(&writer, &changes, action, "extended", now).await;
        let (_, ended) = journal.close(ended).await;
        let tried = self.locks.iter_mut().filter(|lock| matches!(lock.is, Is::Extendable(..)));
        tried.zip(outcomes).for_each(|(lock, outcome)| lock.is = Is::Tried(outcome));
        self.done = self.locks.iter().filter(|lock| lock.outcome() == "extended").count() as u64;
        self.say(context);
        ended
    }

    /// Says what was done, and of each lock that was left alone, why.
    fn say(&self, context: &mut Context) {
        let locks = if self.done == 1 { "lock" } else { "locks" };
        context.ui.status(&format!("Extended {} {locks}", self.done));
        let left = self.locks.iter().filter(|lock| matches!(lock.is, Is::Tried(outcome) if !outcome.is_done()));
        left.for_each(|lock| context.ui.status(&format!("{}: {}", escape::text(&lock.key), lock.words())));
    }

    fn report(&self) -> Value {
        let lock =
            |lock: &Lock| json!({ "key": escape::text(&lock.key), "outcome": lock.outcome(), "message": lock.words() });
        json!({ "format": 1, "done": self.done, "locks": self.locks.iter().map(lock).collect::<Vec<_>>() })
    }

    /// Done where every lock lives long enough now.
    fn exit(&self, server: &str) -> Result<Exit> {
        let is_left = |lock: &&Lock| {
            matches!(lock.is, Is::Absent | Is::Refused(_) | Is::Tried(_)) && lock.outcome() != "extended"
        };
        let left: Vec<_> = self.locks.iter().filter(is_left).collect();
        match (left.as_slice(), self.locks.len()) {
            ([], _) => Ok(Exit::Done),
            ([lock], 1) => {
                let exit = match lock.is {
                    Is::Absent => Exit::No,
                    Is::Tried(_) => Exit::Changed,
                    _ => Exit::Usage,
                };
                Err(Stop::new(exit, format!("{} on {server}: {}", escape::text(&lock.key), lock.words())).into())
            }
            (left, all) => {
                Err(Stop::new(Exit::Partial, format!("{} of {all} locks were not extended", left.len())).into())
            }
        }
    }
}
