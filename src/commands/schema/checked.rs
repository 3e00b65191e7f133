//! `idemctl schema check`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ScanArgs, SchemaFolderArgs};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::Record;
use crate::domain::record::implausible::{Era, ImplausibleTime, implausible_times};
use crate::domain::record::{FieldSet, ValueField};
use crate::domain::schema::{Catalog, State, Timestamp};
use crate::domain::select::Selection;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::{escape, words};
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery};
use crate::schemas;
use crate::schemas::check::{self, SchemaReport};
use crate::session::Session;
use crate::sim;
use crate::store::{Connection, ReadLimit, Sandbox, SandboxError};

#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Folder of a schema or of several schemas, or the name of one of your schemas
    #[arg(value_name = "DIR|NAME")]
    schema: PathBuf,

    #[command(flatten)]
    own: SchemaFolderArgs,

    #[command(flatten)]
    scan: ScanArgs,
}

pub(super) async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let folder = folder(session, &args)?;
    let shown = folder.display().to_string();
    let reports = check::check(&folder)
        .map_err(|error| CommandError::usage(format!("cannot read {shown}: {error}")))?;
    let Some(mut reports) = reports else {
        return Err(CommandError::usage(format!(
            "neither {shown} nor a folder below it contains a schema.toml"
        ))
        .into());
    };
    try_all(session, &mut reports).await?;
    let mut ended = Ok(());
    for report in &mut reports {
        let mut text = None;
        // Another scan would end in the same way. Errors in the files are still reported.
        if ended.is_ok()
            && let Some(counted) = count(session, report, &args.scan).await?
        {
            counted.times.warn(report);
            text = Some(counted.text);
            ended = counted.ended;
        }
        session.ui.data(lines(report, text.as_deref()))?;
    }
    session.ui.flush()?;
    ended?;
    Ok(if reports.iter().any(SchemaReport::is_wrong) { Exit::No } else { Exit::Done })
}

/// The folder that was named. A path takes precedence over a name, because the shell completes
/// paths.
///
/// # Errors
/// Usage: there is no such folder, and the operator has no schema of this name.
fn folder(session: &Session, args: &Args) -> Result<PathBuf, CommandError> {
    if args.schema.exists() {
        return Ok(args.schema.clone());
    }
    let name = args.schema.display().to_string();
    let is_name = schemas::refuse_name(&name).is_ok();
    let own = session.settings.schema_dir(args.own.schema_dir.as_deref());
    if is_name && let Some(own) = &own {
        let folder = own.join(&name);
        if folder.is_dir() {
            return Ok(folder);
        }
    }
    let message = format!("{name} is neither a folder nor one of your own schemas");
    let hint = "`idemctl schema show NAME` prints a built-in schema";
    Err(CommandError::usage(message).hint(hint))
}

/// Runs the steps of every schema without errors so far on a temporary local Redis.
async fn try_all(session: &mut Session, reports: &mut [SchemaReport]) -> Result<()> {
    let mut schemas = reports.iter().filter_map(|report| report.schema.as_ref());
    if schemas.all(|schema| schema.steps().next().is_none()) {
        return Ok(());
    }
    let environment = session.settings.environment();
    let sandbox = match Sandbox::start(&environment.path(), &environment.temp_dir()).await {
        Ok(sandbox) => sandbox,
        // On a machine without Redis, the files can still be checked.
        Err(why @ SandboxError::NoProgram) => {
            session.ui.warning(&format!("the steps were not run: {why}"));
            return Ok(());
        }
        Err(why) => return Err(why.into()),
    };
    let mut connection =
        Connection::connect(&sandbox.first_database(session.settings.target())).await?;
    for report in reports {
        let Some(schema) = &report.schema else { continue };
        if report.is_wrong() {
            continue;
        }
        for stray in sim::try_schema(schema, &mut connection).await? {
            let heading = format!("[[{}.call]]", stray.step);
            report.add(&heading, stray.call, stray.message, stray.is_error);
        }
    }
    Ok(())
}

