//! The suggested change after a violation, derived from its history and from the steps that the
//! schema has.

use super::fault::Fault;
use super::transition::ResponseAuthor;
use crate::domain::schema::value_template::Placeholder;
use crate::domain::schema::{Call, OnFailure, Role, Schema};
use crate::domain::step::StepKind;

/// The advice if another request acted between two calls of begin. All later violations in that
/// schedule follow from this.
pub(crate) const BEGIN_IN_ONE_SCRIPT: &str = "let begin look the record up and take the lock in \
    one script, because another request can act between two calls";

/// The advice if an effect happens twice because a handler failed after the first one.
pub(crate) const FAILED_AFTER_EFFECT: &str = "pass the key on to the system that has the effect, \
    because a handler can fail after its effect, and the retry then executes again";

/// What led to a violation: the step that violated the invariant first, and what happened before.
#[derive(Clone, Copy)]
pub(crate) struct Culprit<'a> {
    /// The schema of the service that executed the step.
    pub(crate) schema: &'a Schema,
    /// `None` if no call is responsible: an effect, an elapsed TTL, or a later request shows the
    /// violation.
    pub(crate) kind: Option<StepKind>,
    /// The call of this step.
    pub(crate) call: Option<&'a Call>,
    /// The author of the replay that the call got.
    pub(crate) author: Option<ResponseAuthor>,
    /// The last fault that took a lock or a result away, and which of both.
    pub(crate) taken: Option<(Fault, Role)>,
    /// The lock at the end of the history.
    pub(crate) left: LeftLock,
}

/// The lock that a history leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftLock {
    Absent,
    Expiring,
    /// The lock never expires, because a step of this kind or a fault (`None`) made it so.
    Endless(Option<StepKind>),
}

impl Culprit<'_> {
    /// The name of the step.
    pub(super) fn step(&self) -> &'static str {
        match self.kind {
            Some(StepKind::Begin) => "begin",
            Some(StepKind::Renew) => "renew",
            Some(StepKind::Release) => "release",
            Some(StepKind::Complete | StepKind::StoreFailure) | None => "complete",
        }
    }

    /// The step with its script or command, such as `release (DEL)`.
    fn step_and_call(&self) -> String {
        match self.call {
            Some(call) => format!("{} ({})", self.step(), call.name()),
            None => self.step().to_owned(),
        }
    }

    /// The names of the steps with which the schema ends a lock.
    fn ending_steps(&self) -> &'static str {
        match (&self.schema.complete, &self.schema.release) {
            (Some(_), Some(_)) => "complete and release",
            (None, Some(_)) => "release",
            (_, None) => "complete",
        }
    }

    /// True if the service's locks name their owners.
    fn stores_owners(&self) -> bool {
        let in_lock = self.schema.write.lock_value.as_ref();
        in_lock.is_some_and(|value| value.has(&[Placeholder::Owner]))
            || self.schema.values.iter().any(|value| value.fields.owner.is_some())
    }

    /// True if the call gets the owner, so that it can compare it.
    fn gets_owner(&self) -> bool {
        let Some(call) = self.call else { return false };
        call.words().any(|word| word.has(&[Placeholder::Owner, Placeholder::LockValue]))
    }

    /// Why a worker's call affected the lock or the result of another, and what prevents it.
    fn owner_comparison(&self) -> String {
        let call = self.step_and_call();
        if !self.stores_owners() {
            let steps = self.ending_steps();
            return format!(
                "store an owner token as the lock, and let {steps} compare it in a script"
            );
        }
        if self.gets_owner() {
            return format!(
                "let {call} compare the lock's owner with the owner that it gets, before every change"
            );
        }
        format!(
            "pass the owner to {call}, and let it compare the lock's owner in a script before it \
            changes the lock"
        )
    }

    /// What keeps a second worker out.
    pub(super) fn one_effect(&self) -> String {
        self.kept_out("pass the key on to the system that has the effect")
    }

    /// What keeps a second worker out of the section that a lock protects.
    pub(super) fn one_holder(&self) -> String {
        self.kept_out("let what the lock protects refuse an older fencing token")
    }

    fn kept_out(&self, and: &str) -> String {
        let first = match self.taken {
            Some((Fault::Evict, _)) => {
                "set maxmemory-policy to noeviction, or use a Redis for these keys alone"
            }
            Some((Fault::Failover, _)) => {
                "let begin wait for a replica (WAIT), so that fewer locks are lost"
            }
            Some((Fault::Restart, _)) => {
                "let Redis write every change to disk (appendfsync always)"
            }
            Some((_, Role::Result)) => "keep results longer than clients retry",
            Some(_) if self.schema.renew.is_some() => {
                "give the lock a TTL longer than any pause between two renewals"
            }
            Some(_) => {
                "give the lock a TTL longer than the longest run, or add a step that renews it \
                during the work"
            }
            None => return "let begin take the lock only if no lock or result exists".to_owned(),
        };
        format!("{first}, and {and}")
    }

    /// What makes a replay true.
    pub(super) fn true_replay(&self) -> String {
        if matches!(self.author, Some(ResponseAuthor::Failure(_)))
            && self.schema.on_failure() == OnFailure::Store
        {
            return "let no stored failure be final, because another worker may have had the effect"
                .to_owned();
        }
        "let only the worker whose lock exists store a response, and only after its effect"
            .to_owned()
    }

    /// What keeps a stored result.
    pub(super) fn result_kept(&self) -> String {
        match self.kind {
            Some(StepKind::Begin) => {
                format!("let {} keep a stored result", self.step_and_call())
            }
            Some(StepKind::Release) if !self.stores_owners() => self.owner_comparison(),
            _ => format!(
                "let {} check in a script that no result is stored before it changes the record",
                self.step_and_call()
            ),
        }
    }

    /// What keeps the first result.
    pub(super) fn result_not_replaced(&self) -> String {
        if matches!(self.kind, Some(StepKind::Begin)) {
            return self.result_kept();
        }
        let call = self.step_and_call();
        format!("let {call} store a result only if the worker's own lock still exists")
    }

    /// What makes a lock end.
    pub(super) fn lock_ends(&self) -> String {
        match self.left {
            LeftLock::Absent => "let begin acquire a key without a lock or a result".to_owned(),
            LeftLock::Expiring => "let no retry prolong the lock of another worker".to_owned(),
            LeftLock::Endless(Some(StepKind::Begin)) if self.schema.begin_calls().len() > 1 => {
                "let begin set the lock and its TTL in one command or script".to_owned()
            }
            LeftLock::Endless(Some(StepKind::Begin)) => "let begin give the lock a TTL".to_owned(),
            LeftLock::Endless(Some(StepKind::Renew)) => {
                "let renew keep or set the TTL of the lock, because SET without a TTL removes it"
                    .to_owned()
            }
            LeftLock::Endless(Some(kind)) => {
                format!("let {} keep the TTL of the lock", kind.described_step().as_str())
            }
            LeftLock::Endless(None) => "let begin give a TTL to a lock that has none".to_owned(),
        }
    }

    /// What keeps a worker from removing or replacing the lock of another.
    pub(super) fn owner_only(&self) -> String {
        match self.kind {
            Some(StepKind::Begin) => {
                format!("let {} keep a lock that already exists", self.step_and_call())
            }
            _ => self.owner_comparison(),
        }
    }

    /// What tells payloads apart.
    pub(super) fn payloads_apart(&self) -> String {
        "store a fingerprint of the payload with every lock and result, and let begin compare it \
        first"
            .to_owned()
    }
}
