//! `idemctl simulate`: scenarios in which idempotency fails, executed with a schema's own steps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::PossibleValue;
use serde_json::{Map, json};

use crate::args::{Output, SchemaArgs, accepted, exit_of};
use crate::domain::schema::Schema;
use crate::domain::simulation::{AcceptedMatrix, Cell, SCENARIOS};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::simulation::{self as render, ComparedMatrix, Simulation};
use crate::render::style::Palette;
use crate::session::Session;
use crate::sim::simulate::{LocalServers, Simulated, SimulationPlan, simulate};

/// The word in place of a scenario that lists the scenarios.
const LIST: &str = "list";

/// Simulate how idempotency fails, and who is affected
///
/// In each scenario, something goes wrong: a worker dies, finishes too late or loses Redis; a
/// client retries, disconnects or reuses a key. Workers run the schema's own steps on a real
/// server, with locks of one second. The verdict follows from how often the operation was executed,
/// which is counted outside Redis, and what each client received.
///
/// You can simulate a schema folder of your own (--schema-dir) to test scripts before a release.
/// [service] in its schema.toml describes what the service does around its steps.
///
/// A simulation puts load on a server. It uses the server in -u, -h, -p, -s, --sentinel, -c or
/// --context, or else a temporary local Redis. It ignores REDIS_URL, IDEMCTL_URL, IDEMCTL_CONTEXT
/// and the config file's default_context. Faults that would harm a shared server (out of memory,
/// failover, a cluster, SCRIPT FLUSH, locks without TTL) always use temporary local servers.
///
/// Keys are named idemctl-simulate-* and removed at the end, even if it fails. If idemctl is
/// killed, they expire in less than six minutes. Times in the output are those of the schema.
///
/// Exit status 1 if a result is worse than `blocked`, unless it is marked `environment` (no script
/// can prevent it) or `not-compared` (the schema does not compare payloads); or with --expect, if a
/// result differs from the accepted one.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Scenarios to run; `list` shows them
    #[arg(
        value_name = "SCENARIO",
        value_parser = scenario_names(),
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    scenarios: Vec<String>,

    /// Run every scenario
    #[arg(long)]
    all: bool,

    /// Show each result as a sequence of times, actors, actions, Redis replies and client responses
    #[arg(long)]
    timeline: bool,

    /// Exit with 1 only for differences from FILE, which `-o json` wrote
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Number of repetitions of scenarios that depend on chance
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    repeat: u64,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// The schemas. In `simulate`, the word `all` selects every schema. The default is the
    /// context's schemas, or else all.
    #[command(flatten)]
    schemas: SchemaArgs,
}

fn scenario_names() -> Vec<PossibleValue> {
    let mut names = vec![PossibleValue::new(LIST).help("show the scenarios")];
    for scenario in SCENARIOS.iter() {
        names.push(PossibleValue::new(&scenario.name).help(&scenario.summary));
    }
    names
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if args.scenarios.iter().any(|name| name == LIST) {
        let values: Vec<_> = SCENARIOS.iter().map(render::scenario).collect();
        session.show(args.output, "scenarios", &values, |view| render::list(&SCENARIOS, view))?;
        return Ok(Exit::Done);
    }
    let accepted: Option<AcceptedMatrix> = accepted(args.expect.as_deref())?;
    let plan = plan(session, &args)?;
    let simulated = play(session, &plan).await?;
    let mut hashes = BTreeMap::new();
    for schema in &plan.schemas {
        hashes.insert(schema.name.clone(), schema.files_hash.clone());
    }
    let mut differences = None;
    let mut files = Vec::new();
    if let Some(accepted) = accepted {
        differences = Some(accepted.differences(&simulated.cells, &hashes));
        files.extend(hashes.keys().filter(|name| !accepted.has_files(name, &hashes)).cloned());
    }
    let compared =
        differences.as_deref().map(|differences| ComparedMatrix { differences, files: &files });
    show(session, &args, &simulated.cells, &hashes, compared)?;
    let has_failure = simulated.cells.iter().any(|cell| cell.judgement.is_failure());
    Ok(exit_of(differences.as_deref(), has_failure, true))
}

async fn play(session: &mut Session, plan: &SimulationPlan) -> Result<Simulated> {
    // After Ctrl-C and SIGTERM, the test keys are still removed.
    let interrupt = Interrupt::listen()?;
    interrupt.handle_terminate()?;
    let (client, server) = session.load_server("Simulating").await?;
    // Faults that would harm a shared server always use temporary local servers.
    let environment = session.settings.environment();
    let servers = LocalServers {
        path: environment.path(),
        temp_dir: environment.temp_dir(),
        like: (*server).clone(),
    };
    let count = plan.schemas.len() * plan.scenarios.len();
    let progress = session.ui.progress_of("cells simulated", Some(count as u64));
    let simulated =
        simulate(plan, &client, &server, &servers, &interrupt, || progress.inc(1)).await;
    progress.finish_and_clear();
    if let Some(error) = &simulated.left_behind {
        session.ui.warning(&format!(
            "keys named idemctl-simulate-* may remain until they expire: {error}"
        ));
    }
    if let Some(error) = simulated.failed {
        return Err(error.into());
    }
    if simulated.interrupted {
        let executed = simulated.cells.len();
        return Err(CommandError::interrupted(format!(
            "interrupted after {executed} of {count} cells"
        ))
        .into());
    }
    Ok(simulated)
}

fn show(
    session: &mut Session,
    args: &Args,
    cells: &[Cell],
    hashes: &BTreeMap<String, String>,
    compared: Option<ComparedMatrix<'_>>,
) -> Result<()> {
    // JSON lines are the cells, so the differences go to stderr.
    if let Some(compared) = compared
        && args.output == Output::Jsonl
    {
        session.ui.status(render::differences(compared, Palette::new(false)).trim_end());
    }
    let mut of_all = Map::new();
    of_all.insert("hashes".to_owned(), json!(hashes));
    if let Some(compared) = compared {
        let differences = compared.differences.iter().map(render::difference).collect();
        of_all.insert("differences".to_owned(), differences);
    }
    let values: Vec<_> = cells.iter().map(render::cell).collect();
    let simulation = Simulation { cells, timeline: args.timeline, compared };
    session
        .show_with(args.output, "cells", &values, &of_all, |view| render::text(simulation, view))?;
    Ok(())
}

fn plan(session: &mut Session, args: &Args) -> Result<SimulationPlan> {
    let (schemas, catalog) =
        session.schemas_to_play(&args.schemas, |_| true, Schema::unplayable_because)?;
    let mut scenarios = Vec::new();
    for scenario in SCENARIOS.iter() {
        if args.all || args.scenarios.contains(&scenario.name) {
            scenarios.push(scenario);
        }
    }
    let repeat = usize::try_from(args.repeat)?;
    Ok(SimulationPlan { schemas, all: catalog.all().to_vec(), scenarios, repeat, seed: args.seed })
}
