//! `idemctl doctor`: whether a deployment is safe, and how it can fail.

mod deployment_watch;
mod record_sample;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use crate::args::{Output, SchemaArgs, parse_ttl};
use crate::domain::doctor::{
    self, Acceptance, CHECKS, CheckSeverity, Counterexample, DeploymentFacts, DoctorCheck,
    ExploredFaults, FaultOutcome, RecordSample, SampleNeed, Statement, parse_acceptances,
};
use crate::domain::record::age::millis;
use crate::domain::schema::{Catalog, Schema};
use crate::exit::{self, CommandError, Exit};
use crate::files;
use crate::interrupt::Interrupt;
use crate::render::doctor::{self as render, DoctorRun};
use crate::render::{coverage, escape};
use crate::session::{Session, interruptible};
use crate::sim::exploration::FaultExplorer;
use crate::sim::simulate::LocalServers;
use crate::store::doctor::read_deployment;

/// Larger than any file of acceptances.
const LARGEST_ACCEPTED: u64 = 1024 * 1024;

/// Check whether this deployment is safe, and how it can fail
///
/// Other commands look at keys. `doctor` looks at the servers, the Sentinels, the rights, the
/// TTLs and the memory, and says what they mean for idempotency. It only reads: a sample of 500
/// keys, and the expiries of all keys for up to 10 s.
///
/// Each row has a fact. -v, and --only CODE, also print its evidence, what can happen and what to
/// do. The evidence is `measured` (a server reported it), `configured` (the context, an option or a
/// schema states it), `estimated` (from a sample or a schema's defaults), or `unknown` (the server
/// did not answer; then doctor names the command, and the ACL rule that allows it).
///
/// If `explore` models the fault (eviction, lost writes of a failover or crash, restart, expiry, a
/// lost lock TTL), doctor explores the schemas in use with this fault alone, on a temporary local
/// Redis. It shows a shortest history that contains the fault, with the command that replays it. If
/// no history violates an invariant, an eviction, a lost write, a restart or an expiry is not a
/// finding.
///
/// The schemas in use are those of --schema or of the context, or else those of a sample of the
/// keys.
///
/// With --observe, doctor looks again for that time, twice a second, at the locks of the sample and
/// at a new sample of the keys.
///
/// --accept FILE silences findings. FILE has a table for each, with three fields: [[accept]],
/// code = "eviction-policy", reason = "only mails", expires = 2027-02-26. From that day on, doctor
/// reports the finding again.
///
/// Exit status 1 for a warning or an error that is not accepted, else 3 if something is unknown,
/// else 0.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// List all checks; idemctl-checks(7) has their rules and sources
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

    /// Observe the locks for this time, e.g. 30s: how they end, and renewals
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
        let is_named = |codes: &[String]| codes.iter().any(|code| code == check.code);
        if self.only.is_empty() { !is_named(&self.skip) } else { is_named(&self.only) }
    }
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(CHECKS.iter().map(|check| check.code))
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if args.list {
        let text = render::list(session.ui.view());
        session.ui.page(text)?;
        return Ok(Exit::Done);
    }
    let acceptances = match &args.accept {
        Some(file) => accepted(session, file)?,
        None => Vec::new(),
    };
    let catalog = session.catalog(&args.schemas)?;
    let client = session.connect().await?;
    let chosen = CHECKS.iter().filter(|check| args.is_chosen(check));
    let need = chosen.map(|check| check.needs).max().unwrap_or(SampleNeed::Nothing);
    let is_sampled =
        need >= SampleNeed::Records || need == SampleNeed::Schemas && !catalog.names_schemas();
    let sample = if is_sampled {
        interruptible(async { Ok(record_sample::read(&client, &catalog).await?) }).await?
    } else {
        Ok(RecordSample::default())
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
    if need == SampleNeed::AllKeys && facts.sample.is_ok() {
        facts.locks = record_sample::count_locks(session, &client, &catalog).await?;
    }
    for schema in &schemas {
        if let Some(window) = session.settings.retry_window(&schema.name) {
            facts.retry_windows.insert(schema.name.clone(), window);
        }
    }
    facts.longest_run_ms = args.longest_run.map(millis);
    if let Some(lasting) = args.observe {
        facts.observed = Some(match &facts.sample {
            Ok(_) => deployment_watch::observe(&client, &catalog, lasting).await?,
            Err(refusal) => Err(refusal.clone()),
        });
    }
    let is_chosen = |check: &DoctorCheck| args.is_chosen(check);
    if doctor::explores_schemas(is_chosen) {
        facts.explorations = explore_histories(session, &schemas, ExploredFaults::Usual).await?;
    }
    let mut statements = doctor::judge(&facts, is_chosen);
    // Without names, a sample shows which schemas are in use, and it need not show all.
    let are_all =
        catalog.names_schemas() || facts.sample.as_ref().is_ok_and(|sample| sample.is_all);
    explain_history(session, &mut statements, &schemas, are_all).await?;
    doctor::accept(&mut statements, &acceptances);
    doctor::keep_worst(&mut statements);
    // The sort is stable, so the checks keep their order.
    statements.sort_by_key(|statement| statement.judgement.severity);
    let explains = !args.only.is_empty() || session.ui.is_verbose();
    show(session, args.output, &statements, &catalog, &facts, explains)?;
    if need != SampleNeed::Nothing && schemas.is_empty() {
        session
            .ui
            .hint("no schema is known to be in use; name those of your services with --schema");
    }
    Ok(exit::judged(statements.iter().any(Statement::is_alarm), &doctor::covered(&statements)))
}

