//! One complete exploration: the search, and the schedule of each violation, which workers execute.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::culprit::{is_fenced, root};
use super::test_server::TestServer;
use super::workers::{Workers, unreadable_response};
use crate::domain::exploration::{
    AbstractState, Act, Assumptions, Exploration, FaultBudget, Invariant, PastSchedule, RecordPast,
    ReplayedSchedule, ScheduleToken, SearchCoverage, StepCoverage, Violation, WorkerProgram,
    invariants, leading_to,
};
use crate::domain::record::Record;
use crate::domain::record::age::millis;
use crate::domain::schema::Schema;
use crate::domain::self_check::short_results;
use crate::explore::{
    ExploredProgram, FoundViolation, Rules, SearchLimits, Symmetry, TracedStep, UnknownReply,
    explore, retrace,
};
use crate::interrupt::Interrupt;
use crate::sim::simulate::{Aborted, LocalServers, Player, Replayed, replay};
use crate::store::{Connection, Sandbox, SandboxError, StoreError, Writable};

/// What is explored, and the limits of the search.
#[derive(Debug, Clone)]
pub(crate) struct ExplorationTask {
    /// The schema whose service is explored, or two schemas that share Redis keys.
    pub(crate) program: Rc<WorkerProgram>,
    /// The number of workers.
    pub(crate) workers: u8,
    /// True if the last worker requests another operation with the same key.
    pub(crate) has_other_payload: bool,
    /// The largest number of each fault.
    pub(crate) most: FaultBudget,
    pub(crate) assumptions: Assumptions,
    pub(crate) limits: SearchLimits,
}

/// The server and the key with which it is explored.
#[derive(Clone, Copy)]
pub(crate) struct ExplorationPlace<'a> {
    pub(crate) target: &'a Writable,
    pub(crate) key: &'a [u8],
    /// True on a temporary local Redis.
    pub(crate) is_private: bool,
    pub(crate) interrupt: &'a Interrupt,
}

impl ExplorationTask {
    /// The program of the workers of these services.
    ///
    /// # Errors
    /// The services cannot be explored together; the error is a message.
    pub(crate) fn program(services: Vec<Arc<Schema>>) -> Result<Rc<WorkerProgram>, String> {
        WorkerProgram::new(services).map(Rc::new)
    }

    /// Explores without assumptions and with all of them, so that each violation has a cause.
    ///
    /// # Errors
    /// An error of the server.
    pub(crate) async fn run_with_causes(
        &self,
        is_strict: bool,
        place: ExplorationPlace<'_>,
    ) -> Result<Exploration, StoreError> {
        let free = Self { assumptions: Assumptions::default(), ..self.clone() };
        let assumed = Self { assumptions: Assumptions::ALL, ..self.clone() };
        let free = free.run(place).await?;
        let assumed = assumed.run(place).await?;
        Ok(free.with_causes(assumed, is_strict))
    }

    /// Explores, and lets workers execute the schedule of each violation.
    ///
    /// # Errors
    /// An error of the server.
    pub(crate) async fn run(&self, place: ExplorationPlace<'_>) -> Result<Exploration, StoreError> {
        let since = Instant::now();
        // One connection for everything: no two calls of an exploration may run at the same time.
        let mut server = self.connect(place).await?;
        let explored = self.explore(&mut server).await?;
        let mut violations = Vec::new();
        for found in &explored.found {
            let mut violation = self.execute_violation(found, &mut server, place).await?;
            violation.is_minimal = explored.covered.complete;
            violations.push(violation);
        }
        let mut unsteady = None;
        if let Some(call) = explored.unsteady {
            let why = server.unsteady_because(place.is_private).await?;
            unsteady = Some(format!("{}, {why}", self.describe_unsteady(call)));
        }
        server.clear().await?;
        let reached: Vec<_> = explored.reached.iter().map(|state| &state.keys).collect();
        let steps = StepCoverage::new(
            &self.program,
            &explored.met,
            &reached,
            explored.goals,
            explored.covered.complete,
        );
        let mut not_asked = self.not_asked();
        // A violation is proved by another reply, and nothing is proved by its absence.
        if explored.met.iter().any(|met| met.has_untold_replay)
            && self.program.invariants.contains(&&invariants::TRUE_REPLAY)
        {
            not_asked.push(invariants::TRUE_REPLAY.name);
        }
        Ok(Exploration {
            most: self.most,
            assumptions: self.assumptions,
            short_results: self.program.services.iter().find_map(|schema| short_results(schema)),
            not_asked,
            steps: Some(steps),
            wall_ms: millis(since.elapsed()),
            unsteady,
            ..self.exploration(violations, explored.covered)
        })
    }

