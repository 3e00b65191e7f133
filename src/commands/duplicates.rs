//! `idemctl duplicates`: records with different idempotency keys that are of one operation.

mod collector;
mod file;
mod scanning;
mod spool;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::Map;

use crate::args::{ScanArgs, SchemaArgs, SelectArgs, TabularOutput, ThresholdArgs, parse_duration};
use crate::domain::duplicates::{
    CompareCounts, CompareRule, ComparedRecord, GroupedRecords, PointerTally, UnknownBecause,
    check_pointer,
};
use crate::domain::record::age::millis;
use crate::domain::schema::Catalog;
use crate::exit::{CommandError, Exit};
use crate::render::columns::Separated;
use crate::render::duplicates::{DuplicatesReport, duplicate_rows, json, text};
use crate::render::{coverage, words};
use crate::scan::{ScanEnd, ScanReport, explain_nothing, show_none};
use crate::session::Session;

/// Find records with different idempotency keys that are of one operation
///
/// A client that sends a new key with each retry leaves several healthy records of one payment.
/// This command groups records whose responses have equal values at all --same pointers. These are
/// JSON pointers into the response body read as JSON. If the service stores the request beside the
/// response, `value:/request/body/order` goes into the whole stored value. Numbers are compared by
/// their exact value (1 equals 1.0), and the number 1 differs from the text "1". A missing value,
/// null, and an empty text, array or object are equal to nothing.
///
/// Equal --same values are strong evidence. An equal fingerprint alone, within one schema, is weak
/// evidence, because honest requests may have equal payloads. With --also owner it is strong, so
/// use that only if the owners of your service identify clients, and not the workers that hold the
/// locks. Weak evidence never joins strong groups, and records with different --same values are
/// never in one strong group. Without --same and without fingerprints, nothing is grouped: the
/// output is a list of pointers that could be compared (exit status 3).
///
/// --within sorts records that agree by time, and cuts them wherever the time since the previous
/// one is longer. The time is the creation in the value, by the service's clock, if the schema
/// stores it, else the storing of the result; without either it is the expiry minus the TTL. `~`
/// marks times that rest on a TTL, and gaps between such times, or between an arrival and a stored
/// result. A lock that was extended, or that its schema can renew, has no such time. A time that
/// rests on a schema's default TTL is only an estimate, because the service may set other TTLs. For
/// --within it counts as unknown: such a record is in no group, and is named if another one agrees
/// (exit status 3). State the TTL with --result-ttl or --lock-ttl only if all records have it.
///
/// The records of a group are read twice. During the scan, idemctl keeps 32 bytes per record and
/// kind of evidence in memory, and the keys in a temporary file. It refuses more than 50,000,000
/// records, 1,000,000 that agree with others, or 1 GiB of these. With --same, fingerprints are then
/// left out first. A value longer than 4 KiB is compared and shown by its SHA-256.
///
/// --from reads JSON lines that any store can produce, and contacts no server. Each line is an
/// object with `key`, and may have `created_at` (RFC 3339, in UTC unless it has an offset; Unix
/// seconds; or from 100000000000 on milliseconds), `response` (a JSON value, or a text with JSON),
/// `status`, `state`, `fingerprint`, `owner` and `schema`. Without `response`, the pointers go into
/// the line itself; `value:` always goes into the line beside `response`. If several lines have the
/// same schema and key, the last one counts.
///
/// Exit status 0 if there is no group among the records of the schemas that were read, 1 if there
/// is one, and 3 if that is unknown for some records, no record was compared (also because there
/// was none), or the scan is not complete.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Group by the value at this JSON pointer into the response, e.g. /order/id; repeatable
    ///
    /// After `value:` the pointer goes into the whole stored value, as the schema decodes it: the
    /// result, else the lock, else a further Redis key of the record. Such a value is strong
    /// evidence as well, so choose one that names the operation, and no time or trace id.
    #[arg(long, value_name = "POINTER")]
    same: Vec<String>,

    /// Only group records whose times are at most this far from the previous one's
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    within: Option<Duration>,

    /// Only group records that also have an equal owner, or an equal key stem
    ///
    /// The stem is the key without a counter, timestamp or UUID at its end, which one of `-_.:/#`
    /// separates.
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    also: Vec<AlsoArg>,

    /// Only group records that also have an equal Nth part of the key, split at `:`; 1 is the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    tenant_part: Option<u16>,

    /// Read the records from a file of JSON lines instead of a server; `-` is stdin
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Output format
    ///
    /// csv and tsv have one row per record, jsonl one object per group.
    #[arg(short, long, value_enum, default_value_t)]
    output: TabularOutput,

    /// Do not put a ' before csv and tsv cells that begin with = + - @
    #[arg(long)]
    raw_csv: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// `--also`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AlsoArg {
    /// The owner in the value.
    Owner,
    /// The key without a counter, timestamp or UUID at its end.
    Stem,
}

