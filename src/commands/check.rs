//! `idemctl check`: the monitoring plugin.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fastrand::Rng;

use crate::args::{FilterArgs, Output, ScanArgs, SchemaArgs, ThresholdArgs};
use crate::change::{needs_a_stated_lock_ttl, write_report};
use crate::domain::change::orphan;
use crate::domain::diagnosis::health::{Alarm, CheckedSchemas, Health, Limits, Status};
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::{Candidate, FieldSet, Record, TimeLeft, ValueField};
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::schema::{Catalog, State, TtlOf};
use crate::domain::select::contradiction::may_outlast;
use crate::domain::select::{Coverage, Missing, Reservoir, Selected, Selection};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::{coverage, fold, plugin, words};
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery, show_left_out};
use crate::session::Session;
use crate::settings::Settings;
use crate::store::{ReadLimit, RecordReader};

/// The most records that are read to tell the schemas' own values from unrecognised ones. The
/// number is bounded because a check may run every minute.
const SAMPLE: usize = 1_000;

/// The most values that are read to find locks which outlast a default lock TTL. A result lives
/// longer than a lock, so a deadline alone does not distinguish them if they share a Redis key. A
/// check may run every minute, so its cost for the server is bounded. If the server counts
/// idemctl's reads as accesses to the keys, only the sample is read.
const OUTLASTING_READS: usize = 10_000;

/// How many of these are read at a time. They are few, so that other clients do not wait.
const AT_A_TIME: usize = 100;

