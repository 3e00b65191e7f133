//! The program of a worker: its positions, derived from its schema's steps.

use std::ops::Range;
use std::sync::Arc;

use super::invariants::{self, Invariant};
use crate::domain::schema::{Call, Meaning, OnFailure, Schema, Step};
use crate::domain::step::{StepKind, worker_steps};

/// The most workers of an exploration. The state of the search has one byte for each, and sets of
/// workers have one bit for each in a byte.
pub const MAX_WORKERS: usize = 8;

/// The most positions of all workers' programs, because a state holds each position in one byte.
const MAX_POSITIONS: usize = 250;

/// Every call of a step.
const ALL_CALLS: Range<usize> = 0..usize::MAX;

/// The position of a worker that has finished or crashed.
pub const ENDED: u8 = 0;

/// One call of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramCall {
    /// The index of the service.
    pub service: usize,
    pub step: StepKind,
    /// The index of the call in its step, from 0.
    pub index: usize,
}

/// The next action of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NextAction {
    #[default]
    Nothing,
    /// The worker sends the call with this number. It continues at `then` if the reply means
    /// `wanted`, and at `next` if the next call decides. Otherwise it has ended.
    Call { number: u8, wanted: Meaning, then: u8, next: u8 },
    /// The worker has its effect, and continues at `then`.
    Effect { then: u8 },
}

impl NextAction {
    /// The position at which a worker continues after a call, given the meaning of the reply.
    pub fn follow(self, meaning: Option<Meaning>) -> u8 {
        let Self::Call { wanted, then, next, .. } = self else { return ENDED };
        if meaning == Some(wanted) {
            then
        } else if meaning == Some(Meaning::Next) {
            next
        } else {
            ENDED
        }
    }
}

/// A position of a worker in its program. The default is that of a worker that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub action: NextAction,
    /// True if the worker has not begun.
    pub is_waiting: bool,
    /// True if the worker has completed, and may still release.
    pub is_optional: bool,
    /// True if the worker is between the last check of its lock and its stored result. The last
    /// check is the last call before the effect that touches the lock's Redis key.
    pub in_critical_section: bool,
    /// The position at which the worker continues if its handler fails here, before its effect.
    pub fails_to: Option<u8>,
    /// The position at which the worker continues if its handler fails here, after its effect.
    pub late_fails_to: Option<u8>,
    /// The position at which the worker continues if it gives up here; `None` if it cannot, or if a
    /// failing handler does the same.
    pub gives_up_to: Option<u8>,
    /// The position at which the worker is while its client library sends the same call again;
    /// `None` if its next action is not a call.
    pub resends_at: Option<u8>,
    /// True if the worker has had its effect.
    pub has_worked: bool,
    /// True if the worker is in the section that a lock without a result protects. It leaves with
    /// the first call of release.
    pub is_inside: bool,
}

impl Position {
    /// True if the worker has begun and has something left to do.
    pub(crate) fn is_at_work(self) -> bool {
        !self.is_waiting && !self.is_optional && self.action != NextAction::Nothing
    }
}

/// The programs of the workers of one or two services.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    pub services: Vec<Arc<Schema>>,
    /// Every position of every service; number 0 is `ENDED`.
    pub positions: Vec<Position>,
    /// Every call of every service.
    pub calls: Vec<ProgramCall>,
    /// The position at which a worker of each service begins.
    pub starts: Vec<u8>,
    /// What must hold in every schedule.
    pub invariants: Vec<&'static Invariant>,
    /// True if the services take a lock and store no result.
    pub is_lock_alone: bool,
}

impl WorkerProgram {
    /// Builds the programs of these services.
    ///
    /// # Errors
    /// A schema does not describe its service's behaviour, or its steps have too many calls.
    pub fn new(services: Vec<Arc<Schema>>) -> Result<Self, String> {
        for schema in &services {
            if let Some(why) = schema.unexplorable_because() {
                return Err(format!("the behaviour of the service is unknown: {why}"));
            }
        }
        let is_lock_alone = services[0].is_lock_alone();
        if services.iter().any(|schema| schema.is_lock_alone() != is_lock_alone) {
            return Err("one schema stores a result, and the other does not".to_owned());
        }
        let mut program = Self {
            invariants: invariants::of(&services),
            services,
            positions: vec![Position::default()],
            calls: Vec::new(),
            starts: Vec::new(),
            is_lock_alone,
        };
        for service in 0..program.services.len() {
            let start = program.add_service(service);
            program.starts.push(start);
        }
        if program.positions.len() > MAX_POSITIONS {
            return Err(format!(
                "its steps have more than {MAX_POSITIONS} positions, which are too many to explore"
            ));
        }
        Ok(program)
    }

