//! `idemctl doctor`: whether a deployment is safe, and how it can fail.

mod data_sample;
mod deployment_watch;
mod histories;
mod lock_scan;
mod record_sample;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use tokio::time::Instant;

use self::deployment_watch::DeploymentWatch;
use self::histories::Histories;
use self::record_sample::FirstLook;
use crate::args::{Output, SchemaArgs, parse_ttl};
use crate::domain::doctor::{
    self, Acceptance, CHECKS, CheckSeverity, Counterexample, DeploymentFacts, DoctorCheck,
    RecordSample, SampleNeed, Statement, parse_acceptances,
};
use crate::domain::record::age::millis;
use crate::domain::schema::Catalog;
use crate::exit::{self, CommandError, Exit};
use crate::files;
use crate::render::coverage;
use crate::render::doctor::{self as render, PageDetail};
use crate::render::doctor_remedy::DoctorRemedies;
use crate::render::doctor_verdict;
use crate::render::escape;
use crate::session::{Session, interruptible};
use crate::store::doctor::read_deployment;

/// About how many lines follow the page: the hints, and the shell's prompt.
const HINT_LINES: usize = 4;

/// Larger than any file of acceptances.
const LARGEST_ACCEPTED: u64 = 1024 * 1024;

/// Check whether this deployment is safe, and show how it can fail
///
/// Other commands look at keys. `doctor` looks at the servers, the Sentinels, the rights, the
/// TTLs and the memory, and says what they mean for idempotency. It only reads: a sample of 500
/// keys, and the expiries of all keys for up to 10 s.
///
/// Each paragraph has a fact with its evidence, what can happen, and what to do. The evidence is
/// `measured` (a server reported it), `configured` (the context, an option or a schema states it),
/// `estimated` (from a sample or a schema's defaults), or `unknown` (the server did not answer;
/// then doctor names the command, and the ACL rule that allows it).
///
/// If `explore` models the fault (eviction, lost writes of a failover or crash, restart, expiry, a
/// lost lock TTL), doctor explores the schemas in use with this fault alone, on a temporary local
/// Redis. It shows a shortest history that contains the fault, with the command that replays it. If
/// no history violates an invariant, an eviction, a lost write, a restart or an expiry is not a
/// finding. The results are cached.
///
/// With --data, doctor also looks into a sample of the records, for card numbers, credentials and
/// personal data in values and keys, and for keys that clients can share by accident. It prints
/// counts, and places as JSON pointers. It never prints a value or a key: a name that may be data
/// is a star. At most 32 MiB are read, and 1 MiB at a time.
///
/// The schemas in use are those of --schema or of the context, or else those of a sample of the
/// keys.
///
/// With --observe, doctor looks again for that time, ten times or every second: at the locks of
/// the sample, at a new sample each time, and at the servers at the end.
///
/// --accept FILE silences findings. FILE has a table for each, with four fields: [[accept]],
/// code = "eviction-policy", reason = "only mails", date = 2026-11-26, expires = 2027-02-26. From
/// that day on, doctor reports the finding again. With severity = "warning", an error is not
/// accepted.
///
/// Exit status 1 for a warning or an error that is not accepted, else 3 if something is unknown,
/// else 0.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// List all checks, with what they read; with --verbose, also their rules and sources
    #[arg(long, conflicts_with_all = ["output", "only", "skip", "accept", "service_user", "observe"])]
    list: bool,

    /// Make only these checks
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        value_parser = codes(),
        conflicts_with = "skip"
    )]
    only: Vec<String>,

    /// Leave out these checks
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = codes())]
    skip: Vec<String>,

    /// Do not count the findings that FILE accepts
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,

    /// Check the rights of this user of the services, too
    #[arg(long, value_name = "NAME")]
    service_user: Option<String>,

    /// Also look into records, for sensitive data and for keys that clients share by accident
    #[arg(long, conflicts_with = "list")]
    data: bool,

    /// With --data: how many random Redis keys to look at
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        value_parser = clap::value_parser!(i64).range(1..=data_sample::MAX_SAMPLED),
        requires = "data"
    )]
    sample: i64,

    /// Observe the locks and the servers for this time, e.g. 30s: hold times, renewals, arrivals
    /// and evictions
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    observe: Option<Duration>,

    /// How long a request runs at most, to report locks that are renewed for longer
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, requires = "observe")]
    longest_run: Option<Duration>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    schemas: SchemaArgs,
}