/// The records of the schema on the server that the command line names; `None` if it names none.
async fn count(
    session: &mut Session,
    report: &SchemaReport,
    args: &ScanArgs,
) -> Result<Option<Counted>> {
    if !session.settings.asks_for_its_server() {
        return Ok(None);
    }
    let Some(schema) = report.schema.clone() else { return Ok(None) };
    let name = schema.name.clone();
    let catalog = Catalog::new(vec![schema], &[name]).map_err(CommandError::usage)?;
    let reader = session.connect_reader().await?.scanning(args.scan_options());
    let server = reader.name();
    let interrupt = Interrupt::listen()?;
    let query = ScanQuery {
        catalog: &catalog,
        thresholds: Thresholds::default(),
        first_read: ReadLimit::Bytes(0),
        needed: FieldSet::of(&[ValueField::Time]),
        lengths: Lengths::None,
    };
    let mut scan =
        Scan::start(reader, query, &interrupt, session.ui.progress("keys scanned")).await?;
    let mut times = Times::default();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let now_ms = session.now_ms();
    while let Some(page) = scan.next_page(&Selection::default()).await {
        for record in page.into_records() {
            times.add(&record, now_ms);
            *counts.entry(word(record.state)).or_default() += 1;
        }
    }
    let report = scan.finish();
    report.show_coverage(session, &catalog);
    let unrecognised: u64 = report.coverage.unrecognised.values().sum();
    if unrecognised > 0 {
        counts.insert("unrecognised (foreign)", unrecognised);
    }
    let so_far = if matches!(report.end, ScanEnd::Complete) { "" } else { " so far" };
    let all: u64 = counts.values().sum();
    let counts: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let mut text = format!("{all} keys{so_far}");
    if all > 0 {
        text += &format!(": {}", counts.join(", "));
    }
    let so_far = format!("{} of {server}", words::counted(report.keys, "key"));
    Ok(Some(Counted { text, times, ended: report.require_complete("the count is", &so_far) }))
}

/// The records of a schema on a server.
struct Counted {
    /// The records by their states: `40 keys: 24 completed, 16 in progress`.
    text: String,
    times: Times,
    /// Why the scan is not complete, if it is not.
    ended: Result<()>,
}

/// The word for records in this state.
fn word(state: State) -> &'static str {
    match state {
        State::InProgress => "in progress",
        State::Absent => "past their own expiry",
        _ => state.as_str(),
    }
}

/// The implausible times of the records that were counted.
#[derive(Default)]
struct Times {
    /// By the index of the value and the name of the field: how many, and the first one.
    implausible: BTreeMap<(usize, &'static str, Era), (u64, ImplausibleTime)>,
    /// How many records were read under each value.
    records: BTreeMap<usize, u64>,
}

impl Times {
    fn add(&mut self, record: &Record, now_ms: u64) {
        for reading in &record.readings {
            if let Some(decoded) = reading.decoded() {
                *self.records.entry(decoded.format).or_default() += 1;
            }
        }
        for time in implausible_times(record, now_ms) {
            let (count, _) =
                self.implausible.entry((time.value, time.field, time.era)).or_insert((0, time));
            *count += 1;
        }
    }

    /// Adds a warning for each field with implausible times.
    fn warn(&self, report: &mut SchemaReport) {
        for ((value, field, era), (count, time)) in &self.implausible {
            let records = self.records.get(value).copied().unwrap_or(*count);
            let era = match era {
                Era::Before2015 => "before 2015",
                Era::Future => "in the future",
            };
            let mut message = format!("`{field}` of {count} of {records} records is {era}");
            match time.unit {
                Some(unit) => message.push_str(&format!(
                    "; if the service stores {}, write `timestamp = \"{}\"`",
                    if unit == Timestamp::Seconds { "seconds" } else { "milliseconds" },
                    unit.as_str()
                )),
                None => message.push_str("; check `timestamp`, and that the field is a time"),
            }
            report.add("[[value]]", *value, message, false);
        }
    }
}

/// One line per problem, in the format of compilers, and one line with the verdict.
fn lines(report: &SchemaReport, counted: Option<&str>) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let word = if problem.is_error { "error" } else { "warning" };
        let what = &problem.what;
        text.push_str(&format!("{}:{}: {word}: {}\n", what.file, what.line, what.message));
    }
    // A message quotes the files, which may contain control characters. Line ends stay.
    let mut lines = String::new();
    for line in text.lines() {
        lines.push_str(&escape::text(line.as_bytes()));
        lines.push('\n');
    }
    // A schema that could not be read has no name.
    let name = match &report.schema {
        Some(schema) => schema.name.clone(),
        None => report.folder.display().to_string(),
    };
    let name = escape::text(name.as_bytes());
    let verdict = if report.is_wrong() { "wrong" } else { "ok" };
    match counted {
        Some(counted) => lines.push_str(&format!("{name}: {verdict}, {counted}\n")),
        None => lines.push_str(&format!("{name}: {verdict}\n")),
    }
    lines
}