/// Report in one line whether locks are stuck, for monitoring
///
/// Always prints one line with OK, WARNING, CRITICAL or UNKNOWN and measures on stdout, and below it
/// the command that lists what was found. Exit status 0, 1, 2 or 3, as monitoring plugins do.
/// Nothing is changed.
///
/// CRITICAL: stuck locks, which never expire. WARNING: locks without TTL of a service whose next
/// retry gives them one. WARNING, or the status in --include: locks with
/// more time left than the stated lock TTL (`excess-ttl`), and locks that are older than --overdue
/// (`overdue`). WARNING: most values under a schema's prefix fit no schema (`foreign` counts them).
///
/// `unrecognised_no_expiry` counts Redis keys that no schema reads and that never expire; they may be
/// locks of a service that idemctl does not know. It is measured if every schema is read.
///
/// UNKNOWN: the server does not answer or refuses, or part of it could not be read; a replica is,
/// or may be, disconnected from its master; the age of a lock cannot be determined; no
/// Redis key belongs to a schema, and no schema is named; or a schema of the context is not read.
///
/// Reads a value only if its expiry is not enough. Counts of records come from a random sample of
/// at most 1,000. A context can set defaults: [contexts.NAME.check] overdue = "5m", include =
/// ["excess-ttl=CRITICAL"].
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    alarms: AlarmArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    /// Output format
    ///
    /// `table` prints the status line and the next command, `json` one object, and `jsonl` one object
    /// on one line.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let catalog = session.catalog(&args.schemas)?;
    let sought = args.alarms.sought(&session.settings, args.thresholds.clone(), &catalog)?;
    let selection = args.filter.selection(session, &catalog)?;
    let reader = session.connect_reader().await?.scanning(args.scan.scan_options());
    let interrupt = Interrupt::listen()?;
    // Alarms compare times, and only its end shows whether a value can be decoded.
    let mut needed = FieldSet::of(&[ValueField::Time]).union(selection.needed_fields());
    if sought.codes.contains(&FindingCode::Unreadable) {
        needed.insert(ValueField::End);
    }
    let query = ScanQuery {
        catalog: &catalog,
        thresholds: sought.thresholds.clone(),
        first_read: ReadLimit::Bytes(LOCK_BYTES),
        needed,
        lengths: Lengths::None,
    };
    let progress = session.ui.progress("keys scanned");
    // Reading a deadline does not touch the key, and the expiry of most keys already shows that
    // they are not orphaned.
    let scan = Scan::start(reader.clone(), query, &interrupt, progress).await?.deadlines_first();
    let most_outlasting = if reader.keeps_idle_times() { OUTLASTING_READS } else { 0 };
    let checking = Checking {
        catalog: &catalog,
        selection: &selection,
        sought: &sought,
        scan,
        health: Health::default(),
        undecided: 0,
        most_outlasting,
        reads_left: most_outlasting,
        outlasting_unread: 0,
        cut: 0,
    };
    let (mut health, coverage) = checking.run().await;
    health.is_narrowed = args.filter.narrows();
    health.named = named(session, &catalog, &args.schemas);
    if !catalog.names_schemas()
        && health.covered.is_whole()
        && let Some(endless) = reader.keys_without_expiry().await
    {
        health.unrecognised_no_expiry = Some(endless.saturating_sub(health.endless_keys));
    }
    let found = health.found.total() + health.given_ttl.total();
    let is_nothing = health.records + health.foreign + health.undecided + found == 0;
    // Schemas that the operator named may have no records yet, unless keys have their prefixes.
    let is_answer = catalog.names_schemas() && health.keys == 0;
    if health.covered.is_whole() && is_nothing && !is_answer {
        health.covered.leave_out(reader.name(), nothing_covered(&reader).await?);
    }
    // The context names them, so their stuck locks must not be missed.
    for schema in catalog.skipped() {
        health.covered.leave_out(format!("schema {}", schema.name), "no fixed prefix");
    }
    match args.output {
        Output::Text => {
            // A monitoring system needs one line, and a terminal would break its words.
            let line = plugin::health(&health, &sought.limits);
            session.ui.data(fold::lines(line.trim_end(), 0, session.ui.view().width))?;
            // Monitoring shows further lines beside the first one, which it sends to a pager.
            if let Some(code) = sought.limits.sought().iter().find(|code| health.count(**code) > 0)
            {
                let words = ["list", "--finding", code.as_str()];
                let line = session.ui.invocation().command_line(words);
                session.ui.data(format!("{line}\n"))?;
            }
            for line in coverage::near_misses(&health.near_misses) {
                session.ui.data(fold::lines(&line, 0, session.ui.view().width))?;
            }
            if let Some(line) = plugin::outlasting(&health) {
                session.ui.data(fold::lines(&line, 0, session.ui.view().width))?;
            }
            let detect = session.ui.invocation().command_line(["detect"]);
            if let Some(count @ 1..) = health.unrecognised_no_expiry {
                let keys = words::counted(count, "Redis key");
                session.ui.data(format!("no schema reads {keys} without expiry: {detect}\n"))?;
            } else if !health.outnumbered.is_empty() {
                // They may be of a library that only shares the prefix.
                session.ui.data(format!("{detect}\n"))?;
            }
        }
        Output::Json | Output::Jsonl => {
            write_report(session, args.output, &plugin::health_json(&health, &sought.limits))?
        }
    }
    session.ui.flush()?;
    // Without notes on default TTLs, because the line has them.
    show_left_out(session, &coverage, &catalog);
    Ok(Exit::Command(health.status(&sought.limits).code()))
}

/// The schemas that are checked; `None` if all are, because none were named.
fn named(session: &Session, catalog: &Catalog, args: &SchemaArgs) -> Option<CheckedSchemas> {
    if !catalog.names_schemas() {
        return None;
    }
    // Schemas that are not checked are not named, and a schema with several prefixes is named once.
    let schemas = catalog.scanned_names();
    let mut named_by = None;
    if args.schema.is_empty() {
        named_by = session.settings.context_name().map(str::to_owned);
    }
    Some(CheckedSchemas { schemas, context: named_by })
}

/// That no Redis key of the server matches a schema.
async fn nothing_covered(reader: &RecordReader) -> Result<String> {
    let held = words::counted(reader.keys_on_server().await?, "Redis key");
    Ok(format!(
        "none of the {held} matches a schema; name the schemas of its services with --schema"
    ))
}

/// A check in progress. It reads the deadlines, the values that they do not decide, and a sample.
struct Checking<'a> {
    catalog: &'a Catalog,
    selection: &'a Selection,
    sought: &'a Sought,
    scan: Scan<'a>,
    health: Health,
    /// Locks for which it is not proven whether they have the requested findings.
    undecided: u64,
    /// How many values are read to find locks that outlast a default lock TTL; none if only those
    /// of the sample are.
    most_outlasting: usize,
    /// How many of these may still be read.
    reads_left: usize,
    /// How many records may be such locks, and were not read.
    outlasting_unread: u64,
    /// How many values may be unreadable behind the part that was read, if such values are sought.
    cut: u64,
}

