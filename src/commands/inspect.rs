//! `idemctl inspect`: the records of a key, and what the next request with it gets.
//!
//! The path of the data:
//! 1. `GivenKey::meanings` (`domain/record/name.rs`) reads KEY as a name, an idempotency key or a
//!    Redis key. `domain/record/locate.rs` lists the Redis keys of each meaning under each schema.
//! 2. `store/read/lookup.rs` reads them with the `RecordReader` of `Client::reader`
//!    (`store/read/reader.rs`). It calls `lua/admin/read_records.lua`, which receives the Redis
//!    keys and returns type, expiry and value of each.
//! 3. `store/cluster/routing.rs` passes the call to the node of the key (or to the one server, if
//!    it is no cluster). `Session::connect_reader` connected before step 1, with AUTH if there is a
//!    password, and SELECT if the database is not 0. For another node of a cluster,
//!    `cluster/node.rs` does so now. On the first connection of a run, `node.rs` sends HELLO alone,
//!    then CLIENT together with the call. `store/connection/connection.rs` queues the bytes, and
//!    `connection/transport.rs` writes them to the socket while it waits for the reply.
//! 4. Back: `connection/resp.rs` parses the reply, and `store/read/script_reply.rs` turns it into
//!    an `Observation`.
//! 5. `locate.rs` tries each schema: `domain/record/decode.rs` decodes the values, and for each
//!    schema that reads them `Record::new` derives the state, the age and the answer to the next
//!    request (`domain/step/next_request.rs`). If none reads them, it does so for the schema whose
//!    fixed prefix the Redis key has, or that is named.
//! 6. `locate.rs` decides whether another schema's service wrote the value, and adds the findings
//!    of `domain/diagnosis/rules.rs`.
//! 7. `render/record.rs` formats the page, and `Ui::page` writes it to stdout. The exit code is the
//!    result of `run`; `cli.rs` passes it to the process.

mod explain;
mod find;
mod follow;
mod other_schemas;
mod write_body;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::{Map, Value};

use crate::args::{FollowArgs, KeysArgs, Output, ScanArgs, SchemaArgs, ThresholdArgs};
use crate::domain::diagnosis::OVERSIZED_BYTES;
use crate::domain::record::{GivenKey, Record, name};
use crate::domain::schema::Catalog;
use crate::exit::{CommandError, Exit};
use crate::render::invocation::word;
use crate::render::record::PageOptions;
use crate::render::record_json::RecordJson;
use crate::render::{escape, exploration, record, unclaimed_key, words};
use crate::scan;
use crate::session::key_list::KeyList;
use crate::session::{Session, interruptible};
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{ReadLimit, RecordReader};
use crate::watch::{self, Watch};

/// Bytes of a value that `--raw` shows without `--full`, which is about a screen.
const RAW_BYTES: usize = 4 * 1024;

/// Bytes of a value that are read first. `--full` and `--body` read all of it, and a longer value
/// is read further, up to 1 MiB, or until its format is decided. Larger values have the finding
/// `oversized`, which uses the same limit.
const SHOWN_BYTES: usize = OVERSIZED_BYTES as usize;

/// The most keys that one run takes: all records are kept until they are shown.
const MOST: usize = 10_000;

/// Show a key's records, and what the next request gets
///
/// KEY is an idempotency key, as the client sends it, or a full Redis key. Without --schema,
/// inspect tries every schema and shows each match.
///
/// Exit status 1 if there is no record, 3 if some of several keys have none, 4 if there is none
/// among the keys that the user may read.
///
/// With `--body -`, stdout contains only the body.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// Scan for records whose idempotency key contains this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["keys", "key_file", "watch", "until"])]
    find: Option<OsString>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Read whole values of any size instead of the first 1 MiB
    #[arg(long)]
    full: bool,

    /// Show Authorization, Cookie, Set-Cookie and similar headers
    #[arg(long)]
    reveal: bool,

    /// Also show the escaped bytes of each value, at most 4 KiB without --full
    ///
    /// Bytes that contain credentials are shown only with --reveal.
    #[arg(long, conflicts_with_all = ["body", "watch", "until"])]
    raw: bool,

    /// Write the response body to a new FILE that only you may read (`-`: stdout)
    ///
    /// The body is what the client would get. A terminal gets control characters escaped.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "until"])]
    body: Option<PathBuf>,

    /// Let --body replace an existing file; replaces a symbolic link, never follows it
    #[arg(long, requires = "body")]
    force: bool,

    /// Explain which faults can have led to the record's state, and whether a worker may still be
    /// running
    ///
    /// Explores the schema's own steps on a temporary local Redis, never on the server that you
    /// inspect.
    #[arg(long, conflicts_with_all = ["watch", "until", "body"])]
    explain: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    follow: FollowArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

