//! `idemctl inspect`: the records of a key, and what the next request with it gets.

mod explain;
mod find;
mod follow;
mod other_schemas;
mod request_body;
mod write_body;

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::Map;

use crate::args::{FollowArgs, KeysArgs, Output, ScanArgs, SchemaArgs, ThresholdArgs};
use crate::context::key_file::KeyFile;
use crate::context::{Context, interruptible};
use crate::domain::record::{Given, Record, name};
use crate::domain::schema::Catalog;
use crate::exit::{CommandError, Exit};
use crate::render::invocation::word;
use crate::render::record_json::RecordJson;
use crate::render::{escape, exploration, record, unclaimed_key};
use crate::scan;
use crate::store::read::records::{Lookup, LookupResult};
use crate::store::{ReadLimit, RecordReader, StoreError};
use crate::watch::{self, Watch};

/// Bytes of a value that `--raw` shows unless `--full` asks for all.
const RAW_BYTES: usize = 4 * 1024;

/// Bytes of a value that are read unless `--full` asks for all.
const HEAD_BYTES: usize = 64 * 1024;

/// Keys that are taken at most: all records are kept until they are shown.
const MOST: usize = 10_000;

/// Show a key's records, what is wrong with them, and what the next request with the key gets
///
/// KEY is an idempotency key, as the client sends it, or a full Redis key. Without --schema every schema is tried and
/// each match is shown. Exit status 1 when there is no record, 3 when some of several keys have none, 4 when there is none
/// among what the user may read.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// Scan the keyspace for a record whose idempotency key holds this text; several are listed
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["keys", "key_file", "watch", "until"])]
    find: Option<OsString>,

    /// Look for the record of the request whose body is in FILE (`-`: stdin), where the schema makes keys of bodies
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keys", "key_file", "find"])]
    request_body: Option<PathBuf>,

    /// How to show the records
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Read values of any size whole; without it 64 KiB
    #[arg(long)]
    full: bool,

    /// Show Authorization, Cookie, Set-Cookie and their like
    #[arg(long)]
    reveal: bool,

    /// Show the bytes of each value as well, escaped: the first 4 KiB, or with --full all of them. Bytes that hold credentials
    /// need --reveal
    #[arg(long, conflicts_with_all = ["body", "watch", "until"])]
    raw: bool,

    /// Write the response's body, as the client would get it, to a new FILE that only you may read (`-`: stdout, and
    /// nothing else; a terminal gets what moves its cursor escaped)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "until"])]
    body: Option<PathBuf>,

    /// Let --body replace a file that is there; a link is replaced, never followed
    #[arg(long, requires = "body")]
    force: bool,

    #[command(flatten)]
    follow: FollowArgs,

    /// Say how the record can have come to what it is: by which faults, and whether a worker may be at work. The schema's own
    /// steps are explored on a throw-away server, never on the one that is inspected
    #[arg(long, conflicts_with_all = ["watch", "until", "body"])]
    explain: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

impl Args {
    pub(crate) fn is_watch(&self) -> bool {
        self.follow.watch.watch.is_some() || self.follow.until.is_some()
    }

    /// True if the command handles Ctrl-C by itself: then it says how far it got.
    pub(crate) fn handles_interrupt(&self) -> bool {
        self.is_watch() || self.find.is_some()
    }
}

