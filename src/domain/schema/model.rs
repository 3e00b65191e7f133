//! The schema as the rest of idemctl uses it: checked, with every name resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::decoder::Encoding;
use super::key_hash::KeyHash;
use super::key_template::Exclusion;
use super::redis_keys::Prefix;
use super::redis_keys::{self, Role, RoleKey};
use super::service_behavior::{OnFailure, ServiceBehavior};
use super::steps::{Action, Call, Reply, Step};
use super::ttl::{NO_TTL, TtlOf};
use super::value_format::{State, ValueFormat};
use super::value_template::{Placeholder, Template};
use super::write_format::{TIMES, WriteFormat};
use crate::domain::record::Evidence;

/// Bytes that tell what a record of most schemas is.
const HEAD_BYTES: usize = 64;

/// Bytes that hold the owner and the times of a JSON value as well.
const DETAILED_HEAD_BYTES: usize = 512;

/// How one service library stores a record: key templates, values, TTLs, and the three steps.
#[derive(Debug, Clone)]
pub struct Schema {
    /// True if the file is of format 1. What format 2 rejects stays a warning there, because such folders are in use.
    pub(crate) from_format_1: bool,
    /// The name operators type, e.g. `go-middleware`; also the folder's name.
    pub name: String,
    pub(crate) summary: String,
    /// The schema of the newer release that shares this one's Redis keys, where there is one.
    pub(crate) older_release_of: Option<String>,
    /// True if the schema is read only where `--schema` or a context names it.
    pub(crate) is_draft: bool,
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
    /// `NO_TTL` where the service gives its locks no TTL.
    pub lock_ttl: Duration,
    /// `NO_TTL` where the service gives its results no TTL.
    pub result_ttl: Duration,
    /// The TTLs that this deployment states; the others are the schema's defaults.
    pub(crate) stated: Vec<TtlOf>,
    /// How values are told apart, in the order they are tried.
    pub values: Vec<ValueFormat>,
    pub write: WriteFormat,
    /// Take the lock, or learn who has it or what the result is; `None` where the schema does not describe the step.
    pub begin: Option<Step>,
    /// Store the result and give up the lock; `None` where the schema does not describe the step.
    pub complete: Option<Step>,
    /// Keep the lock while the work takes longer; `None` where the service cannot.
    pub renew: Option<Step>,
    /// Give up the lock without a result; `None` where the service never does.
    pub release: Option<Step>,
    /// What the service does around the steps, as far as the file says.
    pub(crate) service: ServiceBehavior,
    pub scripts: BTreeMap<String, Script>,
    pub(crate) origin: SchemaOrigin,
}

impl Schema {
    /// True if some value holds its own expiry.
    pub(crate) fn lapses(&self) -> bool {
        self.values.iter().any(|format| format.expires_at.is_some())
    }

    /// True if some value holds its own age or expiry.
    pub(crate) fn tells_time(&self) -> bool {
        self.lapses() || self.values.iter().any(|format| format.fields.created_at.is_some())
    }

    /// True when this deployment states such a TTL, and that there is one.
    pub(crate) fn states_ttl(&self, of: TtlOf) -> bool {
        self.ttl_evidence(of) == Evidence::Stated && self.ttl(of).is_some()
    }

    /// False for a schema of results alone.
    pub(crate) fn has_locks(&self) -> bool {
        self.keys[self.lock_role()].role != Role::Result
    }

    /// True if the schema is compiled in, and not a folder of the operator.
    pub(crate) fn is_built_in(&self) -> bool {
        self.origin == SchemaOrigin::BuiltIn
    }

    /// The role of the Redis key that holds the lock: an index into `keys`.
    pub fn lock_role(&self) -> usize {
        0
    }

    /// The role of the Redis key that holds the result: the lock's own in a one-key layout.
    pub fn result_role(&self) -> usize {
        self.keys.len() - 1
    }

    /// Lets a field be there, or be null, in every value format that lists the fields of the field's level.
    pub(crate) fn allow_field(&mut self, path: &str) {
        for format in &mut self.values {
            let Some(closed) = &mut format.closed else { continue };
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
        Self {
            lock_ttl: self.lock_ttl.min(most),
            result_ttl: self.result_ttl.min(most),
            ..self.clone()
        }
    }

    /// How long the service lets its locks or results live; `None` where it gives them no TTL.
    pub(crate) fn ttl(&self, of: TtlOf) -> Option<Duration> {
        let ttl = match of {
            TtlOf::Lock => self.lock_ttl,
            TtlOf::Result => self.result_ttl,
        };
        (ttl != NO_TTL).then_some(ttl)
    }

    /// The calls of the begin step; none where the schema does not describe the step.
    pub fn begin_calls(&self) -> &[Call] {
        self.begin.as_ref().map_or(&[], |step| &step.calls)
    }

    /// The calls of the complete step; none where the schema does not describe the step.
    pub fn complete_calls(&self) -> &[Call] {
        self.complete.as_ref().map_or(&[], |step| &step.calls)
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
        self.service.on_failure.unwrap_or(derived)
    }

    pub(crate) fn sends_lock_ttl(&self) -> bool {
        self.begin_calls().iter().flat_map(Call::words).any(Template::is_lock_ttl)
    }

    /// True when its complete step sends the whole result.
    pub(crate) fn sends_result_value(&self) -> bool {
        self.complete_calls()
            .iter()
            .flat_map(Call::words)
            .any(|word| word.has(&[Placeholder::ResultValue]))
    }

    /// True when a call of the step sends the time, by itself or in a value that it stores.
    pub(crate) fn sends_time(&self, step: &Step) -> bool {
        let is_time = |word: &Template| {
            word.has(&TIMES)
                || word.has(&[Placeholder::LockValue]) && self.write.keeps_time()
                || word.has(&[Placeholder::ResultValue]) && self.write.dates_results()
        };
        step.calls.iter().flat_map(Call::words).any(is_time)
    }

    /// True when a lock holds what the client compares with the request's payload.
    pub(crate) fn locks_keep_fingerprint(&self) -> bool {
        let mut locks = self.values.iter().filter(|format| format.state == State::InProgress);
        locks.any(|format| format.fields.fingerprint.is_some())
    }

    /// True if a worker names itself, in a value or to a script.
    pub fn names_owner(&self) -> bool {
        let values = self.write.values().map(|(_, value)| value);
        let words = self.steps().flat_map(|step| &step.calls).flat_map(Call::words);
        values.chain(words).any(|text| text.has(&[Placeholder::Owner]))
    }

    /// True when its begin step sends a hash of the request's payload, or the client compares the hash with the stored one.
    pub(crate) fn compares_payloads(&self) -> bool {
        let mut words = self.begin_calls().iter().flat_map(Call::words);
        let mut replies = self.begin_calls().iter().flat_map(|call| &call.replies);
        words.any(|word| word.has(&[Placeholder::Fingerprint]))
            || replies.any(Reply::is_for_other_payloads)
    }

    /// The steps there are, in the order of a record's life.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        [&self.begin, &self.renew, &self.complete, &self.release].into_iter().flatten()
    }

