//! The program of a worker: its positions, derived from its schema's steps.

use std::sync::Arc;

use crate::domain::schema::{Call, Meaning, Schema, Step};
use crate::domain::step::{StepKind, WorkerSteps};

/// The most workers of an exploration. The state of the search has one byte for each, and sets of
/// workers have one bit for each in a byte.
pub const MAX_WORKERS: usize = 8;

/// The most positions of all workers' programs, because a state holds each position in one byte.
const MAX_POSITIONS: usize = 250;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAction {
    Nothing,
    /// The worker sends the call with this number. It continues at `then` if the reply means
    /// `wanted`, and at `next` if the next call decides. Otherwise it has ended.
    Call {
        number: u8,
        wanted: Meaning,
        then: u8,
        next: u8,
    },
    /// The worker has its effect, and continues at `then`.
    Effect {
        then: u8,
    },
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

/// A position of a worker in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        let ended = Position {
            action: NextAction::Nothing,
            is_waiting: false,
            is_optional: false,
            in_critical_section: false,
            fails_to: None,
            late_fails_to: None,
            gives_up_to: None,
            resends_at: None,
            has_worked: false,
        };
        let mut program =
            Self { services, positions: vec![ended], calls: Vec::new(), starts: Vec::new() };
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
        let steps = WorkerSteps::of(&schema);
        let released = schema.release.as_ref().map(|_| {
            let part = StepPart::new(service, StepKind::Release);
            self.add_step(ENDED, part)
        });
        let fails_to = Some(match steps.after_failure() {
            Some(StepKind::Release) => released.unwrap_or(ENDED),
            Some(kind) => self.add_step(ENDED, StepPart::new(service, kind)),
            None => ENDED,
        });
        let complete_part = StepPart {
            // The service cannot know whether a handler failed before or after its effect.
            late_fails_to: fails_to,
            protected_from: 0,
            has_worked: true,
            ..StepPart::new(service, StepKind::Complete)
        };
        // Such a release is safe by its own claim, so the service may call it in any case.
        let completed = match &schema.release {
            Some(release) if release.checks_owner => {
                let part = StepPart::new(service, StepKind::Release);
                self.add_step(ENDED, StepPart { is_optional: true, has_worked: true, ..part })
            }
            _ => ENDED,
        };
        let complete = self.add_step(completed, complete_part);
        // A described release is called in any case, so that its mistakes are found.
        let gives_up_to = steps.after_giving_up().and(released);
        let effect = self.add_position(Position {
            action: NextAction::Effect { then: complete },
            is_waiting: false,
            is_optional: false,
            in_critical_section: true,
            fails_to,
            late_fails_to: None,
            gives_up_to,
            resends_at: None,
            has_worked: false,
        });
        // A renewal that fails because the lock is gone ends the worker before its effect.
        let begin_calls = schema.begin_calls();
        // Without any call that touches the lock's key, the end of begin is the last check.
        let mut begin_is_protected_from =
            after_last_check(&schema, begin_calls).unwrap_or(begin_calls.len());
        let acquired = match steps.before_effect() {
            Some(kind) => {
                let renew_is_protected_from = after_last_check(&schema, kind.calls(&schema));
                if renew_is_protected_from.is_some() {
                    begin_is_protected_from = begin_calls.len();
                }
                let part = StepPart {
                    fails_to,
                    gives_up_to,
                    protected_from: renew_is_protected_from.unwrap_or(0),
                    ..StepPart::new(service, kind)
                };
                self.add_step(effect, part)
            }
            None => effect,
        };
        let begin_part = StepPart {
            is_waiting: true,
            protected_from: begin_is_protected_from,
            ..StepPart::new(service, StepKind::Begin)
        };
        self.add_step(acquired, begin_part)
    }

    /// Adds the positions before each of a step's calls, and returns the first of them. After the
    /// step, the worker continues at `then`.
    fn add_step(&mut self, then: u8, part: StepPart) -> u8 {
        let calls = part.step.calls(&self.services[part.service]).len();
        let wanted = part.step.wanted();
        let mut next = ENDED;
        for index in (0..calls).rev() {
            let number = number_of(self.calls.len());
            self.calls.push(ProgramCall { service: part.service, step: part.step, index });
            let is_first = index == 0;
            let action = NextAction::Call { number, wanted, then, next };
            let in_critical_section = index >= part.protected_from;
            // While the library sends a call again, the worker has begun, and its handler waits.
            let resends_at = number_of(self.positions.len());
            self.add_position(Position {
                action,
                is_waiting: false,
                is_optional: false,
                // A reply that is lost after the result was stored is lost after the section.
                in_critical_section: in_critical_section && part.step != StepKind::Complete,
                fails_to: None,
                late_fails_to: None,
                gives_up_to: None,
                resends_at: Some(resends_at),
                has_worked: part.has_worked,
            });
            next = self.add_position(Position {
                action,
                // After the first call of begin the worker has begun, so it can crash.
                is_waiting: part.is_waiting && is_first,
                is_optional: part.is_optional && is_first,
                in_critical_section,
                // A handler runs between steps, so it cannot fail between two calls of one step.
                fails_to: if is_first { part.fails_to } else { None },
                late_fails_to: if is_first { part.late_fails_to } else { None },
                gives_up_to: if is_first { part.gives_up_to } else { None },
                resends_at: Some(resends_at),
                has_worked: part.has_worked,
            });
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

/// The properties that the positions of one step share.
#[derive(Clone, Copy)]
struct StepPart {
    service: usize,
    step: StepKind,
    is_waiting: bool,
    is_optional: bool,
    /// The first call of the step that is in the critical section.
    protected_from: usize,
    fails_to: Option<u8>,
    late_fails_to: Option<u8>,
    gives_up_to: Option<u8>,
    has_worked: bool,
}

impl StepPart {
    fn new(service: usize, step: StepKind) -> Self {
        Self {
            service,
            step,
            is_waiting: false,
            is_optional: false,
            protected_from: usize::MAX,
            fails_to: None,
            late_fails_to: None,
            gives_up_to: None,
            has_worked: false,
        }
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
