//! `idemctl race`: the outcome of many simultaneous requests with one idempotency key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};

use crate::args::{Output, SchemaArgs, exit_of, parse_duration};
use crate::domain::race::{RacePlan, RaceRun, RaceVerdict, Strategy};
use crate::domain::schema::{Schema, SchemaOrigin};
use crate::domain::step::cluster_problem;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::race as render;
use crate::session::{Session, USE_SANDBOX};
use crate::sim::{self, Connections, NotConnected, RaceEnd, RaceResult, TEST_KEYS_LIVE};
use crate::store::Client;

/// The most workers. Each has a connection of its own, and many systems let a process open only
/// 1,024 files.
const MAX_WORKERS: u64 = 1_000;

/// Race requests with one key: only one may execute
///
/// In each round, every worker runs the schema's begin step on one new key at the same time, on its
/// own connection. The winner completes, and the others retry. race then checks every reply. At
/// most one worker may acquire the lock. Conflicts may occur only while it is held, and replays
/// only after completion, with the stored response. The first round that breaks a rule is shown as
/// a timeline.
///
/// WINNERS is the number of winners in a round, MANY the number of rounds with several winners, and
/// WRONG the number of replies that were errors or unexpected.
///
/// The naive strategies show what fails without an atomic script. Exit status 1 only if the
/// schema's own steps were not atomic, because the other strategies are expected to fail.
///
/// A race can find flaws but cannot prove that there are none. Without a flaw the verdict is `no
/// violation in N` begins (in JSON `atomic`, with `begins`). To find a flaw that occurs once in
/// 10,000 begins, raise --rounds until there are several times as many begins.
///
/// A round is void if a lock may have ended during it: idemctl or the server was stopped for longer
/// than a lock's TTL, or keys were flushed or removed. Void rounds are counted, but not judged. If
/// every round of the schema's own steps was void, the verdict is `void` and the exit status 3.
///
/// Latency is the time from sending a step to its reply, including --think-time. Throughput is
/// the number of steps per second, from the moment when all workers begin, or all losers retry, to
/// the last reply. A winner's completion in between does not count.
///
/// A race puts load on a server. It uses the server in -u, -h, -p, -s, --sentinel, -c or --context,
/// or else a temporary local Redis. It ignores REDIS_URL, IDEMCTL_URL, IDEMCTL_CONTEXT and the
/// config file's default_context.
///
/// The keys are named idemctl-race-UUID-ROUND. The lock idemctl-race-UUID-witness detects void
/// rounds. All are removed after their round, even if the race fails. If idemctl is killed, they
/// expire in less than six minutes, because longer TTLs are shortened.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Number of workers, each on its own connection, at most 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=MAX_WORKERS)
    )]
    concurrency: u64,

    /// Number of rounds, each on a new key
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    rounds: u64,

    /// Strategies [default: schema,check-then-act]
    #[arg(long, value_name = "STRATEGY", value_enum, value_delimiter = ',')]
    strategy: Vec<StrategyArg>,

    /// Longest pause between the calls of a step; widens the window between check and act
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    think_time: Duration,

    /// Let the winner complete at once, while others still begin (always so with set-nx)
    #[arg(long)]
    overlap: bool,

    /// Let the handler fail in every Nth round; 0 means never, but every 4th with set-nx
    #[arg(long, value_name = "N", default_value_t = 0)]
    fail_every: u64,

    /// The schemas. In `race`, the word `all` selects every schema. The default is the context's
    /// schemas, or else every built-in one that begins with a script.
    #[command(flatten)]
    schemas: SchemaArgs,
}

/// `--strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StrategyArg {
    /// The schema's own steps.
    Schema,
    /// GET, and SET if the key does not exist.
    CheckThenAct,
    /// SET NX, and GET if that fails.
    SetNx,
}

impl From<StrategyArg> for Strategy {
    fn from(arg: StrategyArg) -> Self {
        match arg {
            StrategyArg::Schema => Self::Schema,
            StrategyArg::CheckThenAct => Self::CheckThenAct,
            StrategyArg::SetNx => Self::SetNx,
        }
    }
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let (schemas, _) = session.schemas_to_play(
        &args.schemas,
        // Redis executes only a begin step of one script atomically, so the others are not expected
        // to pass.
        |schema| schema.origin == SchemaOrigin::BuiltIn && schema.begins_with_a_script(),
        Schema::unraceable_because,
    )?;
    let plan = plan(&args, &schemas)?;
    // After Ctrl-C and SIGTERM, the test keys are still removed.
    let interrupt = Interrupt::listen()?;
    interrupt.handle_terminate()?;
    let (client, server) = session.load_server("Racing").await?;
    // Each worker has a connection of its own. On a shared one, Redis would execute the requests in
    // the order of sending, and nothing would race.
    let mut connections =
        Connections::open(&client, &server, plan.concurrency).await.map_err(not_connected)?;
    let schemas = runnable(session, &client, schemas)?;
    let mut runs = Vec::new();
    for schema in &schemas {
        for strategy in strategies(&args.strategy, schema) {
            let run =
                one_run(session, &mut connections, schema, strategy, &plan, &interrupt).await?;
            runs.push(run);
        }
    }
    let shown: Vec<_> = runs.iter().map(render::run).collect();
    let is_verbose = session.ui.is_verbose();
    session.show(args.output, "runs", &shown, |view| render::text(&runs, view, is_verbose))?;
    for schema in &schemas {
        // Without --overlap, no winner stores its result between two calls of another begin.
        if !plan.overlap && schema.begin_calls().len() > 1 {
            let name = &schema.name;
            session.ui.hint(&format!("--overlap lets completions of {name} overlap"));
        }
    }
    Ok(exit_of_runs(&runs))
}

