//! The schema as the rest of idemctl uses it: checked, with every name resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use strum::IntoStaticStr;

use super::conduct::{Conduct, OnFailure};
use super::forms::{Encoding, ValueCase};
use super::prefix::Prefix;
use super::role::{Role, SlotKey};
use super::steps::{Action, Call, Step};
use super::value_template::{Place, Template};
use super::write_format::WriteFormat;
use crate::domain::as_str::as_str;
use crate::domain::record::Evidence;

/// Bytes that tell what a record of most schemas is.
const HEAD_BYTES: usize = 64;

/// Bytes in which an owner and times stand, too, where a JSON value holds them.
const TELLING_HEAD_BYTES: usize = 512;

/// How one service library stores a record: key templates, values, TTLs, and the three steps.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The name operators type, e.g. `go-middleware`; also the folder's name.
    pub name: String,
    pub(crate) summary: String,
    /// The schema of the newer release that shares this one's Redis keys, where there is one.
    pub(crate) older_release_of: Option<String>,
    /// The Redis keys of a record, the lock's first: one (`record`) or two (`lock`, `result`).
    pub slots: Vec<SlotKey>,
    /// True when a deployment can put a prefix before its keys.
    pub takes_prefix: bool,
    /// The prefix of the Redis keys, and where the prefix stands.
    pub(crate) prefix: Prefix,
    pub lock_ttl: Duration,
    pub result_ttl: Duration,
    /// The TTLs that this deployment states; the others are the schema's defaults.
    pub(crate) stated: Vec<TtlOf>,
    /// How values are told apart, in the order they are tried.
    pub values: Vec<ValueCase>,
    pub write: WriteFormat,
    /// Take the lock, or learn who has it or what the result is.
    pub begin: Step,
    /// Store the result and give up the lock.
    pub complete: Step,
    /// Keep the lock while the work takes longer; `None` where the service cannot.
    pub renew: Option<Step>,
    /// Give up the lock without a result; `None` where the service never does.
    pub release: Option<Step>,
    /// What the service does around the steps, as far as it is told.
    pub(crate) conduct: Conduct,
    pub scripts: BTreeMap<String, Script>,
    pub(crate) origin: Origin,
}

impl Schema {
    /// The index of the slot that holds the lock.
    pub fn lock_slot(&self) -> usize {
        0
    }

    /// The index of the slot that holds the result: the lock's own in a one-key layout.
    pub fn result_slot(&self) -> usize {
        self.slots.len() - 1
    }

    /// Lets a field stand, perhaps null, in every closed form on whose levels it is.
    pub(crate) fn allow_field(&mut self, path: &str) {
        for closed in self.values.iter_mut().filter_map(|case| case.closed.as_mut()) {
            if let Some(member) = closed.allow(path) {
                member.may_be_null = true;
            }
        }
    }

    /// The Redis keys of an idempotency key, in slot order.
    pub fn redis_keys(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.slots.iter().map(|slot| slot.template.redis_key(key)).collect()
    }

    /// This schema with shorter TTLs, none longer than `most`: for the steps that are sent, and for the answers expected.
    #[must_use]
    pub(crate) fn living_at_most(&self, most: Duration) -> Self {
        Self { lock_ttl: self.lock_ttl.min(most), result_ttl: self.result_ttl.min(most), ..self.clone() }
    }

    pub(crate) fn ttl(&self, of: TtlOf) -> Duration {
        match of {
            TtlOf::Lock => self.lock_ttl,
            TtlOf::Result => self.result_ttl,
        }
    }

    pub(crate) fn ttl_evidence(&self, of: TtlOf) -> Evidence {
        if self.stated.contains(&of) { Evidence::Stated } else { Evidence::Estimated }
    }

    /// True when both keep their records at the same Redis keys.
    pub(crate) fn has_templates_of(&self, other: &Self) -> bool {
        self.slots.iter().map(|slot| &slot.template).eq(other.slots.iter().map(|slot| &slot.template))
    }

    /// True when every Redis key starts with literal bytes.
    pub fn has_prefix(&self) -> bool {
        self.slots.iter().all(|slot| slot.template.has_prefix())
    }

    /// True when the begin step is one script, so that only one request can win by construction.
    pub(crate) fn begins_with_a_script(&self) -> bool {
        matches!(self.begin.calls.as_slice(), [Call { action: Action::Script { .. }, .. }])
    }

    /// What the service does when its handler fails; where it does not say, it releases when it has such a step.
    pub(crate) fn on_failure(&self) -> OnFailure {
        let derived = if self.release.is_some() { OnFailure::Release } else { OnFailure::Keep };
        self.conduct.on_failure.unwrap_or(derived)
    }

    pub(crate) fn sends_lock_ttl(&self) -> bool {
        self.begin.calls.iter().flat_map(Call::words).any(Template::is_lock_ttl)
    }

    /// True when its worker says who it is, in a value or to a script.
    pub fn names_owner(&self) -> bool {
        let values = [Some(&self.write.lock_value), Some(&self.write.result_value), self.write.failed_value.as_ref()];
        let words = self.steps().flat_map(|step| &step.calls).flat_map(Call::words);
        values.into_iter().flatten().any(|value| value.has(&[Place::Owner])) || { words }
            .any(|word| word.has(&[Place::Owner]))
    }

    /// True when its begin step sends a hash of the request's payload.
    pub(crate) fn compares_payloads(&self) -> bool {
        self.begin.calls.iter().flat_map(Call::words).any(|word| word.has(&[Place::Fingerprint]))
    }

    /// The steps there are, in the order of a record's life.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        [Some(&self.begin), self.renew.as_ref(), Some(&self.complete), self.release.as_ref()].into_iter().flatten()
    }

    /// Bytes of a value that tell state, status and owner: 64 do but for JSON with an owner or times of its own, and a
    /// word that a value has to equal is read whole.
    pub(crate) fn head_bytes(&self) -> usize {
        let words = self.values.iter().filter_map(|case| case.tests.equals.as_ref()).map(Vec::len);
        let tells_more = |case: &ValueCase| {
            let fields = [&case.fields.owner, &case.fields.created_at, &case.fields.completed_at];
            case.encoding == Encoding::Json && fields.iter().any(|field| field.is_some())
        };
        let least = if self.values.iter().any(tells_more) { TELLING_HEAD_BYTES } else { HEAD_BYTES };
        words.max().unwrap_or(0).max(least)
    }

    /// The index of a slot by its role.
    pub(crate) fn slot(&self, role: Role) -> Option<usize> {
        self.slots.iter().position(|slot| slot.role == role)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TtlOf {
    Lock,
    Result,
}

as_str!(TtlOf);

impl TtlOf {
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Lock => "--lock-ttl",
            Self::Result => "--result-ttl",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    /// A folder of the operator's.
    Folder(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub(crate) name: String,
    pub text: Cow<'static, str>,
}