impl Args {
    /// True if the command handles Ctrl-C by itself: then it says how far it got.
    pub(crate) fn handles_interrupt(&self) -> bool {
        let Self { follow, find, .. } = self;
        follow.watch.watch.is_some() || follow.until.is_some() || find.is_some()
    }
}

/// Runs `inspect`. The exit status says whether every key has a record.
pub async fn run(session: &mut Session, mut args: Args) -> Result<Exit> {
    // `--watch KEY`: the option takes an optional interval, so that clap gives it the first key.
    let first = args.follow.watch.take_key();
    args.keys.keys.splice(0..0, first);
    let watch = Watch::of(session, &args.follow, args.output == Output::Text)?;
    check_options(&args, watch.is_some())?;
    let mut named = if args.find.is_some() {
        KeyList::of_words(&[])?
    } else {
        KeyList::of_few(&args.keys, session)?
    };
    // What the options alone can refuse is refused before the first connection.
    if args.find.is_none() && args.scan.is_given() {
        return Err(CommandError::usage(
            "--rate, --scan-count and --read-from need --find, because nothing else scans",
        )
        .into());
    }
    let catalog = session.catalog_for(&args.schemas, &mut named)?;
    let mut reader = session.connect_reader().await?;
    if let Some(text) = &args.find {
        return find_and_inspect(session, &args, text.as_bytes(), catalog, reader).await;
    }
    let keys = named.all(MOST)?;
    if let Some(watch) = watch {
        let lookup = lookup(&args);
        let following = (&watch, &args);
        return follow::follow(session, &mut reader, &catalog, keys, &lookup, following).await;
    }
    inspect(session, &args, &catalog, reader, keys, true).await
}

/// Refuses options that do not go together.
fn check_options(args: &Args, is_watch: bool) -> Result<()> {
    if args.raw && args.output != Output::Text {
        return Err(CommandError::usage(
            "--raw is only for text output, because JSON has no field for the bytes",
        )
        .hint("omit -o")
        .into());
    }
    if is_watch && args.output == Output::Json {
        return Err(watch::endless());
    }
    Ok(())
}

/// `--find TEXT`: scans for the keys that contain the text. Inspects the only one, or for programs
/// all of them. Several are listed for people.
async fn find_and_inspect(
    session: &mut Session,
    args: &Args,
    text: &[u8],
    mut catalog: Catalog,
    reader: RecordReader,
) -> Result<Exit> {
    if args.schemas.schema.is_empty() {
        // An operator who searches for a key does not know its schema, so the context's list of
        // schemas could hide the key.
        catalog = catalog.with_all_chosen();
    }
    let mut found = find::find(session, args, text, &catalog, &reader).await?;
    let Some(names) = found.names.take() else {
        found.require_complete(&reader)?;
        return Ok(Exit::Done);
    };
    let has_all_keys = found.are_complete();
    let shown = inspect(session, args, &catalog, reader.clone(), names, has_all_keys);
    let shown = interruptible(shown).await;
    // That the scan is incomplete matters more than the exit code of the records that it found.
    found.require_complete(&reader)?;
    shown
}

fn lookup(args: &Args) -> Lookup {
    // A body is written whole or not at all.
    let first_read = if args.full || args.body.is_some() {
        ReadLimit::Whole
    } else {
        ReadLimit::Bytes(SHOWN_BYTES)
    };
    Lookup {
        first_read,
        thresholds: args.thresholds.thresholds(),
        includes_less_specific_results: true,
        keeps_unrecognised: false,
    }
}