    /// Redis's name of the type of what the schema keeps at the Redis key of a role.
    pub(crate) fn type_at(&self, role: usize) -> &'static str {
        let format = self.values.iter().find(|format| format.role == role);
        format.and_then(|format| format.encoding().other_type()).unwrap_or("string")
    }

    /// The roles whose Redis keys hold a hash.
    pub(crate) fn hashes(&self) -> Vec<usize> {
        (0..self.keys.len()).filter(|role| self.type_at(*role) == Encoding::Hash.as_str()).collect()
    }

    /// True when one of its Redis keys holds no string.
    pub(crate) fn keeps_collections(&self) -> bool {
        self.values.iter().any(|format| format.encoding().other_type().is_some())
    }

    /// How many bytes of a value tell its state, status and owner. A word that a value has to equal is read whole.
    pub(crate) fn head_bytes(&self) -> usize {
        let mut most = HEAD_BYTES;
        for format in &self.values {
            if needs_longer_head(format) {
                most = most.max(DETAILED_HEAD_BYTES);
            }
            if let Some(word) = &format.tests.equals {
                most = most.max(word.len());
            }
        }
        most
    }

    /// The role of a Redis key, and the idempotency key in it. If the templates of both roles fit, the more specific one wins.
    pub(crate) fn role_of<'a>(&self, redis_key: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let mut best: Option<(usize, usize, &'a [u8])> = None;
        for (role, of_role) in self.keys.iter().enumerate() {
            let Some(key) = of_role.template.idempotency_key(redis_key) else { continue };
            let specificity = of_role.template.specificity();
            // Of two that are as specific the first counts.
            if best.is_none_or(|(most, _, _)| specificity > most) {
                best = Some((specificity, role, key));
            }
        }
        best.map(|(_, role, key)| (role, key))
    }

    /// True if each Redis key that the templates build for this key is read back as this key, at its own role.
    pub(crate) fn takes_key(&self, key: &[u8]) -> bool {
        for (role, of_role) in self.keys.iter().enumerate() {
            if self.role_of(&of_role.template.redis_key(key)) != Some((role, key)) {
                return false;
            }
        }
        true
    }

    /// The Redis keys of an idempotency key, the lock's first.
    pub fn redis_keys(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.keys.iter().map(|of_role| of_role.template.redis_key(key)).collect()
    }

    /// By which word a Redis key is none of the schema's, though a template's literals fit; `None` where it is, or none fits.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<Exclusion> {
        let is_own = self.role_of(redis_key).is_some();
        self.keys.iter().find_map(|key| key.template.leaves_out(redis_key)).filter(|_| !is_own)
    }

    /// The templates of its Redis keys, the lock's first, as its `schema.toml` writes templates.
    pub(crate) fn templates(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.template.display()).collect()
    }

    /// The pattern that its keys are of.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        self.keys.first().and_then(|key| key.template.key_pattern())
    }

    /// The templates of Redis keys that are no records, which each of its Redis keys leaves out alike.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let ignored = self.keys.first().map(|key| key.template.ignored()).unwrap_or_default();
        ignored.iter().map(|template| template.display()).collect()
    }

    /// The index of the key that a placeholder of this role stands for.
    pub(crate) fn index_of(&self, role: Role) -> Option<usize> {
        redis_keys::index_of(&self.keys, role)
    }
}

/// True for values with an owner or times of their own, and for those whose first bytes may tell nothing: what is compressed,
/// a hash, and PHP's objects, which begin with the name of their class.
fn needs_longer_head(format: &ValueFormat) -> bool {
    let fields = &format.fields;
    let has_times = fields.owner.is_some()
        || fields.created_at.is_some()
        || fields.completed_at.is_some()
        || format.expires_at.is_some();
    let encoding = format.encoding();
    (encoding.has_fields() && has_times)
        || format.decoding.compresses()
        || matches!(encoding, Encoding::Hash | Encoding::Php)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaOrigin {
    BuiltIn,
    /// A folder of the operator's.
    Folder(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub(crate) name: String,
    pub text: Cow<'static, str>,
}