    /// Connects to the server on which calls are executed.
    ///
    /// # Errors
    /// An error of the server.
    pub(crate) async fn connect<'a>(
        &self,
        place: ExplorationPlace<'a>,
    ) -> Result<TestServer<'a>, StoreError> {
        let workers = Workers::new(
            Rc::clone(&self.program),
            self.workers,
            place.key.to_vec(),
            self.has_other_payload,
        );
        Ok(TestServer::new(workers, Connection::connect(place.target).await?, place.interrupt))
    }

    async fn explore(&self, server: &mut TestServer<'_>) -> Result<ExploredProgram, StoreError> {
        let callers = server.workers.callers();
        explore(self.rules(), callers, self.limits, server).await
    }

    fn rules(&self) -> Rules {
        Rules {
            program: Rc::clone(&self.program),
            workers: self.workers,
            most: self.most,
            assumptions: self.assumptions,
            symmetry: Symmetry::Full,
            has_other_payload: self.has_other_payload,
        }
    }

    async fn execute_violation(
        &self,
        found: &FoundViolation,
        server: &mut TestServer<'_>,
        place: ExplorationPlace<'_>,
    ) -> Result<Violation, StoreError> {
        let token = self.token(&found.beginning, &found.acts);
        let (steps, replayed) = match self.retrace(&token, server).await? {
            Ok(steps) => {
                let replayed = self.replay(&token, &steps, place).await?;
                (steps, replayed)
            }
            Err(why) => (Vec::new(), Replayed { lines: Vec::new(), deviates: Some(why) }),
        };
        Ok(self.violation(found.invariant, found.faults, &token, &steps, &replayed))
    }

    fn violation(
        &self,
        invariant: &'static Invariant,
        faults: FaultBudget,
        token: &ScheduleToken,
        steps: &[TracedStep],
        replayed: &Replayed,
    ) -> Violation {
        Violation {
            invariant,
            faults,
            is_minimal: false,
            cause: None,
            is_fenced: is_fenced(&self.program, steps, invariant),
            counts: true,
            remedy: root(steps, invariant).remedy,
            lines: replayed.lines.clone(),
            token: token.clone(),
            deviates: replayed.deviates.clone(),
        }
    }

    fn token(&self, beginning: &[u8], acts: &[Act]) -> ScheduleToken {
        let mut workers = Vec::new();
        for start in beginning {
            let service = self.program.starts.iter().position(|known| known == start).unwrap_or(0);
            workers.push(self.program.services[service].name.clone());
        }
        ScheduleToken { workers, has_other_payload: self.has_other_payload, acts: acts.to_vec() }
    }

    /// The indexes of the services of a token's workers.
    fn services(&self, token: &ScheduleToken) -> Vec<usize> {
        let mut services = Vec::new();
        for name in &token.workers {
            let known = &self.program.services;
            services.push(known.iter().position(|schema| schema.name == *name).unwrap_or(0));
        }
        services
    }

    /// Repeats a token's schedule in the exploration. The inner error is a message if the schedule
    /// is impossible.
    ///
    /// # Errors
    /// An error of the server.
    pub(crate) async fn retrace(
        &self,
        token: &ScheduleToken,
        server: &mut TestServer<'_>,
    ) -> Result<Result<Vec<TracedStep>, String>, StoreError> {
        let mut beginning = Vec::new();
        for service in self.services(token) {
            beginning.push(self.program.starts[service]);
        }
        // A schedule from the operator may contain any fault, in any order of workers.
        let rules = Rules {
            most: FaultBudget::ANY,
            assumptions: Assumptions::default(),
            symmetry: Symmetry::Unused,
            ..self.rules()
        };
        let callers = server.workers.callers();
        retrace(&rules, callers, &beginning, &token.acts, server).await
    }

    /// Lets workers execute a schedule.
    ///
    /// # Errors
    /// An error of the server.
    pub(crate) async fn replay(
        &self,
        token: &ScheduleToken,
        steps: &[TracedStep],
        place: ExplorationPlace<'_>,
    ) -> Result<Replayed, StoreError> {
        let player = Player::new(&self.program, place.key, place.target, place.is_private).await?;
        let services = self.services(token);
        let why = match replay(player, &services, token.has_other_payload, steps).await {
            Ok(replayed) => return Ok(replayed),
            Err(Aborted::Store(error)) => return Err(error),
            Err(Aborted::NotApplicable(why)) => why,
            Err(Aborted::Late) => "it took too long".to_owned(),
        };
        Ok(Replayed { lines: Vec::new(), deviates: Some(why) })
    }

    /// A replayed schedule as an exploration of that schedule alone, with its violations.
    pub(crate) fn exploration_of(
        &self,
        token: &ScheduleToken,
        steps: &[TracedStep],
        replayed: &Replayed,
    ) -> Exploration {
        let mut faults = FaultBudget::default();
        let mut calls = 0;
        for step in steps {
            if let Some(fault) = step.act.fault() {
                // A token may contain more faults than a count can hold. The count then keeps its
                // maximum.
                faults = faults.with(fault, FaultBudget::ANY).unwrap_or(faults);
            }
            if step.reply.is_some() {
                calls += 1;
            }
        }
        let mut violations = Vec::new();
        for step in steps {
            for invariant in &step.violated {
                violations.push(self.violation(invariant, faults, token, steps, replayed));
            }
        }
        let covered = SearchCoverage {
            complete: true,
            states: steps.len() + 1,
            transitions: steps.len(),
            schedules: Some(1.0),
            depth: steps.len(),
            server_calls: calls,
            bytes_a_state: 0,
            search_us: 0,
        };
        Exploration {
            most: faults,
            replay: Some(ReplayedSchedule {
                lines: replayed.lines.clone(),
                token: token.clone(),
                deviates: replayed.deviates.clone(),
            }),
            ..self.exploration(violations, covered)
        }
    }

    /// An exploration of these services without any fault.
    fn exploration(&self, violations: Vec<Violation>, covered: SearchCoverage) -> Exploration {
        let services = &self.program.services;
        Exploration {
            schemas: services.iter().map(|schema| schema.name.clone()).collect(),
            hashes: services.iter().map(|schema| schema.files_hash.clone()).collect(),
            workers: self.workers,
            has_other_payload: self.has_other_payload,
            most: FaultBudget::default(),
            assumptions: Assumptions::default(),
            assumed: None,
            violations,
            short_results: None,
            invariants: self.program.invariants.clone(),
            not_asked: self.not_asked(),
            covered,
            steps: None,
            wall_ms: 0,
            replay: None,
            unsteady: None,
        }
    }

    fn not_asked(&self) -> Vec<&'static str> {
        let services = &self.program.services;
        // With another payload, the operator asks for it although the schema does not compare them.
        let is_asked = self.has_other_payload
            || services.iter().any(|schema| schema.tells_payloads_apart())
            || !self.program.invariants.contains(&&invariants::PAYLOADS_APART);
        if is_asked { Vec::new() } else { vec![invariants::PAYLOADS_APART.name] }
    }

    fn describe_unsteady(&self, unsteady: UnknownReply) -> String {
        let call = self.program.calls[usize::from(unsteady.call)];
        let schema = &self.program.services[call.service].name;
        let step = call.step.as_str();
        format!(
            "call {} of {step} of {schema} has different effects in the same state",
            call.index + 1
        )
    }
}

