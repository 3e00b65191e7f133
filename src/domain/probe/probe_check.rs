//! A check: the steps that it needs, and how it judges what came back.

use std::time::Duration;

use strum::IntoStaticStr;

use super::message::{ProbeExchange, ProbeRequest};
use super::profile::ProfileClause;
use super::task::ProbeTask;
use crate::domain::as_str::as_str;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ProbeGroup {
    Header,
    Replay,
    Mismatch,
    Concurrency,
    Failures,
    /// What Redis holds meanwhile.
    Record,
    /// What the service does if its record is lost or replaced.
    Fault,
}

/// What `--faults` does to the record of a key of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// Removes the lock, as its expiry does.
    ExpireLock,
    /// Removes the stored result, as its expiry does.
    ExpireResult,
    /// Replaces the stored result by a value that is not of the schema.
    ReplaceResult,
}

/// What a check found, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ProbeVerdict {
    Fail,
    /// The check was made, and its result proves nothing.
    Inconclusive,
    /// The check cannot be made with this request or these options.
    NotApplicable,
    /// The profile leaves open what a service does, so that it is only reported.
    Reported,
    Pass,
}

as_str!(ProbeGroup, ProbeVerdict);

/// The options without which a check is not applicable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeNeed {
    Nothing,
    /// The number of effects.
    Effects,
    /// The records in Redis.
    Records,
    /// Changes of the records.
    Faults,
}

/// One check of `probe`. `docs/probe.md` describes each; a test compares them.
pub(crate) struct ProbeCheck {
    /// The stable name.
    pub(crate) id: &'static str,
    pub(crate) group: ProbeGroup,
    /// What holds if the check passes.
    pub(crate) title: &'static str,
    pub(super) needs: ProbeNeed,
    /// The steps whose last exchanges show what the check found. A single step shows its first two.
    pub(super) shown: &'static [usize],
    pub(super) steps: fn(&ProbeTask) -> Steps,
    pub(super) judge: fn(&MadeSteps<'_>) -> Judged,
}

/// A check that was made: one result for each of its steps.
#[derive(Clone, Copy)]
pub(super) struct MadeSteps<'a> {
    pub(super) task: &'a ProbeTask,
    pub(super) results: &'a [ProbeStepResult],
}

/// A judgement; as an error if it ends the check early.
pub(super) type Judged<T = ProbeJudgement> = Result<T, ProbeJudgement>;

/// The steps of a check, or why it is not applicable.
pub(crate) type Steps = Result<Vec<ProbeStep>, String>;

impl ProbeCheck {
    /// The steps for this task.
    ///
    /// # Errors
    /// Why the check is not applicable.
    pub(crate) fn steps(&self, task: &ProbeTask) -> Steps {
        let missing = match self.needs {
            ProbeNeed::Effects if !task.counts_effects => "--effects",
            ProbeNeed::Records if !task.reads_records => "--schema and a Redis server",
            ProbeNeed::Faults if !task.makes_faults => "--faults",
            _ => return (self.steps)(task),
        };
        Err(format!("it needs {missing}"))
    }

    /// Judges the results of the steps, one for each step.
    pub(crate) fn judged(&self, task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
        let (Ok(mut judged) | Err(mut judged)) = (self.judge)(&MadeSteps { task, results });
        if judged.shown.is_empty() {
            for step in self.shown {
                let places = results[*step].exchanges.len();
                let last = places.saturating_sub(1)..places;
                let places = if self.shown.len() == 1 { 0..places.min(2) } else { last };
                judged.shown.extend(places.map(|place| (*step, place)));
            }
        }
        judged
    }
}

/// One step of a check.
#[derive(Debug, Clone)]
pub(crate) struct ProbeStep {
    /// One, or several that are sent at the same time, each on its own connection.
    pub(crate) requests: Vec<ProbeRequest>,
    pub(crate) action: ProbeAction,
}

/// What a step does with its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeAction {
    /// Reads the number of effects, of this request's key if the oracle tells keys apart, until it
    /// no longer changes.
    Count,
    /// Sends the requests and waits for their answers.
    Send,
    /// The same, repeated while the answer is a conflict, up to the time limit of one request.
    SendUntilFree,
    /// Sends nothing for this time.
    Wait(Duration),
    /// Sends the request, and reads its record meanwhile until it has a result, up to a time limit
    /// after the answer.
    Watch,
    /// Sends the request, and closes the connection after this time without reading.
    Abandon(Duration),
    /// Sends the request, and again after this time, whether or not the first is answered. Waits for
    /// both answers.
    Overlap(Duration),
    /// Sends the request, makes a fault in the record of its key after this time, and then sends the
    /// request again. Waits for both answers.
    FaultDuring(RecordFault, Duration),
    /// Makes a fault in the record of the request's key.
    Fault(RecordFault),
    /// Removes what `ReplaceResult` wrote, if it is still there.
    TakeFaultBack,
}

impl ProbeRequest {
    pub(crate) fn step(self, action: ProbeAction) -> ProbeStep {
        ProbeStep { requests: vec![self], action }
    }

    /// One step with this request for each action.
    pub(super) fn steps(self, actions: &[ProbeAction]) -> Vec<ProbeStep> {
        actions.iter().map(|action| self.clone().step(*action)).collect()
    }
}

impl ProbeTask {
    /// One step for each action, all with the same new request.
    pub(super) fn steps(&self, actions: &[ProbeAction]) -> Steps {
        Ok(self.new_request()?.steps(actions))
    }
}

impl ProbeStep {
    /// How many requests it sends, without repetitions of those that are rejected as in progress.
    pub(crate) fn sends(&self) -> usize {
        match self.action {
            ProbeAction::Count
            | ProbeAction::Wait(_)
            | ProbeAction::Fault(_)
            | ProbeAction::TakeFaultBack => 0,
            ProbeAction::Overlap(_) | ProbeAction::FaultDuring(..) => 2,
            _ => self.requests.len(),
        }
    }
}

