//! `idemctl explore`: every order of the steps, with faults, and the shortest history to each
//! violation.

mod explored;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::Map;
use uuid::Uuid;

use self::explored::{ChosenArgs, ExploredPrograms};
use crate::args::{JunitArgs, Output, SchemaArgs, accepted, exit_of};
use crate::domain::exploration::{
    AcceptedFrontiers, Assumption, Exploration, ExplorationBounds, FaultBudget, ScheduleToken,
};
use crate::domain::schema::Schema;
use crate::exit::{CommandError, Exit};
use crate::explore::SearchLimits;
use crate::interrupt::Interrupt;
use crate::render::exploration::{self as render, ShownExplorations};
use crate::session::{Session, USE_SANDBOX};
use crate::sim::TEST_KEYS_LIVE;
use crate::sim::exploration::{ExplorationPlace, ExplorationTask, usual_faults};

/// The most states of a search. The number of a state has four bytes, and at about 65 bytes each
/// this many states take 13 GB of memory.
const MAX_STATES: u32 = 200_000_000;

/// The idempotency key on a temporary local Redis, which has no other keys.
const PRIVATE_KEY: &[u8] = b"order-1";

/// Explore every order of the steps of requests, with faults
///
/// `simulate` runs prepared scenarios. `explore` covers every order of the steps of requests with
/// one key, with a limited number of faults. The schema's own scripts or commands run each step
/// once on a real server, from each state of the Redis keys in which a worker can send it. The
/// search is breadth first, so the first history that breaks an invariant is one of the shortest.
/// The result covers every schedule of N workers with at most M faults. It does not cover larger
/// cases.
///
/// A worker begins, renews its lock if the schema can, has its effect, and completes. Its handler
/// may also fail, before or after the effect. The worker then releases the lock, stores the failure
/// or keeps the lock, as the schema defines. A request that is rejected with 409 is over; the other workers
/// are the retries.
///
/// Faults: expiry (a TTL ends), delay (half of the time until the next TTL ends passes), crash (a worker dies), lost (Redis executes a call, but the worker
/// gets no reply and stops), resend (the reply is lost, and the client library sends the call
/// again), fail (a handler fails before its effect), late-fail (a handler fails
/// after its effect), give-up (a worker gives up before its effect
/// and releases, if a failing handler does not call the release step), evict (a key is evicted),
/// restart (Redis loses all keys), failover (the last one to three writes are lost), persist (a lock loses its TTL). For each
/// violation, explore shows the smallest sets of faults that cause it. It also runs a shortest
/// history on the server, with earlier deadlines, and shows it.
///
/// Assumptions: critical-section (no fault, expiry included, between a worker's last check of its
/// lock and its stored result; a handler may still fail before its effect), results-outlive-retries (no stored result
/// that begin replays expires, even if a lock hides it).
///
/// Invariants: one-effect, one-holder (of a lock without a result), effect-not-lost (of a claim that
/// begin stores as done), true-replay, no-false-done, result-kept, result-not-replaced, lock-ends,
/// owner-only, replays-after-success, payloads-apart (if the schema compares payloads),
/// ttl-as-stated. docs/explore.md defines each.
///
/// explore uses the server in -u, -h, -p, -s, --sentinel or --context, or else a temporary local
/// Redis. On a named server it creates and removes one key named idemctl-explore-*, and refuses
/// evict, restart and failover.
///
/// Without any fault, some history must have an effect, store a result and replay it. Otherwise the
/// absence of violations means nothing. explore shows which calls, replies and formats of the
/// schema it never met.
///
/// By default, each violation has a cause. `schema`: other scripts could prevent it. `not-fenced`: a
/// step without `checks_owner = true` removes or replaces what another worker owns; only --strict
/// counts it. `environment`: no script can prevent it; it never counts. With --faults or --assume,
/// violations have no cause, and all count.
///
/// Exit status 1 if it found a violation that counts, or no effect, stored result or replay without a fault; 3
/// if --max-states ended it without a violation; or with --expect, 1 if a result differs from the
/// accepted one.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    chosen: ChosenArgs,

    /// Number of simultaneous requests
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=8)
    )]
    workers: u8,

    /// Number of payloads; with 2, the last request has another payload than the others
    ///
    /// It asks for another operation with the same key, and takes part in every order of the steps.
    /// payloads-apart is then checked for every schema.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=2),
        conflicts_with_all = ["mix", "replay"]
    )]
    payloads: u8,

    /// Maximum number of each fault; `none` for no faults
    ///
    /// Faults that are not named keep their default. Without --faults, explore adds delay=1 for a
    /// schema with a renew step, or whose steps depend on the time.
    /// [default: expiry=2,crash=1,lost=1,resend=1,fail=1,late-fail=1,give-up=1]
    #[arg(long, value_name = "FAULT=N,...")]
    faults: Option<FaultBudget>,

    /// Assume this about the service
    #[arg(
        long,
        value_name = "ASSUMPTION",
        value_delimiter = ',',
        value_parser = explored::assumptions()
    )]
    assume: Vec<Assumption>,

    /// Count violations by steps that do not claim to check the owner, too
    #[arg(long)]
    strict: bool,

    /// Show the shortest history of each violation, and not only of those that count for one schema
    #[arg(long)]
    trace: bool,

    /// Exit with 1 only for differences from FILE, which `-o json` wrote
    ///
    /// Shows only what is new or gone. Refuses fewer workers, payloads or faults, or more assumptions,
    /// than FILE has.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    expect: Option<PathBuf>,

    #[command(flatten)]
    junit: JunitArgs,

    /// Stop each exploration after this many states
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3_000_000,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STATES))
    )]
    max_states: u32,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// The schemas, as an alternative to the names before the options.
    #[command(flatten)]
    schemas: SchemaArgs,
}

