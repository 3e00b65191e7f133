//! `idemctl inspect`: the records of a key, and what the next request with it gets.

mod explain;
mod watch;
mod write_body;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::Map;

use crate::args::{Output, SchemaArgs, ThresholdArgs, parse_duration};
use crate::change;
use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::schema::{Catalog, State};
use crate::exit::{Exit, Stop};
use crate::files;
use crate::render::record_json::RecordJson;
use crate::render::{escape, exploration, record, stranger};
use crate::store::read::records::{Found, Lookup};
use crate::store::{Head, Reader};

/// Bytes of a value that are read unless `--full` asks for all.
const HEAD_BYTES: usize = 64 * 1024;

/// Bytes of keys that are taken from stdin at most: all records are kept until they are shown.
const MOST_KEYS_BYTES: u64 = 16 * 1024 * 1024;

/// Show a key's records, what is wrong with them, and what the next request with the key gets
///
/// KEY is an idempotency key, as the client sends it, or a full Redis key. Without --schema every schema is tried and
/// each match is shown. Exit status 1 when there is no record, 4 when there is none among what the user may read.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Idempotency keys or full Redis keys; `-` reads them from stdin, one a line
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,

    /// Keys on stdin end with NUL instead of a newline
    #[arg(short = '0', long)]
    null: bool,

    /// How to show the records
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Read values of any size whole; without it 64 KiB
    #[arg(long)]
    full: bool,

    /// Show Authorization, Cookie, Set-Cookie and their like
    #[arg(long)]
    reveal: bool,

    /// Write the response's body, as the client would get it, to a new FILE that only you may read (`-`: stdout, and
    /// nothing else)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "until"])]
    body: Option<PathBuf>,

    /// Let --body replace a file that is there; a link is replaced, never followed
    #[arg(long, requires = "body")]
    force: bool,

    /// Follow the record, looking every INTERVAL [default: 1s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "1s")]
    watch: Option<OsString>,

    /// Follow the record until it is in this state, then end
    #[arg(long, value_name = "STATE", value_enum)]
    until: Option<Until>,

    /// Say how the record can have come to what it is: by which faults, and whether a worker may be at work. The schema's own
    /// steps are explored on a throw-away server, never on the one that is inspected
    #[arg(long, conflicts_with_all = ["watch", "until", "body"])]
    explain: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// What `--until` waits for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Until {
    /// A result is stored.
    Completed,
    /// Nothing is left.
    Absent,
}

impl From<Until> for State {
    fn from(until: Until) -> Self {
        match until {
            Until::Completed => Self::Completed,
            Until::Absent => Self::Absent,
        }
    }
}

pub async fn run(context: &mut Context, mut args: Args) -> Result<Exit> {
    let interval = watch_interval(&mut args);
    let keys = keys(&args)?;
    if interval.is_some() && args.output == Output::Json {
        return Err(Stop::usage("--watch has no end to close a JSON document at")
            .hint("use -o jsonl: one object a change")
            .into());
    }
    let catalog = context.catalog(&args.schemas)?;
    let mut reader = context.reader().await?;
    let lookup = Lookup { head: head(&args), thresholds: args.thresholds.thresholds(), both: true };
    if let Some(interval) = interval {
        let [key] = <[Vec<u8>; 1]>::try_from(keys).map_err(|_| Stop::usage("--watch follows one KEY"))?;
        let how = watch::How { interval, until: args.until.map(State::from), output: args.output, reveal: args.reveal };
        return watch::follow(context, &mut reader, &catalog, key, &lookup, how).await;
    }
    let found = lookup.find(&mut reader, &catalog, keys).await?;
    let exit = if found.iter().any(|found| found.silent().is_some()) {
        Exit::Partial
    } else if found.iter().any(|found| found.records.is_empty() && found.unread.is_some()) {
        // There may be a record where the user may not look.
        Exit::Permission
    } else if found.iter().any(|found| found.records.is_empty()) {
        Exit::No
    } else {
        Exit::Done
    };
    match &args.body {
        Some(file) => write_body::write(context, &found, file, args.force)?,
        None => show(context, &found, &args).await?,
    }
    tell(context, &catalog, &reader, &found);
    if found.iter().all(|found| found.records.is_empty() && found.strangers.is_empty()) {
        change::say_elsewhere(context, &reader).await;
    }
    Ok(exit)
}