/// What one step returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProbeStepResult {
    /// One per request, in the order of the requests. `SendUntilFree` has one per attempt.
    pub(crate) exchanges: Vec<ProbeExchange>,
    /// The number of effects, or why it is unknown.
    pub(crate) effects: Option<Result<u64, String>>,
    /// The key of the request whose effects were counted.
    pub(crate) counted_key: Option<String>,
    /// The time between the first and the last release of simultaneous requests, in microseconds.
    pub(crate) spread_us: Option<u64>,
    /// What Redis held right after the step, for the first key of the step; `None` if Redis is not
    /// read.
    pub(crate) record: Option<Result<StoredRecord, String>>,
    /// When the result was stored, as far as `Watch` saw it.
    pub(crate) stored: Option<StoredTime>,
    /// That the fault was made, or why it was not.
    pub(crate) fault: Option<Result<(), String>>,
    /// Whether the value of `ReplaceResult` was still there, or why this is unknown.
    pub(crate) was_kept: Option<Result<bool, String>>,
}

/// Between which times a result was stored, in microseconds since the start of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoredTime {
    /// When the last read began that found no result; `None` if every read found it.
    pub(crate) after_us: Option<u64>,
    /// When the first read ended that found it; `None` if none did.
    pub(crate) before_us: Option<u64>,
}

/// The record of a key, as far as a check needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StoredRecord {
    pub(crate) schema: String,
    /// The state, such as `in-progress`; `absent`, or `unrecognised` if Redis keys exist whose
    /// values the schema does not recognise.
    pub(crate) state: String,
    /// Milliseconds until it expires; `None` if it never does, or this is unknown.
    pub(crate) ttl_ms: Option<u64>,
    /// The TTL that the service sets on such a record, in milliseconds, as its schema or this
    /// deployment states it; `None` if it sets none.
    pub(crate) stated_ttl_ms: Option<u64>,
    /// True if a Redis key of the record never expires.
    pub(crate) never_expires: bool,
    pub(crate) owner: Option<String>,
    pub(crate) status: Option<i64>,
    pub(crate) redis_keys: Vec<Vec<u8>>,
}

impl StoredRecord {
    /// True if the record holds the result of an operation.
    pub(crate) fn has_result(&self) -> bool {
        ["completed", "failed"].contains(&self.state.as_str())
    }
}

/// How many operations a run executed, as counted by `--effects`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EffectsMade {
    pub(crate) count: u64,
    /// False if only some checks counted, so that there may be more.
    pub(crate) is_complete: bool,
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeJudgement {
    pub(crate) verdict: ProbeVerdict,
    pub(crate) message: String,
    /// The exchanges that show it, each by its step and its place in that step; at most two.
    pub(crate) shown: Vec<(usize, usize)>,
    /// True if only the number of effects shows it. Late effects of earlier requests could do so too.
    pub(crate) is_by_number: bool,
}

impl ProbeJudgement {
    pub(crate) fn new(verdict: ProbeVerdict, message: impl Into<String>) -> Self {
        Self { verdict, message: message.into(), shown: Vec::new(), is_by_number: false }
    }
}

/// A check with what it found in one service.
pub(crate) struct CheckedService {
    pub(crate) check: &'static ProbeCheck,
    /// The rule of the profile; `None` if the profile does not judge this check.
    pub(crate) clause: Option<ProfileClause>,
    pub(crate) judgement: ProbeJudgement,
    /// Whether the title of the check holds; `None` if this is not known.
    pub(crate) holds: Option<bool>,
    pub(crate) results: Vec<ProbeStepResult>,
}

impl CheckedService {
    /// Applies the profile: a check without a rule is only reported.
    pub(crate) fn new(
        check: &'static ProbeCheck,
        clause: Option<ProfileClause>,
        mut judgement: ProbeJudgement,
        results: Vec<ProbeStepResult>,
    ) -> Self {
        let holds = match judgement.verdict {
            ProbeVerdict::Pass => Some(true),
            ProbeVerdict::Fail => Some(false),
            _ => None,
        };
        let is_judged = clause.is_some();
        if !is_judged && matches!(judgement.verdict, ProbeVerdict::Pass | ProbeVerdict::Fail) {
            judgement.verdict = ProbeVerdict::Reported;
        }
        Self { check, clause, judgement, holds, results }
    }

    /// True if a number of effects shows that the title does not hold, and nothing else does.
    pub(crate) fn is_shown_by_number(&self) -> bool {
        self.holds == Some(false) && self.judgement.is_by_number
    }

    /// Takes a finding back that was not seen again, or that could not be looked for again.
    pub(crate) fn take_back(&mut self) {
        let message = &mut self.judgement.message;
        message.push_str("; not seen again, so effects of earlier requests may have appeared late");
        self.judgement.verdict = ProbeVerdict::Inconclusive;
        self.judgement.is_by_number = false;
        self.holds = None;
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.judgement.verdict == ProbeVerdict::Fail
    }

    /// True if the profile judges it, and nothing is proved.
    pub(crate) fn is_open(&self) -> bool {
        self.clause.is_some() && self.judgement.verdict == ProbeVerdict::Inconclusive
    }

    /// The exchanges that show what it found.
    pub(crate) fn shown(&self) -> Vec<&ProbeExchange> {
        let mut shown = Vec::new();
        for (step, place) in &self.judgement.shown {
            let result = self.results.get(*step);
            shown.extend(result.and_then(|result| result.exchanges.get(*place)));
        }
        shown
    }
}