impl Args {
    fn faults(&self, services: &[Arc<Schema>]) -> FaultBudget {
        self.faults.unwrap_or_else(|| usual_faults(services))
    }

    /// True if the operator leaves the faults and assumptions to idemctl. It then explores with and
    /// without the assumptions, and says which violations the schema causes.
    fn explores_twice(&self) -> bool {
        self.faults.is_none() && self.assume.is_empty()
    }
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let accepted: Option<AcceptedFrontiers> = accepted(args.expect.as_deref())?;
    if args.chosen.mix.is_some() && args.workers < 2 || args.workers < args.payloads {
        let message = "--mix and two --payloads need at least two workers";
        return Err(CommandError::usage(message).into());
    }
    let choice = explored::choose(session, &args.chosen, &args.schemas)?;
    if let Some(accepted) = &accepted {
        refuse_smaller_bounds(&args, &choice, accepted)?;
    }
    // After Ctrl-C and SIGTERM, the keys that explore created are still removed.
    let interrupt = Interrupt::listen()?;
    interrupt.handle_terminate()?;
    let (client, target) = session.load_server("Exploring").await?;
    // Only a temporary local Redis has no other clients.
    let is_private = session.is_on_sandbox();
    if client.is_cluster() {
        let stop = CommandError::usage(
            "explore does not run on a cluster, because a node does not serve every key",
        );
        return Err(stop.hint(USE_SANDBOX).into());
    }
    // On a server that others use, a random name keeps the key apart from every other key.
    let unique = format!("idemctl-explore-{}", Uuid::new_v4().simple()).into_bytes();
    let key = if is_private { PRIVATE_KEY } else { &unique };
    let place = ExplorationPlace { target: &target, key, is_private, interrupt: &interrupt };
    // Eviction, restart and failover would affect every key of a server.
    explored::permits(&args.chosen, args.faults.unwrap_or(FaultBudget::USUAL), is_private)?;
    if args.chosen.replay.is_empty() {
        search(session, &args, &choice, accepted.as_ref(), place).await
    } else {
        replay(session, &args, &choice, place).await
    }
}

async fn search(
    session: &mut Session,
    args: &Args,
    choice: &ExploredPrograms,
    accepted: Option<&AcceptedFrontiers>,
    place: ExplorationPlace<'_>,
) -> Result<Exit> {
    let mut explorations = Vec::new();
    let progress = session.ui.progress_of("explored", Some(choice.len() as u64));
    for services in choice {
        let task = task(args, services, place.is_private)?;
        let explored = if args.explores_twice() {
            task.run_with_causes(args.strict, place).await
        } else {
            task.run(place).await
        };
        progress.inc(1);
        let explored = explored.inspect_err(|_| progress.finish_and_clear())?;
        // If a step replies differently to the same state, the states that follow are wrong.
        if let Some(why) = &explored.unsteady {
            progress.finish_and_clear();
            let message = format!("no result for {}: {why}", explored.name());
            return Err(CommandError::new(Exit::Partial, message).into());
        }
        explorations.push(explored);
        if place.interrupt.is_raised() {
            break;
        }
    }
    progress.finish_and_clear();
    go_on(place)?;
    show(session, args, &explorations, accepted)
}

/// # Errors
/// Interrupted.
fn go_on(place: ExplorationPlace<'_>) -> Result<()> {
    if place.interrupt.is_raised() {
        return Err(CommandError::interrupted("interrupted; all keys were removed").into());
    }
    Ok(())
}