/// How often to look, where a record is followed. Of `--watch KEY` clap takes the key for the interval: a word that is no
/// duration is a key.
fn watch_interval(args: &mut Args) -> Option<Duration> {
    const DEFAULT: Duration = Duration::from_secs(1);
    let Some(word) = args.watch.take() else { return args.until.map(|_| DEFAULT) };
    match word.to_str().and_then(|text| parse_duration(text).ok()) {
        Some(interval) => Some(interval.max(Duration::from_millis(10))),
        None => {
            args.keys.insert(0, word);
            Some(DEFAULT)
        }
    }
}

fn head(args: &Args) -> Head {
    if args.full || args.body.is_some() { Head::Whole } else { Head::Bytes(HEAD_BYTES) }
}

fn keys(args: &Args) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    for word in &args.keys {
        if word == "-" {
            let stdin = std::io::stdin().lock();
            let stdin = files::up_to(stdin, MOST_KEYS_BYTES).context("cannot read keys from stdin")?;
            let end = if args.null { 0 } else { b'\n' };
            keys.extend(stdin.split(|byte| *byte == end).filter(|key| !key.is_empty()).map(<[u8]>::to_vec));
        } else {
            keys.push(word.clone().into_vec());
        }
    }
    if keys.is_empty() {
        return Err(Stop::usage("no KEY was given")
            .hint("idemctl inspect KEY…, or `-` to read keys from stdin")
            .into());
    }
    if keys.iter().any(Vec::is_empty) {
        return Err(Stop::usage("a KEY is empty").into());
    }
    Ok(keys)
}

async fn show(context: &mut Context, found: &[Found], args: &Args) -> Result<()> {
    let records: Vec<&Record> = found.iter().flat_map(|found| &found.records).collect();
    let shown: Vec<_> = records.iter().map(|record| RecordJson::of(record, args.reveal)).collect();
    let unclaimed = found.iter().flat_map(|found| &found.strangers).map(stranger::value).collect();
    let complete = found.iter().all(|found| found.unread.is_none());
    let mut of_all = Map::from_iter([("unclaimed".to_owned(), unclaimed), ("complete".to_owned(), complete.into())]);
    let pasts = if args.explain { explain::pasts(context, &records).await? } else { vec![None; records.len()] };
    let of_past = || records.iter().zip(&pasts);
    if args.explain {
        let told = of_past().filter_map(|(record, past)| Some(exploration::past_json(record, past.as_ref()?)));
        of_all.insert("explained".to_owned(), told.collect());
    }
    let table = |view| {
        let page = |(record, past): (&&Record, &Option<_>)| {
            let past = past.as_ref().map(|past| exploration::past(record, past, view)).unwrap_or_default();
            record::page(record, view, args.reveal) + &past
        };
        of_past().map(page).collect::<Vec<_>>().join("\n")
    };
    Ok(context.show_with(args.output, "records", &shown, &of_all, table)?)
}

/// Says what the records alone do not tell: keys without a record, keys with several, Redis keys that may not be read.
fn tell(context: &mut Context, catalog: &Catalog, reader: &Reader, found: &[Found]) {
    for found in found {
        let key = escape::text(&found.key);
        let names: Vec<_> = found.records.iter().map(|record| record.schema.name.as_str()).collect();
        match names.as_slice() {
            [] if found.looked_at.is_empty() => {}
            [] if !found.strangers.is_empty() => {
                found.strangers.iter().for_each(|there| context.ui.status(&stranger::line(there)));
            }
            [] => {
                let places: Vec<_> = found.looked_at.iter().map(|key| escape::text(key)).collect();
                let part = if found.unread.is_some() { " where this user may look" } else { "" };
                context.ui.status(&format!("{key}: no record on {}{part}", reader.name()));
                context.ui.hint(&format!("looked at {}", places.join("  ")));
                if catalog.chosen().iter().any(|schema| schema.takes_prefix && !schema.has_prefix()) {
                    context.ui.hint("a deployment that puts a prefix before its keys needs --prefix");
                }
            }
            [_] => {}
            names => context.ui.warning(&format!(
                "{key}: {} records, under {}; --schema NAME shows one",
                names.len(),
                names.join(" and ")
            )),
        }
        if let Some(unread) = &found.unread {
            context.ui.warning(&format!("{key}: some of the schemas' keys were not read: {unread}"));
        }
    }
    if found.iter().any(|found| found.unread.is_some()) && !catalog.is_named() {
        context.ui.hint("--schema NAME looks at that schema's keys alone");
    }
}
