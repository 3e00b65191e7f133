//! `idemctl force-unlock`: removes locks that nobody will release.

mod several;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::args::{ChangeArgs, KeysArgs, Output, SchemaArgs, ThresholdArgs};
use crate::change::bulk::KeyFile;
use crate::change::named_locks;
use crate::change::{self, Journal};
use crate::context::{Context, interruptible};
use crate::domain::change::expect::{self, Expectation};
use crate::domain::change::unlock;
use crate::domain::record::{Given, Record};
use crate::domain::schema::{Catalog, State};
use crate::exit::{Exit, Stop};
use crate::render::invocation::name_of;
use crate::render::{document, escape, name, record, record_json, words};
use crate::store::backup::About;
use crate::store::read::records::Lookup;
use crate::store::{Action, Change, Outcome, ReadLimit, Writer};

/// Remove a lock that nobody will release, so that the next request executes
///
/// Shows the record, who is hurt and what becomes of the old worker, asks, backs the lock up, and removes it only if
/// the record is the one that was shown: the same bytes, which expire at the same moment. A lock that was renewed, or
/// released and taken anew, stays. A stored result is never removed. Of several keys a table is shown, and one question asked.
/// Exit status 1 when there is no record, 8 when it changed since it was shown, 3 when some of several keys were left alone.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// Go on only if the one lock that is named is the one whose token --dry-run printed. An owner compares less: any
    /// lock of this owner
    #[arg(long, value_name = "TOKEN|OWNER", value_parser = Expectation::parse)]
    expect: Option<Expectation>,

    /// How to show the record and what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    let mut keys = KeyFile::few(&args.keys, context, named_locks::MOST)?;
    let lookup = Lookup { head: ReadLimit::Whole, thresholds: args.thresholds.thresholds(), both: false };
    let key = match keys.pop() {
        Some(key) if keys.is_empty() => key,
        last => {
            keys.extend(last);
            return several::unlock(context, &args, &catalog, &lookup, keys).await;
        }
    };
    let (record, is_schema_named) = find(context, &catalog, &lookup, &key).await?;
    let key = key.text;
    if !record.schema.has_prefix() && !is_schema_named {
        let (key, name) = (escape::text(&key), &record.schema.name);
        return Err(Stop::usage(format!("{key}: only {name} claims it, and any Redis key may be {name}'s"))
            .hint(format!("where it is, say so: --schema {name}"))
            .into());
    }
    let role = unlock::removable(&record).map_err(|why| Stop::usage(format!("{}: {why}", escape::text(&key))))?;
    if args.output == Output::Table {
        explain(context, &record, role)?;
    }
    if let Some(expected) = &args.expect
        && !expected.holds(&record)
    {
        return Err(Stop::new(Exit::Changed, "the lock is not as --expect says; nothing was done").into());
    }
    if args.change.confirmed.dry_run {
        report(context, &args, &record, "dry-run", None)?;
        context.ui.status("dry run: nothing was changed");
        return Ok(Exit::Done);
    }
    let writer = context.writer(&args.change.confirmed).await?;
    args.change.confirmed.confirm(context, "Remove this lock?", &writer.name())?;
    unlock(context, &args, &writer, &record, role).await
}

/// The one record of a key, and whether the operator said of which schema it is.
async fn find(context: &mut Context, catalog: &Catalog, lookup: &Lookup, key: &Given) -> Result<(Record, bool)> {
    let mut reader = context.reader().await?;
    let found = interruptible(lookup.find(&mut reader, catalog, vec![key.clone()])).await?.pop().unwrap_or_default();
    if let Some(names) = found.several() {
        return Err(Stop::usage(name::ambiguous(&key.text, &names)).hint(name::HINT).into());
    }
    if let Some(error) = found.unread.clone().filter(|_| found.records.is_empty()) {
        // There may be a record, or none.
        return Err(error.into());
    }
    let mut record = the_one(&key.text, found.records.clone(), &reader.name())?;
    context.advise([&mut record]);
    let is_schema_named = catalog.takes_bare() || found.says_schema_of(&record);
    Ok((record, is_schema_named))
}

fn the_one(key: &[u8], mut records: Vec<Record>, server: &str) -> Result<Record, Stop> {
    let key = escape::text(key);
    if records.len() > 1 {
        let held = records.iter().filter(|record| unlock::removable(record).is_ok()).count();
        let names: Vec<_> = records.iter().map(|record| record.schema.name.clone()).collect();
        if held != 1 {
            return Err(Stop::usage(format!("{key} has records under {}: which one?", names.join(" and ")))
                .hint("name it with --schema"));
        }
        records.retain(|record| unlock::removable(record).is_ok());
    }
    records.pop().ok_or_else(|| Stop::new(Exit::No, format!("{key}: no record on {server}")))
}