impl Args {
    fn is_chosen(&self, check: &DoctorCheck) -> bool {
        if check.needs_data() && !self.data {
            return false;
        }
        let is_named = |codes: &[String]| codes.iter().any(|code| code == check.code);
        if self.only.is_empty() { !is_named(&self.skip) } else { is_named(&self.only) }
    }
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(CHECKS.iter().map(|check| check.code))
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if args.list {
        let view = session.ui.view();
        let text = if session.ui.is_verbose() { render::rules(view) } else { render::list(view) };
        session.ui.page(text)?;
        return Ok(Exit::Done);
    }
    refuse_data(session, &args)?;
    let acceptances = match &args.accept {
        Some(file) => accepted(file)?,
        None => Vec::new(),
    };
    let catalog = session.catalog(&args.schemas)?;
    let client = session.connect().await?;
    let mut need = SampleNeed::Nothing;
    for check in &CHECKS {
        if args.is_chosen(check) {
            need = need.max(check.needs());
        }
    }
    let is_sampled =
        need == SampleNeed::Records || need == SampleNeed::Schemas && !catalog.names_schemas();
    let started = Instant::now();
    let (sample, first_look) = if is_sampled {
        interruptible(async { Ok(record_sample::read(&client, &catalog, started).await?) }).await?
    } else {
        (Ok(RecordSample::default()), FirstLook::default())
    };
    let schemas = if need == SampleNeed::Nothing {
        Vec::new()
    } else {
        record_sample::schemas_in_use(&catalog, &sample)
    };
    let service_user = args.service_user.as_deref();
    let local_clock = || session.now_ms();
    let mut facts = interruptible(async {
        Ok(read_deployment(&client, &schemas, sample, service_user, &local_clock).await?)
    })
    .await?;
    if let Ok(sample) = &facts.sample
        && CHECKS.iter().any(|check| check.counts_locks() && args.is_chosen(check))
    {
        facts.locks = lock_scan::count(session, &client, &catalog, sample).await?;
    }
    if CHECKS.iter().any(|check| check.needs_data() && args.is_chosen(check)) {
        let wanted = usize::try_from(args.sample).unwrap_or(usize::MAX);
        if facts.sample.is_ok() {
            let what = format!("Reading up to {wanted} Redis keys, and at most 32 MiB of values.");
            session.ui.status(&what);
        }
        let data = interruptible(async { Ok(data_sample::read(&client, &catalog, wanted).await?) });
        facts.data = Some(data.await?);
    }
    for schema in &schemas {
        if let Some(window) = session.settings.retry_window(&schema.name) {
            facts.retry_windows.insert(schema.name.clone(), window);
        }
    }
    facts.longest_run_ms = args.longest_run.map(millis);
    if let Some(lasting) = args.observe {
        let watch = DeploymentWatch {
            client: &client,
            catalog: &catalog,
            reads_keys: need == SampleNeed::Records,
            started,
            lasting,
        };
        facts.observed = Some(match &facts.sample {
            Ok(_) => watch.run(session, first_look).await?,
            Err(refusal) => Err(refusal.clone()),
        });
    }
    let mut histories = Histories::new(session);
    let is_chosen = |check: &DoctorCheck| args.is_chosen(check);
    if doctor::explores_schemas(is_chosen) {
        facts.explorations = histories.of_schemas(&schemas).await?;
    }
    let mut statements = doctor::judge(&facts, is_chosen);
    // Without names, a sample shows which schemas are in use, and it need not show all.
    let are_all =
        catalog.names_schemas() || facts.sample.as_ref().is_ok_and(|sample| sample.is_all);
    histories.show(&mut statements, &schemas, are_all).await?;
    let now = humantime::format_rfc3339_seconds(session.now()).to_string();
    let today = now.split('T').next().unwrap_or_default();
    doctor::accept(&mut statements, &acceptances, today);
    doctor::keep_alarms(&mut statements);
    // The sort is stable, so the checks keep their order.
    statements.sort_by_key(|statement| position(statement.judgement.severity));
    let lines = show(session, args.output, &statements, &catalog, &facts)?;
    if need != SampleNeed::Nothing && schemas.is_empty() {
        record_sample::say_unseen(session, &facts.sample);
    }
    if args.output == Output::Text {
        repeat_verdict(session, &statements, lines)?;
    }
    Ok(exit::judged(statements.iter().any(Statement::is_alarm), &doctor::covered(&statements)))
}