impl Checking<'_> {
    /// Scans all records. However the scan ends, the counts so far are returned, and the gap says
    /// what was not read.
    async fn run(mut self) -> (Health, Coverage) {
        let mut sample = Reservoir::new(SAMPLE);
        let mut random = Rng::new();
        let mut unproven = Coverage::default();
        while let Some(page) = self.scan.next_deadlines().await {
            let Sought { codes, thresholds, .. } = self.sought;
            let mut doubtful = Vec::new();
            for (candidate, expiries) in page {
                let has_to_be_read = orphan::has_to_be_read(
                    self.catalog,
                    self.selection,
                    &candidate,
                    &expiries,
                    codes,
                    thresholds,
                );
                let endless = expiries.iter().flatten().filter(|left| **left == TimeLeft::NoExpiry);
                self.health.endless_keys += endless.count() as u64;
                let is_read = has_to_be_read || self.may_be_unreadable(&candidate);
                if is_read || self.may_outlast(&candidate, &expiries) {
                    doubtful.push(candidate.clone());
                }
                sample.offer(candidate, |bound| random.u64(..bound));
            }
            if !doubtful.is_empty() {
                self.judge(doubtful, &mut unproven).await;
            }
        }
        // The sample counts these records again, so the other counts made while judging locks are
        // dropped.
        let judged = self.scan.take_coverage();
        self.health.too_large += judged.unproven.count_without_expiry(Missing::Format);
        self.health.endless_near_misses = judged.endless_near_misses;
        let mut coverage = self.count_sample(sample).await;
        self.health.undecided = coverage.unproven.count(Missing::Format);
        coverage.unproven = unproven.unproven;
        // Such a value may be one that cannot be decoded.
        if self.sought.codes.contains(&FindingCode::Unreadable) {
            self.cut += judged.unproven.count(Missing::Format);
            coverage.unproven.extend(judged.unproven);
        }
        let report = self.scan.finish();
        let mut health = self.health;
        health.without_keys = report.coverage.without_keys;
        health.keys = report.keys;
        health.unread = report.keys_of_other_schemas;
        health.covered = self.catalog.covered();
        let unread = match report.end {
            ScanEnd::Complete => report.forbidden,
            ScanEnd::Incomplete(error) | ScanEnd::Failed(error) => Some(error.to_string()),
            ScanEnd::Interrupted => Some(format!("interrupted after {} keys", report.keys)),
        };
        if let Some(why) = unread {
            health.covered.leave_out("the scan", why);
        }
        if self.cut > 0 {
            let values = words::counted(self.cut, "value");
            health.covered.leave_out(values, "only the beginning was read, and the rest decides");
        }
        // A lock of unknown age may be overdue, or one that a filter by age selects.
        if self.undecided > 0 {
            let locks = format!("{} of unknown age", words::counted(self.undecided, "lock"));
            health.covered.leave_out(
                locks,
                "set lock_ttl in the context, or pass --lock-ttl; if an operator set the expiry, no \
                TTL shows the age",
            );
        }
        (health, coverage)
    }

    /// True if the value may be one that cannot be decoded, and such values are sought. A result
    /// beside its lock is one as well, though it is no lock.
    fn may_be_unreadable(&self, candidate: &Candidate) -> bool {
        self.sought.codes.contains(&FindingCode::Unreadable)
            && self.selection.passes_key(&candidate.key)
    }

    /// True if locks that outlast a default lock TTL are read during the scan, and not only those
    /// of the sample.
    fn reads_outlasting(&self) -> bool {
        self.most_outlasting > 0
    }

    /// True if the record may be a lock that outlasts a default lock TTL, and its value has to be
    /// read to decide that.
    fn may_outlast(&mut self, candidate: &Candidate, expiries: &[Option<TimeLeft>]) -> bool {
        if !self.selection.passes_key(&candidate.key) || !may_outlast(&candidate.schemas, expiries)
        {
            return false;
        }
        let is_read = self.reads_left > 0;
        if !is_read {
            self.outlasting_unread += 1;
            for schema in candidate.schemas.iter() {
                let unread = &mut self.health.outlasting_unread;
                if !unread.contains(&schema.name) && !schema.states_ttl(TtlOf::Lock) {
                    unread.insert(schema.name.clone());
                }
            }
        }
        self.reads_left = self.reads_left.saturating_sub(1);
        is_read
    }

    /// Reads records, and counts the locks that the operator asks about. If a finding of a lock is
    /// not proven, the lock is counted as left out.
    async fn judge(&mut self, candidates: Vec<Candidate>, unproven: &mut Coverage) {
        let selection = self.selection;
        let read = self.scan.read_records(candidates, |record| selection.is_about(record)).await;
        for record in read.unwrap_or_default() {
            if self.reads_outlasting() {
                self.health.outlasting.note_lock(&record);
            }
            match orphan::chosen(&record, &self.sought.codes, self.selection) {
                Selected::Yes(orphan) => self.health.add(orphan.code, &record),
                Selected::Unproven(Missing::Format) => self.health.too_large += 1,
                Selected::Unproven(missing) => {
                    unproven.unproven.add(&record, missing);
                    self.undecided += 1;
                }
                Selected::No if self.is_unreadable(&record) => {
                    self.health.add(FindingCode::Unreadable, &record);
                }
                Selected::No if self.may_be_unreadable_in_rest(&record) => self.cut += 1,
                Selected::No => {}
            }
        }
    }

    /// True if unreadable values are sought, and the unread end of this one decides.
    fn may_be_unreadable_in_rest(&self, record: &Record) -> bool {
        self.sought.codes.contains(&FindingCode::Unreadable)
            && record.state != State::Unreadable
            && !record.is_whole()
    }

    /// True if the record has a value that cannot be decoded, and such values are sought.
    fn is_unreadable(&self, record: &Record) -> bool {
        if !self.sought.codes.contains(&FindingCode::Unreadable) || record.is_undecided() {
            return false;
        }
        let is_selected = matches!(self.selection.selects(record), Selected::Yes(()));
        let mut codes = record.findings.iter().map(|finding| finding.code);
        is_selected && codes.any(|code| code == FindingCode::Unreadable)
    }

    /// Reads the sample, and counts which of its records are the schemas' own. Returns what the
    /// sample shows of all records.
    async fn count_sample(&mut self, sample: Reservoir<Candidate>) -> Coverage {
        let came = sample.came();
        let mut candidates = sample.into_values();
        let sampled = candidates.len() as u64;
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let selection = self.selection;
        while !candidates.is_empty() {
            let rest = candidates.split_off(candidates.len().min(AT_A_TIME));
            let some = std::mem::replace(&mut candidates, rest);
            let read = self.scan.read_records(some, |record| selection.is_about(record)).await;
            let Some(records) = read else { break };
            for record in records {
                if !self.reads_outlasting() && self.selection.passes_key(&record.key) {
                    self.health.outlasting.note_lock(&record);
                }
                *own.entry(record.schema.name.clone()).or_default() += 1;
            }
        }
        let mut coverage = self.scan.take_coverage();
        // If the sample contains all records, every one of them was read.
        let is_read_by_sample = !self.reads_outlasting() && came == sampled;
        self.health.outlasting_is_partial = self.outlasting_unread > 0 && !is_read_by_sample;
        scale(&mut own, came, sampled);
        let mut unrecognised = coverage.unrecognised.clone();
        let mut near_misses = std::mem::take(&mut coverage.near_misses);
        if came > sampled {
            self.health.sample = Some(sampled);
            scale(&mut unrecognised, came, sampled);
            scale(&mut near_misses, came, sampled);
            // These maps count single records, and must not contain estimates.
            coverage.unrecognised.clear();
            coverage.spared.clear();
        }
        self.health.near_misses = near_misses;
        self.health.records = own.values().sum();
        self.health.foreign = unrecognised.values().sum();
        self.health.outnumbered = outnumbered(self.catalog, &unrecognised, &own);
        coverage
    }
}