fn show(
    session: &mut Session,
    args: &Args,
    explorations: &[Exploration],
    accepted: Option<&AcceptedFrontiers>,
) -> Result<Exit> {
    let mut differences = None;
    let mut changed = Vec::new();
    if let Some(accepted) = accepted {
        differences = Some(accepted.differences(explorations));
        changed = accepted.changed_schemas(explorations);
    }
    let folder = session.settings.environment().schema_dir();
    session.ui.invocation_mut().note_schemas(&args.schemas, folder);
    let replay = session.ui.invocation().command_line(["explore", "--replay"]);
    let shown = ShownExplorations {
        explorations,
        first_trace: explorations.len() == 1,
        every_trace: args.trace,
        is_verbose: session.ui.is_verbose(),
        differences: differences.as_deref(),
        changed: &changed,
        replay: &replay,
    };
    let mut of_all = Map::new();
    if let Some(differences) = &differences {
        of_all
            .insert("differences".to_owned(), differences.iter().map(render::difference).collect());
    }
    let values: Vec<_> = explorations.iter().map(render::exploration).collect();
    session
        .show_with(args.output, "schemas", &values, &of_all, |view| render::text(shown, view))?;
    args.junit.write("explore", &render::suites(shown))?;
    let has_failure = !explorations.iter().all(Exploration::is_sound);
    // An exploration that reached its limit may have missed a violation.
    let is_complete = explorations.iter().all(Exploration::is_complete);
    Ok(exit_of(differences.as_deref(), has_failure, is_complete))
}

/// Executes the histories of the given tokens.
async fn replay(
    session: &mut Session,
    args: &Args,
    choice: &ExploredPrograms,
    place: ExplorationPlace<'_>,
) -> Result<Exit> {
    let mut executed = Vec::new();
    for (token, services) in args.chosen.replay.iter().zip(choice) {
        go_on(place)?;
        executed.push(again(token, &task(args, services, place.is_private)?, place).await?);
    }
    show(session, args, &executed, None)
}

async fn again(
    token: &ScheduleToken,
    task: &ExplorationTask,
    place: ExplorationPlace<'_>,
) -> Result<Exploration> {
    let task = ExplorationTask {
        workers: u8::try_from(token.workers.len())?,
        has_other_payload: token.has_other_payload,
        ..task.clone()
    };
    let mut server = task.connect(place).await?;
    let steps = task.retrace(token, &mut server).await?;
    // The keys are removed before an error of the token ends the command.
    server.clear().await?;
    let steps = steps.map_err(|why| CommandError::usage(format!("--replay {token}: {why}")))?;
    let replayed = task.replay(token, &steps, place).await?;
    Ok(task.exploration_of(token, &steps, &replayed))
}

fn task(args: &Args, services: &[Arc<Schema>], is_private: bool) -> Result<ExplorationTask> {
    let mut schemas = Vec::with_capacity(services.len());
    for schema in services {
        if is_private {
            schemas.push(Arc::clone(schema));
        } else {
            // If idemctl is killed, its keys on a named server expire within minutes.
            schemas.push(Arc::new(schema.living_at_most(TEST_KEYS_LIVE)));
        }
    }
    let program = ExplorationTask::program(schemas)
        .map_err(|why| CommandError::usage(format!("{}: {why}", services[0].name)))?;
    Ok(ExplorationTask {
        program,
        workers: args.workers,
        has_other_payload: args.payloads == 2,
        most: args.faults(services),
        assumptions: args.assume.iter().copied().collect(),
        limits: SearchLimits { max_states: usize::try_from(args.max_states)?, forgets: false },
    })
}

/// Refuses a run that cannot show that nothing is worse than what was accepted.
fn refuse_smaller_bounds(
    args: &Args,
    choice: &ExploredPrograms,
    accepted: &AcceptedFrontiers,
) -> Result<()> {
    for services in choice {
        let bounds = ExplorationBounds {
            workers: args.workers,
            payloads: args.payloads,
            faults: args.faults(services),
            assumptions: args.assume.iter().copied().collect(),
            has_causes: args.explores_twice(),
        };
        let names: Vec<_> = services.iter().map(|schema| schema.name.as_str()).collect();
        let name = names.join(" beside ");
        if let Some(why) = accepted.smaller_than_accepted(&name, bounds) {
            return Err(CommandError::usage(format!("--expect: {name} was accepted {why}"))
                .hint("explore with at least the accepted bounds, or write the file again")
                .into());
        }
    }
    Ok(())
}