/// Prints the statements and what belongs to them.
fn show(
    session: &mut Session,
    output: Output,
    statements: &[Statement],
    catalog: &Catalog,
    facts: &DeploymentFacts,
    explains: bool,
) -> Result<()> {
    let schemas = facts.schemas.iter().map(|schema| schema.name.as_str());
    let nodes = facts.nodes.iter().map(|node| node.name.as_str());
    let mut place = format!(
        "{}; schemas in use: {}",
        nodes.collect::<Vec<_>>().join(", "),
        schemas.collect::<Vec<_>>().join(", ")
    );
    if let Some(name) = session.settings.context_name() {
        place.push_str(&format!("; context {name}"));
    }
    let invocation = session.ui.invocation().clone();
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
    let run = DoctorRun {
        place: &place,
        has_several_nodes: facts.nodes.len() > 1,
        replay: &replay,
        invocation: &invocation,
    };
    let values: Vec<_> = statements.iter().map(|known| render::statement(known, &run)).collect();
    session
        .show(output, "checks", &values, |view| render::page(statements, &run, view, explains))?;
    if output != Output::Text {
        session.ui.status(&render::verdict(statements));
    }
    if let Some(first) = statements.first()
        && output == Output::Text
        && !explains
        && first.judgement.severity != CheckSeverity::Ok
    {
        let code = first.check.code;
        session.ui.hint(&format!("`idemctl doctor --only {code}` explains it; -v explains all"));
    }
    let rules = render::missing_rules(statements);
    if !rules.is_empty() {
        let rules = escape::text(rules.as_bytes());
        session
            .ui
            .hint(&format!("an administrator can allow all of this with ACL SETUSER: {rules}"));
    }
    if output == Output::Text
        && let Some(line) = coverage::left_out(catalog)
        && facts.sample.is_ok()
    {
        session.ui.note(&line);
    }
    Ok(())
}

fn accepted(session: &Session, file: &Path) -> Result<Vec<Acceptance>> {
    let now = humantime::format_rfc3339_seconds(session.now()).to_string();
    let today = now.split('T').next().unwrap_or_default();
    let shown = file.display();
    let text = files::read_text(file, LARGEST_ACCEPTED)
        .map_err(|error| CommandError::usage(format!("--accept: {shown}: {error}")))?;
    parse_acceptances(&text, today)
        .map_err(|why| CommandError::usage(format!("--accept: {shown}: {why}")).into())
}

/// Adds to each statement with a fault what `explore` finds for the schemas in use with this fault
/// alone. `are_all` is true if these are certainly all of them.
///
/// # Errors
/// Interrupted; or an error of the temporary local Redis.
async fn explain_history(
    session: &Session,
    statements: &mut [Statement],
    schemas: &[Arc<Schema>],
    are_all: bool,
) -> Result<()> {
    let mut faults = BTreeSet::new();
    for statement in statements.iter() {
        faults.extend(statement.judgement.fault);
    }
    for fault in faults {
        let outcomes = explore_histories(session, schemas, ExploredFaults::Alone(fault)).await?;
        for statement in statements.iter_mut() {
            if statement.judgement.fault == Some(fault) {
                statement.explain(&outcomes, are_all);
            }
        }
    }
    Ok(())
}

/// What `explore` finds in each schema with these faults.
///
/// # Errors
/// Interrupted; or an error of the temporary local Redis.
async fn explore_histories(
    session: &Session,
    schemas: &[Arc<Schema>],
    faults: ExploredFaults,
) -> Result<Vec<(String, FaultOutcome)>> {
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    let environment = session.settings.environment();
    let servers = LocalServers {
        path: environment.path(),
        temp_dir: environment.temp_dir(),
        like: session.settings.target().clone(),
    };
    let interrupt = Interrupt::listen()?;
    interrupt.handle_terminate()?;
    let mut outcomes = Vec::new();
    let explorer = match FaultExplorer::start(&servers, &interrupt).await {
        Ok(explorer) => explorer,
        // The findings are true without a history.
        Err(error) => {
            for schema in schemas {
                outcomes.push((schema.name.clone(), FaultOutcome::Unknown(error.to_string())));
            }
            return Ok(outcomes);
        }
    };
    for schema in schemas {
        let outcome = explorer.explore(schema, faults).await;
        if interrupt.is_raised() {
            return Err(CommandError::interrupted("interrupted").into());
        }
        outcomes.push((schema.name.clone(), outcome?));
    }
    Ok(outcomes)
}