/// The exit code of the schemas' own steps. The other strategies are expected to fail.
fn exit_of_runs(runs: &[RaceRun]) -> Exit {
    let has = |verdict| {
        runs.iter().any(|run| run.strategy == Strategy::Schema && run.verdict() == verdict)
    };
    exit_of::<()>(None, has(RaceVerdict::NotAtomic), !has(RaceVerdict::Void))
}

async fn one_run(
    session: &mut Session,
    connections: &mut Connections,
    schema: &Schema,
    strategy: Strategy,
    plan: &RacePlan,
    interrupt: &Interrupt,
) -> Result<RaceRun> {
    let what = format!("{}, {}", schema.name, strategy.as_str());
    let progress =
        session.ui.progress_of(&format!("racing {what}: rounds"), Some(plan.rounds as u64));
    let RaceResult { run, end, left_behind } =
        sim::race(connections, schema, strategy, plan.clone(), interrupt, || progress.inc(1)).await;
    progress.finish_and_clear();
    if let Some(error) = &left_behind {
        session
            .ui
            .warning(&format!("keys named idemctl-race-* may remain until they expire: {error}"));
    }
    match end {
        RaceEnd::Finished => Ok(run),
        RaceEnd::Interrupted => {
            let message =
                format!("interrupted after {} of {} rounds of {what}", run.rounds, plan.rounds);
            Err(CommandError::interrupted(message).into())
        }
        RaceEnd::Failed(error) => {
            Err(anyhow::Error::new(error)
                .context(format!("racing {what}, round {}", run.rounds + 1)))
        }
    }
}

/// The schemas whose scripts can run on this server.
fn runnable(
    session: &mut Session,
    client: &Client,
    schemas: Vec<Arc<Schema>>,
) -> Result<Vec<Arc<Schema>>> {
    if !client.is_cluster() {
        return Ok(schemas);
    }
    // A script whose keys are in several slots cannot run on a cluster. Any key shows whether a
    // schema's templates keep them together.
    let mut runnable = Vec::new();
    for schema in schemas {
        match cluster_problem(&schema, b"order-1") {
            Some(why) => {
                session.ui.warning(&format!("skipped schema {}: {why}", schema.name));
            }
            None => runnable.push(schema),
        }
    }
    if runnable.is_empty() {
        return Err(CommandError::usage("no schema can be raced on this cluster")
            .hint(USE_SANDBOX)
            .into());
    }
    Ok(runnable)
}

fn strategies(args: &[StrategyArg], schema: &Schema) -> Vec<Strategy> {
    let mut strategies = Vec::new();
    for strategy in args {
        let strategy = Strategy::from(*strategy);
        if !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    // A schema's own steps come before the strategies they are compared with.
    strategies.sort_by_key(|strategy| *strategy != Strategy::Schema);
    if !strategies.is_empty() {
        return strategies;
    }
    // The workers of the comparison write the lock themselves.
    match schema.write.lock_value {
        Some(_) => vec![Strategy::Schema, Strategy::CheckThenAct],
        None => vec![Strategy::Schema],
    }
}

fn plan(args: &Args, schemas: &[Arc<Schema>]) -> Result<RacePlan> {
    // A lock that expires during a round makes the round void.
    let too_short =
        schemas.iter().find(|schema| args.think_time >= schema.lock_ttl.min(TEST_KEYS_LIVE));
    if let Some(schema) = too_short {
        let message = format!(
            "--think-time must be shorter than the lock TTL of {}, or the lock would expire",
            schema.name
        );
        return Err(CommandError::usage(message).into());
    }
    Ok(RacePlan {
        concurrency: usize::try_from(args.concurrency)?,
        rounds: usize::try_from(args.rounds)?,
        think_time: args.think_time,
        overlap: args.overlap,
        fail_every: usize::try_from(args.fail_every)?,
    })
}

fn not_connected(error: NotConnected) -> anyhow::Error {
    if error.open == 0 {
        return error.error.into();
    }
    let message = error.to_string();
    let hint = "each worker needs a connection; lower --concurrency, or raise the server's \
        maxclients and `ulimit -n`";
    CommandError::new(exit::of(&error.error.into()), message).hint(hint).into()
}