impl Args {
    fn rule(&self) -> Result<CompareRule, CommandError> {
        let mut pointers: Vec<String> = Vec::new();
        for pointer in &self.same {
            check_pointer(pointer)
                .map_err(|why| CommandError::usage(format!("--same {pointer}: {why}")))?;
            if !pointers.contains(pointer) {
                pointers.push(pointer.clone());
            }
        }
        Ok(CompareRule {
            pointers,
            with_owner: self.also.contains(&AlsoArg::Owner),
            with_stem: self.also.contains(&AlsoArg::Stem),
            tenant_part: self.tenant_part.map(usize::from),
        })
    }

    fn within_ms(&self) -> Option<u64> {
        self.within.map(millis)
    }

    /// Refuses options that a file of records cannot honour.
    fn check_from(&self) -> Result<(), CommandError> {
        let refused = if self.select.narrows() || self.thresholds.overdue.is_some() {
            "filters"
        } else if self.scan.is_given() {
            "scan options"
        } else if !self.schemas.schema.is_empty() || !self.schemas.of_one_schema().is_empty() {
            "schema options"
        } else {
            return Ok(());
        };
        Err(CommandError::usage(format!(
            "--from: the records of a file have no schema of idemctl, so {refused} do not apply"
        ))
        .hint("leave these options out, and filter the file instead"))
    }
}

/// What was compared, and what is known about the rest.
struct ReadRecords {
    records: Vec<ComparedRecord>,
    counts: CompareCounts,
    tally: PointerTally,
    leaves_fingerprints_out: bool,
    scanned: Option<Scanned>,
}

/// The scan of a server.
struct Scanned {
    catalog: Catalog,
    report: ScanReport,
    server: String,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let rule = args.rule()?;
    let read = match &args.from {
        Some(path) => {
            args.check_from()?;
            let read = file::read(path, &rule, args.within_ms())?;
            if read.replaced > 0 {
                let lines = words::counted(read.replaced, "line");
                let have = if read.replaced == 1 { "has" } else { "have" };
                session.ui.note(&format!(
                    "{lines} {have} the schema and key of a later line, which counts instead"
                ));
            }
            ReadRecords {
                records: read.records,
                counts: read.counts,
                tally: read.tally,
                leaves_fingerprints_out: read.leaves_fingerprints_out,
                scanned: None,
            }
        }
        None => scan(session, &args, &rule).await?,
    };
    show(session, &args, &rule, read).await
}

async fn scan(session: &mut Session, args: &Args, rule: &CompareRule) -> Result<ReadRecords> {
    let catalog = session.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(CommandError::usage("no schema to compare")
            .hint("name one with --schema")
            .into());
    }
    if let Some(remark) = args.select.filter.remark(&catalog) {
        session.ui.status(&remark);
    }
    let reader = session.connect_reader().await?.scanning(args.scan.scan_options());
    let server = reader.name();
    let read = scanning::read(session, args, rule, &catalog, reader).await?;
    Ok(ReadRecords {
        records: read.records,
        counts: read.counts,
        tally: read.tally,
        leaves_fingerprints_out: read.leaves_fingerprints_out,
        scanned: Some(Scanned { catalog, report: read.report, server }),
    })
}

