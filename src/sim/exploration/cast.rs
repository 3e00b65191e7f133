//! Who sends calls: the workers, and the requests that come after them.

use std::rc::Rc;

use super::freeze;
use crate::domain::exploration::{Author, Program, Stage as Part};
use crate::domain::schema::{Action, Schema};
use crate::sim::simulate::{Job, OTHER_PAYMENT, Operation, PAYMENT};

/// The exploration's time in the beginning, in milliseconds since the epoch.
const BEGINNING_MS: u64 = 1_700_000_000_000;

pub(crate) struct Cast {
    pub(crate) program: Rc<Program>,
    pub(crate) workers: u8,
    pub(crate) key: Vec<u8>,
    /// True when scripts ask for the time, or clients go by it.
    pub(crate) ticks: bool,
}

impl Cast {
    pub(crate) fn new(program: Rc<Program>, workers: u8, key: Vec<u8>) -> Self {
        let ticks = program.services.iter().any(|schema| freeze::sees_time(schema) || schema.lapses());
        Self { program, workers, key, ticks }
    }

    /// A worker's name.
    pub(crate) fn name(worker: u8) -> String {
        format!("worker {}", worker + 1)
    }

    fn owner(caller: u8) -> String {
        format!("00000000-0000-4000-8000-{:012}", caller + 1)
    }

    /// The exploration's time, so many milliseconds after the beginning.
    pub(super) fn now_ms(clock_ms: u64) -> u64 {
        BEGINNING_MS + clock_ms
    }

    /// The hash of a caller's payload.
    pub(super) fn fingerprint(&self, caller: u8) -> &'static str {
        self.operation(caller).fingerprint
    }

    fn operation(&self, caller: u8) -> Operation {
        if caller == self.workers + 1 { OTHER_PAYMENT } else { PAYMENT }
    }

    fn job(&self, schema: &Schema, caller: u8) -> Job {
        let operation = self.operation(caller);
        let seconds = schema.lock_ttl.as_millis().div_ceil(1_000).to_string();
        Job::new(&Self::owner(caller), operation, seconds)
    }

    /// The responses that workers give, by every service.
    pub(crate) fn responses(&self) -> Vec<(Vec<u8>, Author)> {
        let mut responses = Vec::new();
        for schema in &self.program.services {
            for worker in 0..self.workers {
                let (mut done, mut failed) = (self.job(schema, worker), self.job(schema, worker));
                done.makes(&Self::name(worker));
                failed.fails();
                let response = |job: &Job| job.request(schema, &self.key, BEGINNING_MS).replayed();
                responses.push((response(&done), Author::Effect(worker)));
                responses.push((response(&failed), Author::Failure(worker)));
            }
        }
        responses
    }

    /// The words of a call, so many milliseconds after the beginning.
    pub(super) fn words(&self, caller: u8, ask: u8, clock_ms: u64) -> Vec<Vec<u8>> {
        let asks = self.program.asks[usize::from(ask)];
        let schema = &self.program.services[asks.service];
        let mut job = self.job(schema, caller);
        match asks.stage {
            Part::Begin | Part::Renew => {}
            Part::Complete => job.makes(&Self::name(caller)),
            Part::Release | Part::StoreFailure => job.fails(),
        }
        let Some(call) = self.program.step(asks).and_then(|step| step.calls.get(asks.index)) else {
            return Vec::new();
        };
        let now_ms = Self::now_ms(clock_ms);
        let mut words = job.request(schema, &self.key, now_ms).words(call);
        if let (Action::Script { .. }, true) = (&call.action, self.ticks) {
            words[1] = freeze::at(&String::from_utf8_lossy(&words[1]), now_ms).into_bytes();
        }
        words
    }
}