    /// Adds a service's positions and returns the first one. The last position is added first,
    /// because each position names its successor.
    fn add_service(&mut self, service: usize) -> u8 {
        let schema = Arc::clone(&self.services[service]);
        if schema.is_lock_alone() || schema.claims_as_done() {
            return self.add_service_without_result(&schema, service);
        }
        let released = schema
            .release
            .as_ref()
            .map(|_| self.add_step(ENDED, service, StepKind::Release, 0..0, Position::default()));
        let fails_to = Some(match worker_steps::after_failure(&schema) {
            Some(StepKind::Release) => released.unwrap_or(ENDED),
            Some(kind) => self.add_step(ENDED, service, kind, 0..0, Position::default()),
            None => ENDED,
        });
        // Such a release is safe by its own claim, so the service may call it in any case.
        let completed = match &schema.release {
            Some(release) if release.checks_owner => {
                let first = Position { is_optional: true, has_worked: true, ..Position::default() };
                self.add_step(ENDED, service, StepKind::Release, 0..0, first)
            }
            _ => ENDED,
        };
        // The service cannot know whether a handler failed before or after its effect.
        let first = Position { late_fails_to: fails_to, has_worked: true, ..Position::default() };
        let complete = self.add_step(completed, service, StepKind::Complete, ALL_CALLS, first);
        // A described release is called in any case, so that its mistakes are found.
        let gives_up_to = worker_steps::after_giving_up(&schema).and(released);
        let effect = Position {
            action: NextAction::Effect { then: complete },
            in_critical_section: true,
            fails_to,
            gives_up_to,
            ..Position::default()
        };
        self.add_beginning(&schema, service, effect)
    }

    /// Adds the positions of a service that stores no result, and returns the first one. A worker
    /// of a lock releases it whether or not its handler fails; a claim is released only after a
    /// failure, if at all.
    fn add_service_without_result(&mut self, schema: &Schema, service: usize) -> u8 {
        let is_lock = schema.is_lock_alone();
        let mut released = ENDED;
        if schema.release.is_some() {
            let first = Position { is_inside: is_lock, ..Position::default() };
            let protected = if is_lock { 0..1 } else { 0..0 };
            released = self.add_step(ENDED, service, StepKind::Release, protected, first);
        }
        let fails_to = if schema.on_failure() == OnFailure::Release { released } else { ENDED };
        let effect = Position {
            action: NextAction::Effect { then: if is_lock { released } else { ENDED } },
            // A claim has no last check that a fault could follow.
            in_critical_section: is_lock,
            fails_to: if is_lock { None } else { Some(fails_to) },
            ..Position::default()
        };
        self.add_beginning(schema, service, effect)
    }

    /// Adds the position before the effect, and the steps that lead to it. Returns the first.
    fn add_beginning(&mut self, schema: &Schema, service: usize, effect: Position) -> u8 {
        let Position { fails_to, gives_up_to, .. } = effect;
        let effect = self.add_position(effect);
        // A renewal that fails because the lock is gone ends the worker before its effect.
        let begin_calls = schema.begin_calls();
        // Without any call that touches the lock's key, the end of begin is the last check.
        let mut begin_is_protected_from =
            after_last_check(schema, begin_calls).unwrap_or(begin_calls.len());
        let acquired = match worker_steps::before_effect(schema) {
            Some(kind) => {
                let renew_is_protected_from = after_last_check(schema, kind.calls(schema));
                if renew_is_protected_from.is_some() {
                    begin_is_protected_from = begin_calls.len();
                }
                let first = Position { fails_to, gives_up_to, ..Position::default() };
                let protected = renew_is_protected_from.unwrap_or(0)..usize::MAX;
                self.add_step(effect, service, kind, protected, first)
            }
            None => effect,
        };
        let first = Position { is_waiting: true, ..Position::default() };
        let protected = begin_is_protected_from..usize::MAX;
        self.add_step(acquired, service, StepKind::Begin, protected, first)
    }

    /// Adds the positions before each of a step's calls, and returns the first of them. After the
    /// step, the worker continues at `then`. `protected` are the calls of the step that are in the
    /// critical section, and `first` has the properties of the position before the first call.
    fn add_step(
        &mut self,
        then: u8,
        service: usize,
        step: StepKind,
        protected: Range<usize>,
        first: Position,
    ) -> u8 {
        let calls = step.calls(&self.services[service]).len();
        let wanted = step.wanted();
        let mut next = ENDED;
        for index in (0..calls).rev() {
            let number = number_of(self.calls.len());
            self.calls.push(ProgramCall { service, step, index });
            let action = NextAction::Call { number, wanted, then, next };
            let in_critical_section = protected.contains(&index);
            // While the library sends a call again, the worker has begun, and its handler waits.
            let resends_at = number_of(self.positions.len());
            let sent = Position {
                action,
                resends_at: Some(resends_at),
                has_worked: first.has_worked,
                ..Position::default()
            };
            self.add_position(Position {
                // A reply that is lost after the result was stored, or the lock was released, is
                // lost after the section.
                in_critical_section: in_critical_section
                    && !matches!(step, StepKind::Complete | StepKind::Release),
                ..sent
            });
            // After the first call of begin the worker has begun, so it can crash. A handler runs
            // between steps, so it cannot fail between two calls of one step.
            let here = if index == 0 {
                Position { action, resends_at: Some(resends_at), ..first }
            } else {
                sent
            };
            next = self.add_position(Position { in_critical_section, ..here });
        }
        next
    }

    fn add_position(&mut self, position: Position) -> u8 {
        self.positions.push(position);
        number_of(self.positions.len() - 1)
    }

    /// The step that a call belongs to.
    pub fn step(&self, call: ProgramCall) -> Option<&Step> {
        call.step.described_in(&self.services[call.service])
    }
}

/// The index after the last of a step's calls that touches the lock's Redis key; `None` if no call
/// does.
fn after_last_check(schema: &Schema, calls: &[Call]) -> Option<usize> {
    let last = calls.iter().rposition(|call| schema.touches_lock(call))?;
    Some(last + 1)
}

/// The number of a position or a call. [`WorkerProgram::new`] rejects programs with numbers that do
/// not fit.
fn number_of(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