pub async fn run(context: &mut Context, mut args: Args) -> Result<Exit> {
    let first = args.follow.watch.take_key();
    args.keys.keys.splice(0..0, first);
    let watch = Watch::of(context, &args.follow, args.output == Output::Table)?;
    if args.raw && args.output != Output::Table {
        return Err(CommandError::usage(
            "--raw shows bytes for people: JSON has no field for them",
        )
        .hint("leave out -o")
        .into());
    }
    if watch.is_some() && args.output == Output::Json {
        return Err(watch::endless());
    }
    let named = if args.find.is_some() || args.request_body.is_some() {
        Vec::new()
    } else {
        KeyFile::few(&args.keys, context, MOST)?
    };
    if args.find.is_none() && args.scan.is_given() {
        return Err(CommandError::usage(
            "--rate, --scan-count and --read-from go with --find: nothing else scans",
        )
        .into());
    }
    let mut catalog = context.catalog(&args.schemas)?;
    let reader = context.reader().await?;
    if let Some(text) = &args.find {
        if args.schemas.schema.is_empty() {
            // Whoever searches for a key does not know whose it is: the context's list of schemas would hide it.
            catalog = catalog.of_all();
        }
        let mut found = find::find(context, &args, text.as_bytes(), &catalog, &reader).await?;
        if let Some(names) = found.names.take() {
            let shown = interruptible(inspect(
                context,
                &args,
                &catalog,
                reader.clone(),
                names,
                Some(&found),
            ))
            .await;
            // That the scan is not complete weighs more than what became of the records that it found.
            found.require_complete(&reader)?;
            return shown;
        }
        found.require_complete(&reader)?;
        return Ok(Exit::Done);
    }
    let keys = match &args.request_body {
        Some(file) => request_body::keys(&catalog, file)?.into_iter().map(Given::word).collect(),
        None => named,
    };
    if let Some(watch) = watch {
        let mut reader = reader;
        return follow::follow(
            context,
            &mut reader,
            &catalog,
            keys,
            &lookup(&args),
            (&watch, &args),
        )
        .await;
    }
    inspect(context, &args, &catalog, reader, keys, None).await
}

fn lookup(args: &Args) -> Lookup {
    Lookup { head: head(args), thresholds: args.thresholds.thresholds(), both: true }
}

/// Reads and shows the records of these keys. `by_scan` is the scan that found the keys, if one did.
async fn inspect(
    context: &mut Context,
    args: &Args,
    catalog: &Catalog,
    mut reader: RecordReader,
    keys: Vec<Given>,
    by_scan: Option<&find::FoundKeys>,
) -> Result<Exit> {
    let mut found = lookup(args).find(&mut reader, catalog, keys).await?;
    keep_each_once(&mut found);
    context.advise(found.iter_mut().flat_map(|found| &mut found.records));
    let exit = exit_of(&found);
    match &args.body {
        Some(file) => write_body::write(context, &found, file, args.force)?,
        None => {
            show(context, &found, args, by_scan.is_none_or(find::FoundKeys::are_complete)).await?
        }
    }
    tell(context, catalog, &reader, &found);
    if !reader.keeps_idle_times() {
        context.ui.detail(
            "The idle time is left out: idemctl's own earlier reads count as use here. CLIENT NO-TOUCH, which prevents that, needs \
             Redis 7.2 and the right to CLIENT, and is not used on clusters.",
        );
    }
    if args.find.is_none() {
        other_schemas::hint(context, &mut reader, catalog, &lookup(args), (&found, &args.schemas))
            .await;
    }
    if let Some(why) = reader.is_behind().await {
        context.ui.warning(&why);
    }
    if found.iter().all(|found| found.records.is_empty() && found.strangers.is_empty()) {
        scan::show_other_databases(context, &reader).await;
    }
    Ok(exit)
}

/// Drops keys that name only records which keys before them named, in other words.
fn keep_each_once(found: &mut Vec<LookupResult>) {
    let mut shown: HashSet<Vec<Vec<u8>>> = HashSet::new();
    found.retain(|found| {
        let mut is_new = found.records.is_empty();
        for record in &found.records {
            is_new |=
                shown.insert(record.seen.keys.iter().map(|key| key.redis_key.clone()).collect());
        }
        is_new
    });
}

/// What shows one of the records that a key names: its name, or, if several schemas read the same record, the schema.
fn one_of(found: &LookupResult) -> String {
    let names = name::of_each(found.records.iter());
    if names.len() < found.records.len() {
        return "--schema NAME".to_owned();
    }
    let names: Vec<_> = names.iter().map(|name| word(&name.instead_of(&found.key))).collect();
    names.join(" or ")
}

/// Done where every key has a record.
fn exit_of(found: &[LookupResult]) -> Exit {
    let is_missing = |found: &&LookupResult| found.records.is_empty();
    let missing = found.iter().filter(is_missing).count();
    if found.iter().any(|found| found.silent().is_some()) {
        Exit::Partial
    } else if found.iter().filter(is_missing).any(|found| found.unread.is_some()) {
        // There may be a record where the user may not look.
        Exit::Permission
    } else if missing == found.len() {
        Exit::No
    } else if missing > 0 {
        Exit::Partial
    } else {
        Exit::Done
    }
}

