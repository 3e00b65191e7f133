//! `idemctl duplicates`: records with different idempotency keys that are of one operation.

use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ScanArgs, SchemaArgs, SelectArgs, TabularOutput, ThresholdArgs, parse_duration};
use crate::domain::duplicates::{
    Comparable, CompareCounts, ComparedName, ComparedRecord, KeptRecords, PointerTally, RecordTime,
    UnknownBecause, check_pointer, is_cut, values_at,
};
use crate::domain::record::age::millis;
use crate::domain::record::{Candidate, FieldSet};
use crate::domain::schema::Catalog;
use crate::domain::select::Selection;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::columns::Separated;
use crate::render::document::{self, Streamed};
use crate::render::duplicates::DuplicatesReport;
use crate::render::{coverage, words};
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery, ScanReport, explain_nothing, show_none};
use crate::session::Session;
use crate::store::{ReadLimit, RecordReader};

/// How much of each value a page reads, so that the reply for 500 records stays below 8 MiB. Most
/// responses are shorter.
const PAGE_HEAD: usize = 16 << 10;

/// How much is read of each longer value, one at a time.
const MAX_VALUE: usize = 16 << 20;

/// Find records with different keys that are of one operation
///
/// A client that sends a new key with each retry leaves several healthy records of one payment.
/// This command groups records whose responses have equal values at all --same pointers. These are
/// JSON pointers into the response body read as JSON. If the service stores the request beside the
/// response, `value:/request/body/order` goes into the whole stored value. Numbers are compared by
/// their exact value (1 equals 1.0), and the number 1 differs from the text "1". A missing value,
/// null, and an empty text, array or object are equal to nothing. Without --same, the output is a
/// list of pointers that could be compared (exit status 3).
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
/// The records that are compared are kept in memory, without their values, up to 1 GiB. More
/// records are counted and not compared (exit status 3). A value longer than 4 KiB is compared and
/// shown by its SHA-256.
///
/// Exit status 0 if there is no group among the records of the schemas that were read, 1 if there
/// is one, and 3 if that is unknown for some records, no record was compared (also because there
/// was none), or the scan is not complete.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Group by the value at this JSON pointer into the response, e.g. /order/id; repeatable
    ///
    /// After `value:` the pointer goes into the whole stored value, as the schema decodes it: the
    /// result, else the lock, else a further Redis key of the record. Choose a value that names the
    /// operation, and no time or trace id.
    #[arg(long, value_name = "POINTER")]
    same: Vec<String>,

    /// Only group records whose times are at most this far from the previous one's
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    within: Option<Duration>,

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

impl Args {
    /// The pointers of --same, each once.
    fn pointers(&self) -> Result<Vec<String>, CommandError> {
        let mut pointers: Vec<String> = Vec::new();
        for pointer in &self.same {
            check_pointer(pointer)
                .map_err(|why| CommandError::usage(format!("--same {pointer}: {why}")))?;
            if !pointers.contains(pointer) {
                pointers.push(pointer.clone());
            }
        }
        Ok(pointers)
    }
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let pointers = args.pointers()?;
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
    let selection = args.select.selection(session, &catalog, &args.thresholds)?;
    let read = read(session, &args, &pointers, &selection, &catalog, reader).await?;
    let (kept, mut counts, tally, scanned) = read;
    let is_interrupted = matches!(scanned.end, ScanEnd::Interrupted);
    let within_ms = args.within.map(millis);
    // Nothing is grouped after Ctrl-C.
    let kept = if is_interrupted { KeptRecords::default() } else { kept };
    let (groups, time_unknown) = kept.groups(within_ms);
    for name in time_unknown {
        counts.add_unknown(UnknownBecause::Time, name);
    }
    let is_complete = counts.unknown.is_empty()
        && counts.compared > 0
        && scanned.is_complete(&catalog)
        && scanned.covered(&catalog).is_whole();
    let report = DuplicatesReport {
        pointers: &pointers,
        within_ms,
        groups: &groups,
        counts: &counts,
        tally: &tally,
        is_complete,
    };
    print(session, &args, &report, &catalog, &scanned)?;
    if is_interrupted {
        session.ui.status("Interrupted, so nothing was grouped.");
    } else {
        for line in report.summary() {
            session.ui.status(&line);
        }
        for line in report.not_compared() {
            // Without a comparison, they are the reason.
            if counts.compared == 0 {
                session.ui.status(&line);
            } else {
                session.ui.detail(&line);
            }
        }
    }
    end(session, &catalog, scanned, &server, counts.records).await?;
    Ok(match is_complete {
        false => Exit::Partial,
        true if groups.is_empty() => Exit::Done,
        true => Exit::No,
    })
}

/// What was compared, and what is known about the rest.
type ReadRecords = (KeptRecords, CompareCounts, PointerTally, ScanReport);