/// Reads and shows the records of these keys. `has_all_keys` is false if an incomplete scan found
/// the keys.
async fn inspect(
    session: &mut Session,
    args: &Args,
    catalog: &Catalog,
    mut reader: RecordReader,
    keys: Vec<GivenKey>,
    has_all_keys: bool,
) -> Result<Exit> {
    let lookup = lookup(args);
    let results = lookup.find(&mut reader, catalog, keys).await?;
    let mut results = LookupResult::each_once(results);
    for result in &mut results {
        session.fill_in_advice(&mut result.records);
    }
    let exit = exit_of(&results, catalog);
    match &args.body {
        Some(file) => write_body::write(session, &results, file, args.force)?,
        None => show(session, catalog, &results, args, has_all_keys).await?,
    }

    // Stdout has the data now. Everything that follows is for people, on stderr.
    for result in &results {
        report(session, catalog, &reader, result);
    }
    if !reader.keeps_idle_times() {
        session.ui.detail(words::IDLE_TIMES);
    }
    // A scan found these keys under the schemas of this run, so no other schema needs to be tried.
    if args.find.is_none() {
        other_schemas::other_schemas_hint(
            session,
            &mut reader,
            catalog,
            &lookup,
            (&results, &args.schemas),
        )
        .await;
    }
    // A replica without its master may show an old state, without any error.
    if let Some(why) = reader.why_stale().await {
        session.ui.warning(&why);
    }
    // If no key exists, the operator may have named the wrong database.
    if results.iter().all(|result| result.records.is_empty() && result.unclaimed.is_empty()) {
        scan::show_other_databases(session, &reader).await;
    }
    Ok(exit)
}

/// Done if every key has a record. An unreachable node counts first, then a missing permission,
/// because a record may exist in the unread rest.
fn exit_of(results: &[LookupResult], catalog: &Catalog) -> Exit {
    if results.iter().any(|result| result.unreachable().is_some()) {
        return Exit::Partial;
    }
    let missing: Vec<_> = results.iter().filter(|result| result.records.is_empty()).collect();
    if missing.iter().any(|result| result.uncovered(catalog).is_some()) {
        return Exit::Partial;
    }
    if missing.iter().any(|result| result.why_unread.is_some()) {
        // There may be a record among the keys that the Redis user may not read.
        Exit::Permission
    } else if missing.len() == results.len() {
        Exit::No
    } else if !missing.is_empty() {
        Exit::Partial
    } else {
        Exit::Done
    }
}

/// Prints the records, as pages or as JSON.
async fn show(
    session: &mut Session,
    catalog: &Catalog,
    results: &[LookupResult],
    args: &Args,
    has_all_keys: bool,
) -> Result<()> {
    let mut records: Vec<&Record> = Vec::new();
    let mut unclaimed: Vec<Value> = Vec::new();
    let mut complete = has_all_keys;
    for result in results {
        records.extend(&result.records);
        unclaimed.extend(result.unclaimed.iter().map(unclaimed_key::value));
        complete &= result.why_unread.is_none() && result.uncovered(catalog).is_none();
    }
    // Fields of the JSON document beside the records.
    let mut document_fields = Map::new();
    document_fields.insert("unclaimed".to_owned(), Value::Array(unclaimed));
    document_fields.insert("complete".to_owned(), Value::Bool(complete));

    let mut pasts = vec![None; records.len()];
    if args.explain {
        pasts = explain::pasts(session, &records).await?;
        let mut explained = Vec::new();
        for (record, past) in records.iter().zip(&pasts) {
            if let Some(past) = past {
                explained.push(exploration::past_json(record, past));
            }
        }
        document_fields.insert("explained".to_owned(), Value::Array(explained));
    }

    let options = PageOptions { reveal: args.reveal, full: args.full };
    let most_raw = if args.full { usize::MAX } else { RAW_BYTES };
    // JSON has fields that need a CRC-64 of each value, so a page does not compute them.
    let mut shown = Vec::new();
    if args.output != Output::Text {
        for record in &records {
            shown.push(RecordJson::of(record, args.reveal));
        }
    }
    session.show_with(args.output, "records", &shown, &document_fields, |view| {
        let mut pages = Vec::with_capacity(records.len());
        for (record, past) in records.iter().zip(&pasts) {
            let mut page = record::page(record, view, options);
            if args.raw {
                page += &record::raw(record, view, most_raw, args.reveal);
            }
            if let Some(past) = past {
                page += &exploration::past(record, past, view);
            }
            pages.push(page);
        }
        pages.join("\n")
    })?;
    Ok(())
}