fn head(args: &Args) -> ReadLimit {
    if args.full || args.body.is_some() { ReadLimit::Whole } else { ReadLimit::Bytes(HEAD_BYTES) }
}

async fn show(
    context: &mut Context,
    found: &[LookupResult],
    args: &Args,
    has_all_keys: bool,
) -> Result<()> {
    let records: Vec<&Record> = found.iter().flat_map(|found| &found.records).collect();
    let shown: Vec<_> = records.iter().map(|record| RecordJson::of(record, args.reveal)).collect();
    let unclaimed =
        found.iter().flat_map(|found| &found.strangers).map(unclaimed_key::value).collect();
    let complete = has_all_keys && found.iter().all(|found| found.unread.is_none());
    let mut of_all = Map::from_iter([
        ("unclaimed".to_owned(), unclaimed),
        ("complete".to_owned(), complete.into()),
    ]);
    let pasts = if args.explain {
        explain::pasts(context, &records).await?
    } else {
        vec![None; records.len()]
    };
    let of_past = || records.iter().zip(&pasts);
    if args.explain {
        let told = of_past()
            .filter_map(|(record, past)| Some(exploration::past_json(record, past.as_ref()?)));
        of_all.insert("explained".to_owned(), told.collect());
    }
    let most_raw = if args.full { usize::MAX } else { RAW_BYTES };
    let table = |view| {
        let page = |(record, past): (&&Record, &Option<_>)| {
            let past =
                past.as_ref().map(|past| exploration::past(record, past, view)).unwrap_or_default();
            let raw = if args.raw {
                record::raw(record, view, most_raw, args.reveal)
            } else {
                String::new()
            };
            record::page(record, view, args.reveal) + &raw + &past
        };
        of_past().map(page).collect::<Vec<_>>().join("\n")
    };
    Ok(context.show_with(args.output, "records", &shown, &of_all, table)?)
}

/// Says what the records alone do not tell: keys without a record, keys with several, Redis keys that may not be read.
fn tell(context: &mut Context, catalog: &Catalog, reader: &RecordReader, found: &[LookupResult]) {
    for found in found {
        let key = escape::text(&found.key);
        let names: Vec<_> =
            found.records.iter().map(|record| record.schema.name.as_str()).collect();
        match names.as_slice() {
            [] if found.looked_at.is_empty() && found.unread.is_some() => {}
            [] if !found.strangers.is_empty() => {
                found
                    .strangers
                    .iter()
                    .for_each(|there| context.ui.status(&unclaimed_key::line(there)));
                for name in unclaimed_key::leaving_out(&found.strangers) {
                    context.ui.hint(&format!(
                        "[keys] in the schema.toml of {name} says which Redis keys are records"
                    ));
                }
            }
            [] if found.looked_at.is_empty() => {
                let keys = catalog.chosen().iter().flat_map(|schema| schema.templates());
                let keys: Vec<_> = keys.map(|key| escape::again(&key)).collect();
                context.ui.status(&format!(
                    "{key}: no key that the chosen schemas have, and no Redis key"
                ));
                context.ui.hint(&format!("theirs look like {}", keys.join("  ")));
            }
            [] => {
                let places: Vec<_> = found.looked_at.iter().map(|key| escape::text(key)).collect();
                let part = if found.unread.as_ref().is_some_and(StoreError::is_permission) {
                    " where this user may look"
                } else {
                    ""
                };
                context.ui.status(&format!("{key}: no record on {}{part}", reader.name()));
                context.ui.hint(&format!("looked at {}", places.join("  ")));
                if catalog.chosen().iter().any(|schema| schema.takes_prefix && !schema.has_prefix())
                {
                    context
                        .ui
                        .hint("a deployment that puts a prefix before its keys needs --prefix");
                }
            }
            [_] => {}
            names => context.ui.warning(&format!(
                "{key}: {} records, under {}; {} shows one",
                names.len(),
                names.join(" and "),
                one_of(found),
            )),
        }
        if let Some(unread) = &found.unread {
            let schemas = found.unread_schemas.join(", ");
            context.ui.warning(&format!(
                "{key}: some of the schemas' keys were not read ({schemas}): {unread}"
            ));
        }
    }
    if found.iter().any(|found| found.unread.is_some()) && !catalog.is_named() {
        context.ui.hint("--schema NAME looks at that schema's keys alone");
    }
}