/// Why a schema cannot be explored; `None` if it can.
pub(crate) fn unexplorable_because(schema: &Schema) -> Option<String> {
    schema.unexplorable_because().or_else(|| unreadable_response(schema))
}

/// Two workers reach any state of one record's Redis keys, with at most one of each fault that
/// changes these keys.
const WORKERS: u8 = 2;

/// The faults that leave traces in the Redis keys.
const TRACING_FAULTS: &str = "expiry=1,delay=0,crash=1,lost=1,fail=1,persist=1";

/// More states than two workers of any schema reach.
const MAX_STATES: usize = 1_000_000;

/// Why idemctl cannot explain how a record came about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotExplained {
    #[error(transparent)]
    NoServer(#[from] SandboxError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Schema(String),
}

/// Explains how a record can have come about. It searches for the record's state among the states
/// that its schema's workers reach on a temporary local Redis.
///
/// # Errors
/// The local server cannot be started, or it fails, or the schema cannot be explored.
pub(crate) async fn explain(
    record: &Record,
    servers: &LocalServers,
    interrupt: &Interrupt,
) -> Result<RecordPast, NotExplained> {
    let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
    let target = sandbox.first_database(&servers.like);
    let program =
        ExplorationTask::program(vec![Arc::clone(&record.schema)]).map_err(NotExplained::Schema)?;
    let most = TRACING_FAULTS.parse().unwrap_or(FaultBudget::USUAL);
    // The search distinguishes values only by their formats.
    if record.deviation().is_some() {
        return Ok(RecordPast { workers: WORKERS, most, schedules: Vec::new() });
    }
    let limits = SearchLimits { max_states: MAX_STATES, forgets: false };
    let task = ExplorationTask {
        program,
        workers: WORKERS,
        has_other_payload: false,
        most,
        assumptions: Assumptions::default(),
        limits,
    };
    let place = ExplorationPlace { target: &target, key: &record.key, is_private: true, interrupt };
    let mut server = task.connect(place).await?;
    let explored = task.explore(&mut server).await?;
    // An unsteady call invalidates every conclusion of the search.
    if let Some(unsteady) = explored.unsteady {
        return Err(NotExplained::Schema(task.describe_unsteady(unsteady)));
    }
    let wanted = AbstractState::from_observation(&record.schema, &record.seen);
    let expired: Vec<_> =
        record.readings.iter().map(|reading| reading.past_expiry().is_some()).collect();
    let mut schedules = Vec::new();
    for reached in leading_to(&record.schema, &explored.reached, &wanted, &expired) {
        let token = task.token(&reached.beginning, &reached.acts);
        let steps = task.retrace(&token, &mut server).await?.map_err(NotExplained::Schema)?;
        let lines = task.replay(&token, &steps, place).await?.lines;
        schedules.push(PastSchedule {
            holder_lives: reached.holder_lives,
            faults: reached.faults,
            token,
            lines,
        });
    }
    Ok(RecordPast { most, workers: WORKERS, schedules })
}
