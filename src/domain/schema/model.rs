//! The schema as the rest of idemctl uses it: checked, with every name resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::behavior::{OnFailure, ServiceBehavior};
use super::forms::{State, ValueCase};
use super::key_hash::KeyHash;
use super::opening::Encoding;
use super::prefix::Prefix;
use super::role::{self, Role, RoleKey};
use super::steps::{Action, Call, Reply, Step};
use super::ttl::{FOR_EVER, TtlOf};
use super::value_template::{Place, Template};
use super::write_format::WriteFormat;
use crate::domain::record::Evidence;

/// Bytes that tell what a record of most schemas is.
const HEAD_BYTES: usize = 64;

/// Bytes in which an owner and times stand, too, where a JSON value holds them.
const TELLING_HEAD_BYTES: usize = 512;

/// How one service library stores a record: key templates, values, TTLs, and the three steps.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The version of the file's format.
    pub(crate) format: u32,
    /// The name operators type, e.g. `go-middleware`; also the folder's name.
    pub name: String,
    pub(crate) summary: String,
    /// The schema of the newer release that shares this one's Redis keys, where there is one.
    pub(crate) older_release_of: Option<String>,
    /// The Redis keys of a record, the lock's first: one (`record`) or two (`lock`, `result`).
    pub keys: Vec<RoleKey>,
    /// True when a deployment can put a prefix before its keys.
    pub takes_prefix: bool,
    /// The prefix of the Redis keys, and where the prefix stands.
    pub(crate) prefix: Prefix,
    /// The same Redis keys under prefixes that the service has used besides: records are read there, and none is written.
    pub(crate) other_places: Vec<(Prefix, Vec<RoleKey>)>,
    pub(crate) is_elsewhere: bool,
    /// How the service makes a key of a request's body, where it does.
    pub(crate) key_hash: Option<KeyHash>,
    /// `FOR_EVER` where the service gives its locks no TTL.
    pub lock_ttl: Duration,
    /// `FOR_EVER` where the service gives its results no TTL.
    pub result_ttl: Duration,
    /// The TTLs that this deployment states; the others are the schema's defaults.
    pub(crate) stated: Vec<TtlOf>,
    /// How values are told apart, in the order they are tried.
    pub values: Vec<ValueCase>,
    pub write: WriteFormat,
    /// Take the lock, or learn who has it or what the result is; `None` where the schema does not describe the step.
    pub begin: Option<Step>,
    /// Store the result and give up the lock; `None` where the schema does not describe the step.
    pub complete: Option<Step>,
    /// Keep the lock while the work takes longer; `None` where the service cannot.
    pub renew: Option<Step>,
    /// Give up the lock without a result; `None` where the service never does.
    pub release: Option<Step>,
    /// What the service does around the steps, as far as it is told.
    pub(crate) behavior: ServiceBehavior,
    pub scripts: BTreeMap<String, Script>,
    pub(crate) origin: Origin,
}

impl Schema {
    /// True when a value tells by itself when it ends.
    pub(crate) fn lapses(&self) -> bool {
        self.values.iter().any(|case| case.expires_at.is_some())
    }

    /// True when a value may tell how old it is, or when it ends.
    pub(crate) fn tells_time(&self) -> bool {
        self.lapses() || self.values.iter().any(|case| case.fields.created_at.is_some())
    }

    /// True when this deployment states such a TTL, and that there is one.
    pub(crate) fn states_ttl(&self, of: TtlOf) -> bool {
        self.ttl_evidence(of) == Evidence::Stated && self.ttl(of).is_some()
    }

    /// False for a schema of results alone.
    pub(crate) fn has_locks(&self) -> bool {
        self.keys[self.lock_role()].role != Role::Result
    }

    /// True when the schema is compiled in, and no folder of the operator's.
    pub(crate) fn is_built_in(&self) -> bool {
        self.origin == Origin::BuiltIn
    }

    /// The role of the Redis key that holds the lock: an index into `keys`.
    pub fn lock_role(&self) -> usize {
        0
    }

    /// The role of the Redis key that holds the result: the lock's own in a one-key layout.
    pub fn result_role(&self) -> usize {
        self.keys.len() - 1
    }

    /// Lets a field stand, perhaps null, in every closed form on whose levels it is.
    pub(crate) fn allow_field(&mut self, path: &str) {
        for closed in self.values.iter_mut().filter_map(|case| case.closed.as_mut()) {
            if let Some(member) = closed.allow(path) {
                member.may_be_null = true;
            }
        }
    }