/// Turns the counts of a sample into estimates for all records that came.
fn scale<K: Ord>(counts: &mut BTreeMap<K, u64>, came: u64, sampled: u64) {
    for count in counts.values_mut() {
        // In 128 bits, because the product of two counts may overflow.
        let all = u128::from(*count) * u128::from(came) / u128::from(sampled.max(1));
        *count = u64::try_from(all).unwrap_or(u64::MAX);
    }
}

/// The schemas under whose prefix there are more unrecognised values than records of the schema or
/// of its other releases.
fn outnumbered(
    catalog: &Catalog,
    unrecognised: &BTreeMap<String, u64>,
    own: &BTreeMap<String, u64>,
) -> Vec<(String, u64, u64)> {
    let mut outnumbered = Vec::new();
    for (name, unrecognised) in unrecognised {
        let Some(schema) = catalog.all().iter().find(|schema| schema.name == *name) else {
            continue;
        };
        // Releases of one service share their Redis keys, so their records count together.
        let mut recognised = 0;
        for other in catalog.all() {
            if other.has_templates_of(schema)
                && let Some(count) = own.get(&other.name)
            {
                recognised += count;
            }
        }
        if *unrecognised > recognised {
            outnumbered.push((name.clone(), recognised, *unrecognised));
        }
    }
    outnumbered
}

