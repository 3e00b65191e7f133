//! What a worker does: the positions in its program, from its schema's steps.

use std::sync::Arc;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::schema::{Call, Meaning, OnFailure, Schema, Step};

/// The most workers that are explored.
pub const MOST_WORKERS: usize = 6;

/// The most positions of workers: a state holds each in a byte.
const MOST_POSITIONS: usize = 250;

/// The position of a worker that has nothing more to do, or is gone.
pub const ENDED: u8 = 0;

/// The step of its work that a worker's call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum StepKind {
    Begin,
    Renew,
    Complete,
    /// The handler failed, and the lock is released.
    Release,
    /// The handler failed, and the failure is stored.
    StoreFailure,
}

as_str!(StepKind);

/// One call of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramCall {
    pub service: usize,
    pub step: StepKind,
    /// Which of the step's calls, from 0.
    pub index: usize,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAction {
    Nothing,
    /// It sends the call with this number. If the reply means what is `wanted`, it continues at `then`, if the next call
    /// decides at `next`, else it has ended.
    Call {
        number: u8,
        wanted: Meaning,
        then: u8,
        next: u8,
    },
    Effect {
        then: u8,
    },
}

impl NextAction {
    /// The position at which a worker continues after a call, by what the reply means.
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
    /// The worker has not begun.
    pub is_waiting: bool,
    /// The worker is between the last check of its lock and its stored result.
    pub in_critical_section: bool,
    /// The position at which the worker continues if its handler fails here.
    pub fails_to: Option<u8>,
    /// The worker has had its effect.
    pub has_worked: bool,
}

impl Position {
    /// True for a worker that has begun and not ended.
    pub(crate) fn is_at_work(self) -> bool {
        !self.is_waiting && self.action != NextAction::Nothing
    }
}

/// What workers of one or two services do.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    pub services: Vec<Arc<Schema>>,
    pub positions: Vec<Position>,
    /// Every call of every service.
    pub calls: Vec<ProgramCall>,
    /// The position at which a worker of each service begins.
    pub starts: Vec<u8>,
}

impl WorkerProgram {
    /// # Errors
    /// The schema does not say what the service does, or its steps have too many calls.
    pub fn new(services: Vec<Arc<Schema>>) -> Result<Self, String> {
        if let Some(why) = services.iter().find_map(|schema| schema.unexplorable_because()) {
            return Err(format!("nothing tells what the service does: {why}"));
        }
        let ended = Position {
            action: NextAction::Nothing,
            is_waiting: false,
            in_critical_section: false,
            fails_to: None,
            has_worked: false,
        };
        let mut program =
            Self { services, positions: vec![ended], calls: Vec::new(), starts: Vec::new() };
        for service in 0..program.services.len() {
            let start = program.add_service(service);
            program.starts.push(start);
        }
        if program.positions.len() > MOST_POSITIONS {
            return Err(format!(
                "its steps make more than {MOST_POSITIONS} calls, which are too many to explore"
            ));
        }
        Ok(program)
    }

    /// Adds a service's positions, and returns the first. The last ones are added first, because each position names the one
    /// it leads to.
    fn add_service(&mut self, service: usize) -> u8 {
        let schema = Arc::clone(&self.services[service]);
        let complete_part = StepPart {
            in_critical_section: true,
            has_worked: true,
            ..StepPart::new(service, StepKind::Complete)
        };
        let complete =
            self.add_calls(schema.complete_calls(), Meaning::Stored, ENDED, complete_part);
        let fails_to = Some(match (schema.on_failure(), &schema.release) {
            (OnFailure::Store, _) => {
                let part = StepPart::new(service, StepKind::StoreFailure);
                self.add_calls(schema.complete_calls(), Meaning::Stored, ENDED, part)
            }
            (OnFailure::Release, Some(release)) => {
                let part = StepPart::new(service, StepKind::Release);
                self.add_calls(&release.calls, Meaning::Released, ENDED, part)
            }
            _ => ENDED,
        });
        let effect = self.add_position(Position {
            action: NextAction::Effect { then: complete },
            is_waiting: false,
            in_critical_section: true,
            fails_to,
            has_worked: false,
        });
        let acquired = match &schema.renew {
            Some(renew) => {
                let part = StepPart { fails_to, ..StepPart::new(service, StepKind::Renew) };
                self.add_calls(&renew.calls, Meaning::Renewed, effect, part)
            }
            None => effect,
        };
        let begin_part = StepPart { is_waiting: true, ..StepPart::new(service, StepKind::Begin) };
        self.add_calls(schema.begin_calls(), Meaning::Acquired, acquired, begin_part)
    }

    /// Adds the positions before each of a step's calls, and returns the first of them.
    fn add_calls(&mut self, calls: &[Call], wanted: Meaning, then: u8, part: StepPart) -> u8 {
        let mut next = ENDED;
        for index in (0..calls.len()).rev() {
            let number = number_of(self.calls.len());
            self.calls.push(ProgramCall { service: part.service, step: part.step, index });
            let is_first = index == 0;
            next = self.add_position(Position {
                action: NextAction::Call { number, wanted, then, next },
                is_waiting: part.is_waiting && is_first,
                in_critical_section: part.in_critical_section,
                fails_to: part.fails_to.filter(|_| is_first),
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
        let schema = &self.services[call.service];
        match call.step {
            StepKind::Begin => schema.begin.as_ref(),
            StepKind::Renew => schema.renew.as_ref(),
            StepKind::Complete | StepKind::StoreFailure => schema.complete.as_ref(),
            StepKind::Release => schema.release.as_ref(),
        }
    }
}

/// What the positions of one step have in common.
#[derive(Clone, Copy)]
struct StepPart {
    service: usize,
    step: StepKind,
    is_waiting: bool,
    in_critical_section: bool,
    fails_to: Option<u8>,
    has_worked: bool,
}

impl StepPart {
    fn new(service: usize, step: StepKind) -> Self {
        Self {
            service,
            step,
            is_waiting: false,
            in_critical_section: false,
            fails_to: None,
            has_worked: false,
        }
    }
}

/// A position's or a call's number; [`WorkerProgram::new`] refuses what does not fit.
fn number_of(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