fn explain(context: &mut Context, record: &Record, role: usize) -> Result<()> {
    context.ui.page(record::page(record, context.ui.view(), false))?;
    context.ui.flush()?;
    let redis_key = escape::text(&record.seen.keys[role].redis_key);
    if record.state == State::Completed {
        context.ui.status(&format!("Removes {redis_key}. The result stays, and retries go on getting it."));
        return Ok(());
    }
    let worker = match record.owner() {
        Some(owner) => format!("worker {}", escape::text(owner)),
        None => "its worker (the schema does not say who)".to_owned(),
    };
    context.ui.status(&format!("Removes {redis_key}. The next request with this key executes the operation."));
    context.ui.status(&format!(
        "If {worker} still runs, the operation executes twice; {}.",
        words::late_worker(&record.schema)
    ));
    if let Some(token) = expect::token(record) {
        let name = name_of(record);
        let token = token.to_string();
        let mut words = vec!["force-unlock", &name, "--expect", &token];
        match context.settings.context_name().filter(|_| context.settings.is_protected()) {
            Some(name) => words.extend(["--confirm", name]),
            None => words.push("--yes"),
        }
        let line = context.ui.invocation().command_line(words);
        context.ui.status(&format!("For scripts: `{line}`"));
    }
    Ok(())
}

async fn unlock(context: &mut Context, args: &Args, writer: &Writer, record: &Record, role: usize) -> Result<Exit> {
    let about = About { schema: record.schema.name.clone(), key: record.key.clone(), state: record.state.as_str() };
    let change = Change::new(vec![role], record.seen.clone(), about);
    let mut journal = Journal::open(context, &args.change, "force-unlock", true)?;
    let now = context.now();
    let (outcomes, ended) = journal.apply(writer, std::slice::from_ref(&change), Action::Remove, "unlocked", now).await;
    let (kept, ended) = journal.close(ended, context.now()).await;
    match outcomes.first() {
        // A change that was made is told even where an error followed.
        Some(outcome) if outcome.is_done() || ended.is_ok() => {
            let exit = finish(context, args, record, *outcome, kept).await?;
            ended.map(|()| exit)
        }
        _ => ended.map(|()| Exit::Done),
    }
}

async fn finish(
    context: &mut Context,
    args: &Args,
    record: &Record,
    outcome: Outcome,
    backup: Option<PathBuf>,
) -> Result<Exit> {
    match outcome {
        Outcome::Changed => Err(Stop::new(Exit::Changed, "the record changed since it was shown; nothing was done")
            .hint("inspect it again: its worker may be at it")
            .into()),
        Outcome::Absent => {
            Err(Stop::new(Exit::Changed, "the lock is gone since it was shown; nothing was done").into())
        }
        // Both come with an error.
        Outcome::Refused | Outcome::Unknown | Outcome::Kept | Outcome::Partly => {
            Err(Stop::new(Exit::Bug, "nothing is known of the lock").into())
        }
        Outcome::Done | Outcome::Expires(_) | Outcome::FoundDone => {
            report(context, args, record, "unlocked", backup.as_deref())?;
            let kept = backup.map(|file| format!("; backup: {}", file.display())).unwrap_or_default();
            change::say_read_back(context, u64::from(outcome == Outcome::FoundDone));
            context.ui.status(&format!("Unlocked {}{kept}", escape::text(&record.key)));
            read_back(context, record).await;
            Ok(Exit::Done)
        }
    }
}

/// Says what stands there now, for a request may have taken the lock again at once.
async fn read_back(context: &mut Context, record: &Record) {
    let Ok(mut reader) = context.reader().await else { return };
    let wanted = vec![record.schema.redis_keys(&record.key)];
    let Ok(mut seen) = reader.observe(&wanted, ReadLimit::Bytes(1024)).await else { return };
    match seen.pop() {
        Some(Ok(now)) if now.is_absent() => context.ui.status("Read back: the key is free."),
        Some(Ok(_)) if record.state == State::Completed => context.ui.status("Read back: the result is there."),
        Some(Ok(_)) => context.ui.status("Read back: the next request has taken the key already."),
        _ => {}
    }
}

fn report(context: &mut Context, args: &Args, record: &Record, outcome: &str, backup: Option<&Path>) -> Result<()> {
    let record = record_json::value(record);
    let first = match args.output {
        Output::Table => return Ok(()),
        Output::Json => json!({ "format": 1, "records": [record] }),
        Output::Jsonl => record,
    };
    let more = document::fields(json!({ "outcome": outcome, "backup": backup }));
    Ok(context.ui.data(document::line(&document::with(first, more)))?)
}