/// Groups what was read and shows it.
async fn show(
    session: &mut Session,
    args: &Args,
    rule: &CompareRule,
    read: ReadRecords,
) -> Result<Exit> {
    let ReadRecords { records, mut counts, tally, leaves_fingerprints_out, scanned } = read;
    let grouped = GroupedRecords::of(records, rule, args.within_ms());
    for index in &grouped.time_unknown {
        counts.add_unknown(UnknownBecause::Time, &grouped.records[*index].name);
    }
    let is_interrupted =
        scanned.as_ref().is_some_and(|scanned| matches!(scanned.report.end, ScanEnd::Interrupted));
    let compares_nothing = counts.compared_nothing();
    // Whether anything has a fingerprint is not known before the end of the scan.
    let candidates = if counts.lacks_fingerprints(rule) { Some(&tally) } else { None };
    let is_complete = counts.unknown.is_empty()
        && !compares_nothing
        && scanned.as_ref().is_none_or(Scanned::is_complete);
    let mut covered = Map::new();
    if let Some(Scanned { catalog, report, .. }) = &scanned {
        covered = coverage::fields(&report.coverage, catalog, report.keys);
    }
    covered.insert("complete".to_owned(), is_complete.into());
    let report = DuplicatesReport {
        rule,
        within_ms: args.within_ms(),
        grouped: &grouped,
        counts: &counts,
        candidates,
        leaves_fingerprints_out,
    };
    match args.output {
        // Nothing was grouped, so it must not look as if there were no groups.
        TabularOutput::Text if is_interrupted => {}
        TabularOutput::Text => {
            session.ui.page(text::groups(&report, is_complete, session.ui.view()))?
        }
        TabularOutput::Csv => {
            session.ui.data(duplicate_rows::rows(&report, Separated::csv(args.raw_csv)))?
        }
        TabularOutput::Tsv => {
            session.ui.data(duplicate_rows::rows(&report, Separated::tsv(args.raw_csv)))?
        }
        TabularOutput::Json => session.ui.data(json::document(&report, covered))?,
        TabularOutput::Jsonl => session.ui.data(json::lines(&report))?,
    }
    session.ui.flush()?;
    if leaves_fingerprints_out {
        session.ui.note(
            "fingerprints were not compared, because more than 1,000,000 records have one that \
            others have as well",
        );
    }
    if is_interrupted {
        session.ui.status("Interrupted, so nothing was grouped.");
    } else {
        for line in text::summary(&report) {
            session.ui.status(&line);
        }
    }
    let has_groups = !grouped.groups.is_empty();
    if let Some(scanned) = scanned {
        scanned.end(session, counts.records).await?;
    }
    if !is_complete {
        return Ok(Exit::Partial);
    }
    Ok(if has_groups { Exit::No } else { Exit::Done })
}

impl Scanned {
    /// True if every record of the schemas that a scan can find was read, and the filters could
    /// judge each of them.
    fn is_complete(&self) -> bool {
        self.report.is_complete(&self.catalog) && self.report.covered(&self.catalog).is_whole()
    }

    /// Says how far the scan got.
    ///
    /// # Errors
    /// The scan is not complete.
    async fn end(self, session: &mut Session, records: u64) -> Result<()> {
        let Self { catalog, report, server } = self;
        let keys = words::counted(report.keys, "key");
        if matches!(report.end, ScanEnd::Complete) && records == 0 {
            let (none, covered) = ("no such records", report.covered(&catalog));
            let reader = session.connect_reader().await?;
            show_none(session, none, &covered, report.keys, &reader, &server).await;
            explain_nothing(session, &catalog, &reader, &report.keys_of_other_schemas).await;
        }
        if !session.ui.is_verbose() {
            for line in coverage::unrecognised(&report.coverage, &catalog) {
                session.ui.status(&line);
            }
        }
        report.show_coverage(session, &catalog);
        let so_far = format!("{} among {keys} of {server}", words::counted(records, "record"));
        report.require_complete("the comparison is", &so_far)
    }
}
