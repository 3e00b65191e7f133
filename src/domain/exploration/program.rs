//! What a worker does: the points at which it can stand, from its schema's steps.

use std::sync::Arc;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::schema::{Call, Meaning, OnFailure, Schema, Step};

/// The most workers that are explored.
pub const MOST_WORKERS: usize = 6;

/// The most points at which workers can stand.
const MOST_POINTS: usize = 250;

/// The point of a worker that has nothing more to do, or is gone.
pub const ENDED: u8 = 0;

/// Which part of its work a worker's call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Stage {
    Begin,
    Renew,
    Complete,
    /// The handler failed, and the lock is released.
    Release,
    /// The handler failed, and the failure is stored.
    StoreFailure,
}

as_str!(Stage);

/// One call of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asks {
    pub service: usize,
    pub stage: Stage,
    /// Which of the step's calls.
    pub index: usize,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Nothing,
    /// It sends the call with this number. When the reply means what `decides`, it goes on at `then`, when the next call
    /// decides at `next`, else it has ended.
    Call {
        ask: u8,
        decides: Meaning,
        then: u8,
        next: u8,
    },
    Effect {
        then: u8,
    },
}

/// Where a worker can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub does: Does,
    /// The worker has not begun.
    pub waits: bool,
    /// The worker stands between the last check of its lock and its stored result.
    pub in_section: bool,
    /// Where the worker goes on when its handler fails here.
    pub fails_to: Option<u8>,
    /// The worker's effect has come about.
    pub has_worked: bool,
}

/// What workers of one or two services do.
#[derive(Debug, Clone)]
pub struct Program {
    pub services: Vec<Arc<Schema>>,
    pub points: Vec<Point>,
    /// Every call of every service.
    pub asks: Vec<Asks>,
    /// Where a worker of each service begins.
    pub starts: Vec<u8>,
}

impl Program {
    /// # Errors
    /// The steps have more calls than a worker's point can tell.
    pub fn new(services: Vec<Arc<Schema>>) -> Result<Self, String> {
        if let Some(why) = services.iter().find_map(|schema| schema.unexplorable_because()) {
            return Err(format!("nothing tells what the service does: {why}"));
        }
        let ended = Point { does: Does::Nothing, waits: false, in_section: false, fails_to: None, has_worked: false };
        let mut program = Self { services, points: vec![ended], asks: Vec::new(), starts: Vec::new() };
        for service in 0..program.services.len() {
            let start = program.add(service);
            program.starts.push(start);
        }
        if program.points.len() > MOST_POINTS {
            return Err(format!("its steps make more than {MOST_POINTS} calls, which are too many to explore"));
        }
        Ok(program)
    }

    /// Adds a service's points, the last ones first, for each names where it leads to.
    fn add(&mut self, service: usize) -> u8 {
        let schema = Arc::clone(&self.services[service]);
        let completes = Part { in_section: true, has_worked: true, ..Part::of(service, Stage::Complete) };
        let complete = self.calls(schema.complete_calls(), Meaning::Stored, ENDED, completes);
        let fails_to = Some(match (schema.on_failure(), &schema.release) {
            (OnFailure::Store, _) => {
                self.calls(schema.complete_calls(), Meaning::Stored, ENDED, Part::of(service, Stage::StoreFailure))
            }
            (OnFailure::Release, Some(release)) => {
                self.calls(&release.calls, Meaning::Released, ENDED, Part::of(service, Stage::Release))
            }
            _ => ENDED,
        });
        let works = Point {
            does: Does::Effect { then: complete },
            waits: false,
            in_section: true,
            fails_to,
            has_worked: false,
        };
        let effect = self.point(works);
        let holds = match &schema.renew {
            Some(renew) => {
                self.calls(&renew.calls, Meaning::Renewed, effect, Part { fails_to, ..Part::of(service, Stage::Renew) })
            }
            None => effect,
        };
        let begins = Part { waits: true, ..Part::of(service, Stage::Begin) };
        self.calls(schema.begin_calls(), Meaning::Acquired, holds, begins)
    }

    /// Adds the points before each of a step's calls; the first of them.
    fn calls(&mut self, calls: &[Call], decides: Meaning, then: u8, part: Part) -> u8 {
        let mut next = ENDED;
        for index in (0..calls.len()).rev() {
            let ask = small(self.asks.len());
            self.asks.push(Asks { service: part.service, stage: part.stage, index });
            next = self.point(Point {
                does: Does::Call { ask, decides, then, next },
                waits: part.waits && index == 0,
                in_section: part.in_section,
                fails_to: part.fails_to.filter(|_| index == 0),
                has_worked: part.has_worked,
            });
        }
        next
    }

    fn point(&mut self, point: Point) -> u8 {
        self.points.push(point);
        small(self.points.len() - 1)
    }

    pub fn step(&self, asks: Asks) -> Option<&Step> {
        let schema = &self.services[asks.service];
        match asks.stage {
            Stage::Begin => schema.begin.as_ref(),
            Stage::Renew => schema.renew.as_ref(),
            Stage::Complete | Stage::StoreFailure => schema.complete.as_ref(),
            Stage::Release => schema.release.as_ref(),
        }
    }

    /// Where a worker goes on from a call, by what the reply means.
    pub fn leads_to(does: Does, means: Option<Meaning>) -> u8 {
        match does {
            Does::Call { decides, then, .. } if means == Some(decides) => then,
            Does::Call { next, .. } if means == Some(Meaning::Next) => next,
            _ => ENDED,
        }
    }
}

/// What the points of one step have in common.
#[derive(Clone, Copy)]
struct Part {
    service: usize,
    stage: Stage,
    waits: bool,
    in_section: bool,
    fails_to: Option<u8>,
    has_worked: bool,
}

impl Part {
    fn of(service: usize, stage: Stage) -> Self {
        Self { service, stage, waits: false, in_section: false, fails_to: None, has_worked: false }
    }
}

/// A point's or a call's number; what does not fit is refused by [`Program::new`].
fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
