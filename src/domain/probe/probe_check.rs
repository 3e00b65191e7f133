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
    /// Lets the lock expire.
    ExpireLock,
    /// Lets the stored result expire.
    ExpireResult,
    /// Replaces the stored result by a value that is not of the schema.
    ReplaceResult,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ProbeVerdict {
    Pass,
    Fail,
    /// The check was made, and its result proves nothing.
    Inconclusive,
    /// The check cannot be made with this request or these options.
    NotApplicable,
    /// The profile leaves open what a service does, so that it is only reported.
    Reported,
}

as_str!(ProbeGroup, ProbeVerdict);

/// One check of `probe`. `docs/probe.md` describes each; a test compares them.
pub(crate) struct ProbeCheck {
    /// The stable name.
    pub(crate) id: &'static str,
    pub(crate) group: ProbeGroup,
    /// What holds if the check passes.
    pub(crate) title: &'static str,
    /// The steps, or why the check is not applicable.
    pub(crate) steps: fn(&ProbeTask) -> Result<Vec<ProbeStep>, String>,
    /// Judges the results of the steps, one for each step.
    pub(super) judge: fn(&ProbeTask, &[ProbeStepResult]) -> Judged,
}

/// A judgement; as an error if it ends the check early.
pub(super) type Judged = Result<ProbeJudgement, ProbeJudgement>;

impl ProbeCheck {
    /// Judges the results of the steps, one for each step.
    pub(crate) fn judged(&self, task: &ProbeTask, results: &[ProbeStepResult]) -> ProbeJudgement {
        match (self.judge)(task, results) {
            Ok(judgement) | Err(judgement) => judgement,
        }
    }
}

/// One step of a check.
#[derive(Debug, Clone)]
pub(crate) enum ProbeStep {
    /// Reads the number of effects, of this request's key if the oracle tells keys apart, until it
    /// no longer changes.
    CountEffects(ProbeRequest),
    /// Sends a request and waits for its answer.
    Send(ProbeRequest),
    /// The same, repeated while the answer is a conflict, up to the time limit of one request.
    SendUntilFree(ProbeRequest),
    /// Sends nothing for this time.
    Wait(Duration),
    /// Sends a request, and reads its record meanwhile until it has a result, up to a time limit after
    /// the answer.
    Watch(ProbeRequest),
    /// Sends all requests at the same time, each on its own connection.
    Together(Vec<ProbeRequest>),
    /// Sends a request, and closes the connection after this time without reading.
    Abandon(ProbeRequest, Duration),
    /// Sends the first request, and the second one after this time, whether or not the first is
    /// answered. Waits for both answers.
    Overlap(ProbeRequest, ProbeRequest, Duration),
    /// Sends a request, makes a fault in the record of its key after this time, and then sends the
    /// request again. Waits for both answers.
    FaultDuring(ProbeRequest, RecordFault, Duration),
    /// Makes a fault in the record of this request's key.
    Fault(ProbeRequest, RecordFault),
    /// Removes what `ReplaceResult` wrote, if it is still there.
    TakeFaultBack(ProbeRequest),
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
    /// The time between the first and the last release of `Together`, in microseconds.
    pub(crate) spread_us: Option<u64>,
    /// What Redis held right after the step, for the first key of the step; `None` if Redis is not
    /// read.
    pub(crate) record: Option<Result<StoredRecord, String>>,
    /// True if the record was read while the requests of the step ran.
    pub(crate) is_read_meanwhile: bool,
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
    fn new(verdict: ProbeVerdict, message: impl Into<String>) -> Self {
        Self { verdict, message: message.into(), shown: Vec::new(), is_by_number: false }
    }

    pub(crate) fn pass(message: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Pass, message)
    }

    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Fail, message)
    }

    pub(crate) fn inconclusive(message: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Inconclusive, message)
    }

    pub(crate) fn not_applicable(message: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::NotApplicable, message)
    }

    pub(crate) fn reported(message: impl Into<String>) -> Self {
        Self::new(ProbeVerdict::Reported, message)
    }

    /// The same, if only the number of effects shows it.
    #[must_use]
    pub(crate) fn by_number(self) -> Self {
        Self { is_by_number: true, ..self }
    }

    /// The same with these exchanges as its proof.
    #[must_use]
    pub(crate) fn showing(self, shown: &[(usize, usize)]) -> Self {
        Self { shown: shown.to_vec(), ..self }
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
    pub(crate) fn take_back(&mut self, why: &str) {
        let message = format!(
            "{}; {why}, so effects of earlier requests may have appeared late (with {{{{key}}}} in \
             --effects, only those of one key count)",
            self.judgement.message
        );
        let shown = std::mem::take(&mut self.judgement.shown);
        self.judgement = ProbeJudgement::inconclusive(message).showing(&shown);
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