/// The options that map locks to statuses.
#[derive(Debug, ClapArgs)]
struct AlarmArgs {
    /// Report WARNING from this many stuck locks [default: 1, if --critical is greater]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    warning: Option<u64>,

    /// Report CRITICAL from this many stuck locks
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        default_value_t = 1
    )]
    critical: u64,

    /// Status for a finding, e.g. excess-ttl=CRITICAL (also `overdue`,
    /// `leftover-lock`, `unreadable`, `unrecognised-no-expiry`)
    #[arg(
        long,
        value_name = "CODE=STATUS",
        value_delimiter = ',',
        value_parser = alarms(),
        hide_possible_values = true
    )]
    include: Vec<Alarm>,
}

fn alarms() -> impl TypedValueParser<Value = Alarm> {
    PossibleValuesParser::new(Alarm::all()).try_map(|alarm| alarm.parse::<Alarm>())
}

/// What a check looks for.
struct Sought {
    codes: Vec<FindingCode>,
    limits: Limits,
    thresholds: Thresholds,
}

impl AlarmArgs {
    /// The findings of the options, and by default those of the context.
    ///
    /// # Errors
    /// Usage: an included finding needs a TTL or an age that is not set.
    fn sought(
        &self,
        settings: &Settings,
        mut thresholds: ThresholdArgs,
        catalog: &Catalog,
    ) -> Result<Sought, CommandError> {
        let defaults = settings.check();
        thresholds.overdue = thresholds.overdue.or(defaults.overdue);
        // Every stuck lock blocks a client, so a check with one is OK only if --warning allows
        // it.
        let default_warning = if self.critical > 1 { Some(1) } else { None };
        let warning = self.warning.or(default_warning);
        let mut limits = Limits { warning, critical: self.critical, ..Limits::default() };
        let schemas = catalog.scanned();
        // A default TTL may not be the one that the deployment sets, and would raise false alarms.
        if schemas.iter().any(|schema| schema.states_ttl(TtlOf::Lock)) {
            limits.alarms.insert(FindingCode::ExcessTtl, Status::Warning);
        }
        if thresholds.overdue.is_some() {
            limits.alarms.insert(FindingCode::Overdue, Status::Warning);
        }
        for alarm in &defaults.include {
            limits.include(alarm.0);
        }
        // The options come last, because they override the context.
        for alarm in &self.include {
            limits.include(*alarm);
        }
        if limits.alarms.contains_key(&FindingCode::ExcessTtl) {
            needs_a_stated_lock_ttl("`excess-ttl` needs this deployment's lock TTL", &schemas)?;
        }
        if limits.alarms.contains_key(&FindingCode::Overdue) && thresholds.overdue.is_none() {
            return Err(CommandError::usage(
                "--include overdue needs the age from which a lock is overdue",
            )
            .hint(
                "pass --overdue DURATION, or set it in the context: [contexts.NAME.check] overdue",
            ));
        }
        let codes = limits.sought();
        Ok(Sought { codes, limits, thresholds: thresholds.thresholds() })
    }
}