/// Scans the records, and keeps what is compared.
async fn read(
    session: &mut Session,
    args: &Args,
    pointers: &[String],
    selection: &Selection,
    catalog: &Catalog,
    reader: RecordReader,
) -> Result<ReadRecords> {
    let interrupt = Interrupt::listen()?;
    // The filter by body needs whole bodies.
    let head =
        if selection.reads_bodies() { ReadLimit::Whole } else { ReadLimit::Bytes(PAGE_HEAD) };
    let query = ScanQuery {
        catalog,
        thresholds: args.thresholds.thresholds(),
        first_read: head,
        // Owners, states and times decide, and are shown.
        needed: FieldSet::ALL,
        lengths: Lengths::None,
    };
    let progress = session.ui.progress("keys scanned");
    let mut scan = Scan::start(reader, query, &interrupt, progress).await?;
    let (mut kept, mut counts) = (KeptRecords::default(), CompareCounts::default());
    let mut tally = PointerTally::default();
    while let Some(page) = scan.next_page(selection).await {
        for mut record in page.into_records() {
            // A second read by plain commands does not have the server's time, from which an expiry
            // counts.
            let time = RecordTime::of(&record);
            if is_cut(pointers, &record) {
                let name = ComparedName::of(&record);
                scan.set_first_read(ReadLimit::Bytes(MAX_VALUE));
                let whole = scan.read_records(vec![Candidate::from(record)], |_| false).await;
                scan.set_first_read(head);
                let Some(mut whole) = whole else {
                    counts.records += 1;
                    counts.add_unknown(UnknownBecause::NotReread, name);
                    continue;
                };
                // The record may have expired.
                let Some(whole) = whole.pop() else { continue };
                record = whole;
            }
            counts.records += 1;
            if pointers.is_empty() {
                if let Some(response) = record.stored()
                    && response.whole
                {
                    tally.add(&record.key, &response.body());
                }
                continue;
            }
            match values_at(pointers, &record) {
                Comparable::Yes(values) => {
                    let time = RecordTime::of(&record).or(time);
                    if kept.add(&values, &ComparedRecord::of(&record, time)) {
                        counts.compared += 1;
                    } else {
                        counts.add_unknown(UnknownBecause::Memory, ComparedName::of(&record));
                    }
                }
                Comparable::No(why) => *counts.not_compared.entry(why).or_default() += 1,
                Comparable::Unknown(why) => counts.add_unknown(why, ComparedName::of(&record)),
            }
        }
    }
    Ok((kept, counts, tally, scan.finish()))
}

/// Prints the groups one after the other, because they may be large.
fn print(
    session: &mut Session,
    args: &Args,
    report: &DuplicatesReport<'_>,
    catalog: &Catalog,
    scanned: &ScanReport,
) -> Result<()> {
    let separated = match args.output {
        // After Ctrl-C nothing was grouped, so it must not look as if there were no groups.
        TabularOutput::Text if matches!(scanned.end, ScanEnd::Interrupted) => return Ok(()),
        TabularOutput::Text => {
            let view = session.ui.view();
            report.table(view, |text| session.ui.page(text))?;
            return Ok(session.ui.flush()?);
        }
        TabularOutput::Csv => Separated::csv(args.raw_csv),
        TabularOutput::Tsv => Separated::tsv(args.raw_csv),
        TabularOutput::Json => {
            let mut document = Streamed::new("groups");
            for group in report.groups {
                session.ui.data(document.before_value())?;
                session.ui.data(document::line(&report.group(group)).trim_end())?;
            }
            let mut fields = report.fields();
            fields.extend(coverage::fields(&scanned.coverage, catalog, scanned.keys));
            session.ui.data(document.end(&fields))?;
            return Ok(session.ui.flush()?);
        }
        TabularOutput::Jsonl => {
            for group in report.groups {
                session.ui.data(document::line(&report.group(group)))?;
            }
            return Ok(session.ui.flush()?);
        }
    };
    session.ui.data(DuplicatesReport::names(separated))?;
    for (index, group) in report.groups.iter().enumerate() {
        session.ui.data(report.rows(index + 1, group, separated))?;
    }
    Ok(session.ui.flush()?)
}

/// Says how far the scan got.
///
/// # Errors
/// The scan is not complete.
async fn end(
    session: &mut Session,
    catalog: &Catalog,
    report: ScanReport,
    server: &str,
    records: u64,
) -> Result<()> {
    if matches!(report.end, ScanEnd::Complete) && records == 0 {
        let (none, covered) = ("no such records", report.covered(catalog));
        let reader = session.connect_reader().await?;
        show_none(session, none, &covered, &report.coverage, report.keys, &reader, server).await;
        explain_nothing(session, catalog, &reader, &report.keys_of_other_schemas).await;
    }
    if !session.ui.is_verbose()
        && let Some(line) = coverage::unrecognised(&report.coverage)
    {
        session.ui.status(&line);
    }
    report.show_coverage(session, catalog);
    let so_far = words::among(&words::counted(records, "record"), report.keys, server);
    report.require_complete("the comparison is", &so_far)
}