    /// This schema under each of the other prefixes.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = Self> {
        self.other_places.iter().map(|(prefix, keys)| Self {
            keys: keys.clone(),
            prefix: prefix.clone(),
            other_places: Vec::new(),
            is_elsewhere: true,
            ..self.clone()
        })
    }

    /// This schema with shorter TTLs, none longer than `most`: for the steps that are sent, and for the answers expected.
    #[must_use]
    pub(crate) fn living_at_most(&self, most: Duration) -> Self {
        Self { lock_ttl: self.lock_ttl.min(most), result_ttl: self.result_ttl.min(most), ..self.clone() }
    }

    /// How long the service lets its locks or results live; `None` where it gives them no TTL.
    pub(crate) fn ttl(&self, of: TtlOf) -> Option<Duration> {
        let ttl = match of {
            TtlOf::Lock => self.lock_ttl,
            TtlOf::Result => self.result_ttl,
        };
        (ttl != FOR_EVER).then_some(ttl)
    }

    /// The calls of the begin step; none where the schema does not describe the step.
    pub fn begin_calls(&self) -> &[Call] {
        self.begin.as_ref().map_or(&[], |step| &step.calls)
    }

    /// The calls of the complete step; none where the schema does not describe the step.
    pub fn complete_calls(&self) -> &[Call] {
        self.complete.as_ref().map_or(&[], |step| &step.calls)
    }

    /// What schema.toml lacks for records to be made up; `None` where nothing is missing.
    pub(crate) fn unwritten_because(&self) -> Option<String> {
        self.unstringy_because().or_else(|| lacks(&self.unwritten())).or_else(|| self.endless_because())
    }

    /// What schema.toml lacks for workers to play the service; `None` where nothing is missing.
    pub(crate) fn unplayable_because(&self) -> Option<String> {
        let steps = [("[begin]", self.begin.is_none()), ("[complete]", self.complete.is_none())];
        let lacks = || lacks(&[&steps[..], &self.unwritten()].concat());
        self.unstringy_because().or_else(lacks).or_else(|| self.untimed_anywhere_because())
    }

    /// What schema.toml lacks for its steps to be explored; `None` where nothing is missing. An exploration puts nothing into Redis
    /// but by the steps, so that values which the service's own scripts write need no template.
    pub(crate) fn unexplorable_because(&self) -> Option<String> {
        if self.unstringy_because().is_none() {
            return self.unplayable_because();
        }
        let mut words = self.steps().flat_map(|step| &step.calls).flat_map(Call::words);
        if words.any(|word| word.has(&[Place::LockValue, Place::ResultValue]))
            && let Some(why) = self.read_only_because()
        {
            return Some(why);
        }
        let response = ("`response` (the reply that a replay brings back)", self.write.response.is_none());
        let steps = [("[begin]", self.begin.is_none()), ("[complete]", self.complete.is_none()), response];
        lacks(&steps).or_else(|| self.untimed_anywhere_because())
    }

    fn unwritten(&self) -> [(&'static str, bool); 2] {
        let write = &self.write;
        [("`lock_value`", write.lock_value.is_none()), ("`result_value`", write.result_value.is_none())]
    }

    pub(crate) fn ttl_evidence(&self, of: TtlOf) -> Evidence {
        if self.stated.contains(&of) { Evidence::Stated } else { Evidence::Estimated }
    }

    /// True when both keep their records at the same Redis keys.
    pub(crate) fn has_templates_of(&self, other: &Self) -> bool {
        self.keys.iter().map(|key| &key.template).eq(other.keys.iter().map(|key| &key.template))
    }

    /// True when every Redis key starts with literal bytes.
    pub fn has_prefix(&self) -> bool {
        self.keys.iter().all(|key| key.template.has_prefix())
    }

    /// True when the begin step is one script, so that only one request can win by construction.
    pub(crate) fn begins_with_a_script(&self) -> bool {
        matches!(self.begin_calls(), [Call { action: Action::Script { .. }, .. }])
    }

    /// What the service does when its handler fails; where it does not say, it releases when it has such a step.
    pub(crate) fn on_failure(&self) -> OnFailure {
        let derived = if self.release.is_some() { OnFailure::Release } else { OnFailure::Keep };
        self.behavior.on_failure.unwrap_or(derived)
    }

    pub(crate) fn sends_lock_ttl(&self) -> bool {
        self.begin_calls().iter().flat_map(Call::words).any(Template::is_lock_ttl)
    }

    /// True when its complete step sends the whole result.
    pub(crate) fn sends_result_value(&self) -> bool {
        self.complete_calls().iter().flat_map(Call::words).any(|word| word.has(&[Place::ResultValue]))
    }

    /// True when a lock holds what the client compares with the request's payload.
    pub(crate) fn locks_keep_fingerprint(&self) -> bool {
        let mut locks = self.values.iter().filter(|case| case.state == State::InProgress);
        locks.any(|case| case.fields.fingerprint.is_some())
    }

    /// True when its worker says who it is, in a value or to a script.
    pub fn names_owner(&self) -> bool {
        let values = [&self.write.lock_value, &self.write.result_value, &self.write.failed_value];
        let words = self.steps().flat_map(|step| &step.calls).flat_map(Call::words);
        values.into_iter().flatten().any(|value| value.has(&[Place::Owner])) || { words }
            .any(|word| word.has(&[Place::Owner]))
    }

    /// True when its begin step sends a hash of the request's payload, or the client compares the hash with the stored one.
    pub(crate) fn compares_payloads(&self) -> bool {
        let mut words = self.begin_calls().iter().flat_map(Call::words);
        let mut replies = self.begin_calls().iter().flat_map(|call| &call.replies);
        words.any(|word| word.has(&[Place::Fingerprint])) || replies.any(Reply::is_for_other_payloads)
    }

    /// The steps there are, in the order of a record's life.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        [&self.begin, &self.renew, &self.complete, &self.release].into_iter().flatten()
    }

    /// Redis's name of the type of what the schema keeps at the Redis key of a role.
    pub(crate) fn type_at(&self, role: usize) -> &'static str {
        let mut types = self.values.iter().filter(|case| case.role == role).map(|case| case.encoding().other_type());
        types.next().flatten().unwrap_or("string")
    }

    /// The roles whose Redis keys hold a hash.
    pub(crate) fn hashes(&self) -> Vec<usize> {
        (0..self.keys.len()).filter(|role| self.type_at(*role) == Encoding::Hash.as_str()).collect()
    }

    /// True when one of its Redis keys holds no string.
    pub(crate) fn keeps_collections(&self) -> bool {
        self.values.iter().any(|case| case.encoding().other_type().is_some())
    }

    /// Why nothing is made up and nobody plays the service: its values are no strings that idemctl writes.
    fn unstringy_because(&self) -> Option<String> {
        let hashes = || "it keeps hashes: its steps are made by hand and explored, and nothing else".to_owned();
        self.read_only_because().or_else(|| self.keeps_collections().then(hashes))
    }

    /// Why idemctl plays no steps of the service: the form whose values idemctl reads and does not write. `None` where
    /// `[write]` says all of what is stored.
    pub(crate) fn read_only_because(&self) -> Option<String> {
        let read = self.values.iter().find(|case| !case.opening.is_written());
        read.map(|case| format!("it keeps `{}` in a form that idemctl reads and does not write", case.name))
    }

    /// Bytes of a value that tell state, status and owner: 64 do but for JSON with an owner or times of its own, and for what
    /// is compressed, a hash, or names its class in front. A word that a value has to equal is read whole.
    pub(crate) fn head_bytes(&self) -> usize {
        let words = self.values.iter().filter_map(|case| case.tests.equals.as_ref()).map(Vec::len);
        let tells_more = |case: &ValueCase| {
            let fields = [&case.fields.owner, &case.fields.created_at, &case.fields.completed_at];
            let has_times = fields.iter().any(|field| field.is_some()) || case.expires_at.is_some();
            let has_such = case.encoding().has_fields() && has_times;
            has_such || case.opening.compresses() || matches!(case.encoding(), Encoding::Hash | Encoding::Php)
        };
        let least = if self.values.iter().any(tells_more) { TELLING_HEAD_BYTES } else { HEAD_BYTES };
        words.max().unwrap_or(0).max(least)
    }

    /// The index of the key that a placeholder of this role stands for.
    pub(crate) fn index_of(&self, role: Role) -> Option<usize> {
        role::index_of(&self.keys, role)
    }
}

fn lacks(parts: &[(&str, bool)]) -> Option<String> {
    let missing: Vec<_> = parts.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
    (!missing.is_empty()).then(|| format!("its schema.toml has no {}", missing.join(" and no ")))
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