/// Refuses checks of data that are named without --data, and --debug with them.
fn refuse_data(session: &Session, args: &Args) -> Result<()> {
    if args.data {
        if session.settings.target().trace.is_some() {
            let why = "--data cannot be used with --debug, which prints keys";
            return Err(CommandError::usage(why).hint("leave out --debug").into());
        }
        return Ok(());
    }
    for check in &CHECKS {
        if check.needs_data() && args.only.iter().any(|code| code == check.code) {
            let code = check.code;
            let why = format!("--only {code}: this check looks into records, which needs --data");
            return Err(CommandError::usage(why).hint("pass --data").into());
        }
    }
    Ok(())
}

/// The position of a severity on the page: the worst first.
fn position(severity: CheckSeverity) -> usize {
    match severity {
        CheckSeverity::Error => 0,
        CheckSeverity::Warning => 1,
        CheckSeverity::Unknown => 2,
        CheckSeverity::Note => 3,
        CheckSeverity::Ok => 4,
    }
}

/// Prints the statements and what belongs to them. Returns the number of lines of the page.
fn show(
    session: &mut Session,
    output: Output,
    statements: &[Statement],
    catalog: &Catalog,
    facts: &DeploymentFacts,
) -> Result<usize> {
    let schemas: Vec<&str> = facts.schemas.iter().map(|schema| schema.name.as_str()).collect();
    let mut place = Vec::new();
    for node in &facts.nodes {
        place.push(node.name.as_str());
    }
    let mut place = place.join(", ");
    if let Some(name) = session.settings.context_name() {
        place.push_str(&format!(" (context {name})"));
    }
    let detail = PageDetail {
        place: &place,
        schemas: &schemas,
        are_named: catalog.names_schemas(),
        shows_servers: facts.nodes.len() > 1,
        is_verbose: session.ui.is_verbose(),
    };
    let mut invocation = session.ui.invocation().clone();
    invocation.set_context(session.settings.context_name());
    let remedies = DoctorRemedies { invocation: &invocation, nodes: &facts.nodes };
    let is_on_sandbox = session.is_on_sandbox();
    // Eviction and lost writes are only possible on a temporary local Redis, whatever server the
    // options name.
    let replay = |found: &Counterexample| {
        let mut words = vec!["explore"];
        if !is_on_sandbox {
            words.push("--sandbox");
        }
        words.extend(["--replay", &found.token]);
        invocation.command_line(words)
    };
    let mut values = Vec::with_capacity(statements.len());
    for statement in statements {
        values.push(render::statement(statement, &replay, remedies));
    }
    let mut lines = 0;
    session.show(output, "checks", &values, |view| {
        let page = render::page(statements, detail, &replay, remedies, view);
        lines = page.lines().count();
        page
    })?;
    if output != Output::Text {
        session.ui.status(&doctor_verdict::counts(statements));
    }
    if let Some(rules) = render::missing_rules(statements) {
        let rules = escape::text(rules.as_bytes());
        session.ui.hint(&format!(
            "an administrator can allow all of this with ACL SETUSER and these rules: {rules} \
             (docs/doctor.md, Rights, has all)"
        ));
    }
    if output == Output::Text {
        if let Some(line) = coverage::left_out(catalog)
            && facts.sample.is_ok()
        {
            session.ui.note(&line);
        }
        let names_context = |statement: &Statement| {
            statement.remedy().is_some_and(|remedy| remedy.contains("context set NAME"))
        };
        if session.settings.context_name().is_none() && statements.iter().any(names_context) {
            session.ui.hint(
                "NEW-NAME is the name of a new context, which stores how to connect; then pass \
                 --context NEW-NAME",
            );
        }
        session.ui.hint(
            "`idemctl help doctor` explains the words on this page, and docs/doctor.md describes each \
             check",
        );
    }
    Ok(lines)
}

/// Repeats the verdict below a page that is longer than the terminal, because its first line has
/// left the screen. `lines` is the number of lines of the page.
fn repeat_verdict(session: &mut Session, statements: &[Statement], lines: usize) -> Result<()> {
    if session.ui.is_taller_than_terminal(lines + HINT_LINES) {
        let palette = session.ui.view().palette;
        session.ui.page(doctor_verdict::line(statements, palette) + "\n")?;
    }
    Ok(())
}

fn accepted(file: &Path) -> Result<Vec<Acceptance>> {
    let shown = file.display();
    let text = files::read_text(file, LARGEST_ACCEPTED)
        .map_err(|error| CommandError::usage(format!("--accept: {shown}: {error}")))?;
    parse_acceptances(&text).map_err(|why| {
        CommandError::usage(format!("--accept: {shown}: {why}"))
            .hint("`idemctl help doctor` shows the format of the file")
            .into()
    })
}