/// Reports that a key has no record or several, or that some Redis keys were not read.
fn report(session: &mut Session, catalog: &Catalog, reader: &RecordReader, found: &LookupResult) {
    let key = escape::text(&found.given);
    // Without an answer there may be a record, or none.
    if let Some(unreachable) = found.unreachable()
        && found.records.is_empty()
    {
        session.ui.status(&format!("{key}: unknown, because {unreachable}"));
        return;
    }
    match found.records.len() {
        0 => report_no_record(session, catalog, reader, found),
        1 => {}
        count => {
            let names: Vec<_> =
                found.records.iter().map(|record| record.schema.name.as_str()).collect();
            let names = names.join(" and ");
            let shows_one = one_of(found);
            session.ui.warning(&format!(
                "{key}: {count} records, under {names}; to show one, use {shows_one}"
            ));
        }
    }
    if let Some(unread) = &found.why_unread {
        let whose = match found.unread_schemas.join(", ") {
            schemas if schemas.is_empty() => "this Redis key".to_owned(),
            schemas => format!("the keys of {schemas}"),
        };
        session.ui.warning(&format!("{key}: could not read {whose}: {unread}"));
    }
}

/// Reports which Redis keys were read for a key without a record, and those of them that exist.
fn report_no_record(
    session: &mut Session,
    catalog: &Catalog,
    reader: &RecordReader,
    found: &LookupResult,
) {
    let key = escape::text(&found.given);
    if let Some(unread) = found.uncovered(catalog) {
        session.ui.status(&format!("{key}: unknown: {unread}"));
        return;
    }
    if !found.unclaimed.is_empty() && (found.why_unread.is_none() || !found.checked.is_empty()) {
        for unclaimed in &found.unclaimed {
            session.ui.status(&unclaimed_key::line(unclaimed));
            for schema in &unclaimed.fits {
                let redis_key = word(&escape::text(&unclaimed.seen.redis_key));
                session.ui.hint(&format!("`idemctl inspect {redis_key} --schema {schema}`"));
            }
        }
        for name in unclaimed_key::leaving_out(&found.unclaimed) {
            session.ui.hint(&format!(
                "[keys] in the schema.toml of {name} defines which Redis keys are records"
            ));
        }
    } else if !found.checked.is_empty() {
        let is_forbidden = match &found.why_unread {
            Some(unread) => unread.is_permission(),
            None => false,
        };
        let part = if is_forbidden { " among the keys that this user may read" } else { "" };
        session.ui.status(&format!("{key}: no record on {}{part}", reader.name()));
        let checked: Vec<_> = found.checked.iter().map(|key| escape::text(key)).collect();
        session.ui.detail(&format!("checked {}", checked.join("  ")));
        session.ui.hint("`idemctl log --records` shows the changes that this machine made");
        let mut schemas = catalog.chosen().iter();
        if schemas.any(|schema| schema.takes_prefix && !schema.has_fixed_prefix()) {
            session.ui.hint("if your deployment puts a prefix before its keys, pass --prefix");
        }
    } else if let Some((why, hint)) = GivenKey::word(&found.given[..]).excluded_because(catalog) {
        session.ui.status(&format!("{key}: {why}"));
        session.ui.hint(&hint);
    } else if found.why_unread.is_none() {
        session.ui.status(&format!(
            "{key}: not a key of the chosen schemas, and not an existing Redis key"
        ));
        let mut templates = Vec::new();
        for schema in catalog.chosen() {
            for template in schema.templates() {
                templates.push(escape::again(&template));
            }
        }
        session.ui.hint(&format!("keys of these schemas look like {}", templates.join("  ")));
    }
    // If none of the Redis keys could be read, the warning about them is enough.
}

/// What to type to show one of the records that a key names. If several schemas read the same
/// record, its name does not distinguish them, and --schema does.
fn one_of(found: &LookupResult) -> String {
    let names = name::of_each(found.records.iter());
    if names.len() < found.records.len() {
        return "--schema NAME".to_owned();
    }
    let names: Vec<_> = names.iter().map(|name| word(&name.instead_of(&found.given))).collect();
    names.join(" or ")
}
