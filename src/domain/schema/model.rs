//! The schema as the rest of idemctl uses it: checked, and with every name resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::decoder::Encoding;
use super::key_template::Exclusion;
use super::redis_keys::Prefix;
use super::redis_keys::{self, Role, RoleKey};
use super::service_behavior::{OnFailure, PayloadUse, ServiceBehavior};
use super::steps::{Action, Call, Reply, Step};
use super::ttl::{NO_TTL, TtlOf};
use super::value_format::{BodyIs, State, ValueFormat};
use super::value_template::{Placeholder, Template};
use super::write_format::WriteFormat;
use crate::domain::record::Evidence;

/// How many bytes of a value idemctl reads to recognise a record of most schemas. They show the
/// state and the age of the built-in services' records.
const HEAD_BYTES: usize = 64;

/// How many bytes of a JSON value idemctl reads to find also the owner and the times.
const DETAILED_HEAD_BYTES: usize = 512;

/// How a service library stores a record: key templates, value formats, TTLs, and steps.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The name that operators type, e.g. `go-middleware`; also the name of the schema's folder.
    pub name: String,
    pub(crate) summary: String,
    /// The schema of the newer release that uses the same Redis keys, if there is one.
    pub(crate) older_release_of: Option<String>,
    /// The Redis keys of a record, the lock's first: one (`record`), or a `lock`, a `result`, or
    /// both.
    pub keys: Vec<RoleKey>,
    /// True if a deployment can set a prefix for its keys.
    pub takes_prefix: bool,
    /// The prefix of the Redis keys, and its place in them.
    pub(crate) prefix: Prefix,
    /// The same Redis keys under other prefixes that the service has used. idemctl reads records
    /// there and writes none.
    pub(crate) other_places: Vec<(Prefix, Vec<RoleKey>)>,
    /// True if only the name of a record leads to it, and no other KEY and no scan.
    pub(crate) only_by_name: bool,
    /// `NO_TTL` if the service sets no TTL on locks.
    pub lock_ttl: Duration,
    /// `NO_TTL` if the service sets no TTL on results.
    pub result_ttl: Duration,
    /// The TTLs that this deployment states. The others are the schema's defaults.
    pub(crate) stated: Vec<TtlOf>,
    /// The longest TTL of keys that idemctl creates for a test on a server that others use; `None`
    /// if the TTLs are the service's.
    pub(crate) limited_to: Option<Duration>,
    /// The value formats, in the order in which idemctl tries them.
    pub values: Vec<ValueFormat>,
    pub write: WriteFormat,
    /// Acquires the lock, or returns a conflict or the result; `None` if the schema does not
    /// describe the step.
    pub begin: Option<Step>,
    /// Stores the result and releases the lock; `None` if the schema does not describe the step.
    pub complete: Option<Step>,
    /// Extends the lock while the work takes longer; `None` if the service cannot do this.
    pub renew: Option<Step>,
    /// Releases the lock without a result; `None` if the service never does this.
    pub release: Option<Step>,
    /// What the service does around its steps, as far as the file describes it.
    pub(crate) service: ServiceBehavior,
    /// The schema's Lua scripts, by name.
    pub scripts: BTreeMap<String, Script>,
    pub(crate) origin: SchemaOrigin,
    /// The SHA-256 of `schema.toml` and the scripts, in hex. It changes with every byte of them.
    pub(crate) files_hash: String,
}

impl Schema {
    /// True if some value format holds an expiry.
    pub(crate) fn contains_expiry(&self) -> bool {
        self.values.iter().any(|format| format.expires_at.is_some())
    }

    /// True if some value format holds its own creation time or expiry.
    pub(crate) fn may_contain_time(&self) -> bool {
        self.contains_expiry()
            || self.values.iter().any(|format| format.fields.created_at.is_some())
    }

    /// True if this deployment states this TTL, and the TTL is not `none`.
    pub(crate) fn states_ttl(&self, of: TtlOf) -> bool {
        self.ttl_evidence(of) == Evidence::Stated && self.ttl(of).is_some()
    }

    /// False for a schema that has only results.
    pub(crate) fn has_locks(&self) -> bool {
        self.keys[self.lock_key_index()].role != Role::Result
    }

    /// True if the schema is compiled into idemctl, and not read from an operator's folder.
    pub(crate) fn is_built_in(&self) -> bool {
        self.origin == SchemaOrigin::BuiltIn
    }

    /// The index in `keys` of the Redis key that holds the lock.
    pub fn lock_key_index(&self) -> usize {
        // The parser lists the lock's key first.
        0
    }

    /// The index in `keys` of the Redis key that holds the result; the same as the lock's if they
    /// share one Redis key.
    pub fn result_key_index(&self) -> usize {
        redis_keys::result_key_index(&self.keys)
    }

    /// True if the lock and the result have different Redis keys.
    pub(crate) fn has_separate_result(&self) -> bool {
        self.result_key_index() != self.lock_key_index()
    }

    /// Allows a field, which may be null, in every value format that lists the fields of its level.
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
            // A copy has no copies of its own, so that no place is listed twice.
            other_places: Vec::new(),
            ..self.clone()
        })
    }

    /// This schema with TTLs of at most `most`, both for the steps that are sent and for the
    /// predicted replies.
    #[must_use]
    pub(crate) fn living_at_most(&self, most: Duration) -> Self {
        Self {
            lock_ttl: at_most(self.lock_ttl, most),
            result_ttl: at_most(self.result_ttl, most),
            limited_to: Some(most),
            ..self.clone()
        }
    }

    /// The TTL that the service sets on its locks or results; `None` if it sets none.
    pub(crate) fn ttl(&self, of: TtlOf) -> Option<Duration> {
        let ttl = match of {
            TtlOf::Lock => self.lock_ttl,
            TtlOf::Result => self.result_ttl,
        };
        if ttl == NO_TTL { None } else { Some(ttl) }
    }

    /// The calls of the begin step; empty if the schema does not describe the step.
    pub fn begin_calls(&self) -> &[Call] {
        calls_of(self.begin.as_ref())
    }

    /// The calls of the complete step; empty if the schema does not describe the step.
    pub fn complete_calls(&self) -> &[Call] {
        calls_of(self.complete.as_ref())
    }

    /// Whether this deployment states a TTL, or idemctl estimates it from the schema's default.
    pub(crate) fn ttl_evidence(&self, of: TtlOf) -> Evidence {
        if self.stated.contains(&of) { Evidence::Stated } else { Evidence::Estimated }
    }

    /// True if every response body of this service is JSON.
    pub(crate) fn bodies_are_json(&self) -> bool {
        let mut formats = self.values.iter().filter(|format| format.state.is_result());
        formats.any(|format| format.body_is == BodyIs::Json)
    }

    /// True if results are stored in this encoding, or if a packed field of them is.
    pub(crate) fn has_results_in(&self, encoding: Encoding) -> bool {
        let mut formats = self.values.iter().filter(|format| format.state.is_result());
        formats.any(|format| {
            let decoding = &format.decoding;
            let mut inside = decoding.inside.iter();
            decoding.value.encoding == encoding
                || inside.any(|(_, decoder)| decoder.encoding == encoding)
        })
    }

    /// True if both schemas keep their records at the same Redis keys.
    pub(crate) fn has_templates_of(&self, other: &Self) -> bool {
        self.keys.iter().map(|key| &key.template).eq(other.keys.iter().map(|key| &key.template))
    }

    /// True if every Redis key starts with literal bytes.
    pub fn has_fixed_prefix(&self) -> bool {
        self.keys.iter().all(|key| key.template.has_fixed_prefix())
    }

    /// True if the begin step is one script. Redis executes it atomically, so that only one request
    /// can get the lock.
    pub(crate) fn begins_with_a_script(&self) -> bool {
        matches!(self.begin_calls(), [Call { action: Action::Script { .. }, .. }])
    }

    /// What the service does when its handler fails. If the file does not say this, idemctl assumes
    /// a release if there is a release step.
    pub(crate) fn on_failure(&self) -> OnFailure {
        let derived = if self.release.is_some() { OnFailure::Release } else { OnFailure::Keep };
        self.service.on_failure.unwrap_or(derived)
    }

    /// True if the begin step sends the lock TTL.
    pub(crate) fn sends_lock_ttl(&self) -> bool {
        self.begin_calls().iter().flat_map(Call::words).any(Template::is_lock_ttl)
    }

    /// True if the complete step sends the TTL of results in milliseconds.
    pub(crate) fn sends_result_ttl_in_milliseconds(&self) -> bool {
        send(self.complete_calls(), &[Placeholder::ResultTtlMilliseconds])
    }

    /// True if the complete step sends the whole result.
    pub(crate) fn sends_result_value(&self) -> bool {
        send(self.complete_calls(), &[Placeholder::ResultValue])
    }

    /// True if a call of the step sends the time, directly or in a value that it stores.
    pub(crate) fn sends_time(&self, step: &Step) -> bool {
        // A value may contain the time although the words of the call do not.
        step.calls.iter().flat_map(Call::words).any(|word| {
            word.has_time()
                || word.has(&[Placeholder::LockValue]) && self.write.keeps_time()
                || word.has(&[Placeholder::ResultValue]) && self.write.dates_results()
        })
    }

    /// True if a lock holds a hash that the client compares with the hash of its request's payload.
    pub(crate) fn locks_keep_fingerprint(&self) -> bool {
        self.values
            .iter()
            .any(|format| format.state == State::InProgress && format.fields.fingerprint.is_some())
    }

    /// True if a format has its fingerprint at this JSON pointer.
    pub(crate) fn is_fingerprint(&self, pointer: &str) -> bool {
        self.values.iter().any(|format| format.fields.fingerprint.as_deref() == Some(pointer))
    }

    /// True if a worker sends its owner ID, in a value or to a script.
    pub fn names_owner(&self) -> bool {
        let in_values = self.write.values().any(|(_, value)| value.has(&[Placeholder::Owner]));
        in_values || self.steps().any(|step| send(&step.calls, &[Placeholder::Owner]))
    }

    /// True if the begin step sends the owner of its lock. If not, a script may assign one.
    pub(crate) fn begin_sends_owner(&self) -> bool {
        let lock = self.write.lock_value.as_ref();
        let lock_has_owner = lock.is_some_and(|value| value.has(&[Placeholder::Owner]));
        let begin = self.begin_calls();
        send(begin, &[Placeholder::Owner])
            || lock_has_owner && send(begin, &[Placeholder::LockValue])
    }

    /// True if the begin step sends a hash of the request's payload, or the client compares it with
    /// the stored hash.
    pub(crate) fn compares_payloads(&self) -> bool {
        let mut replies = self.begin_calls().iter().flat_map(|call| &call.replies);
        send(self.begin_calls(), &[Placeholder::Fingerprint])
            || replies.any(Reply::is_for_other_payloads)
    }

    /// True if the begin step rejects a request whose payload differs from the stored one. What it
    /// compares may also be something else, such as the path.
    pub(crate) fn tells_payloads_apart(&self) -> bool {
        self.compares_payloads() && self.service.payload != Some(PayloadUse::Ignored)
    }

    /// True if a value or the begin step has a hash of the request's payload.
    pub(crate) fn has_fingerprints(&self) -> bool {
        self.write.keeps_fingerprint() || self.compares_payloads()
    }

    /// True if a value format has this field of `fields`.
    pub(crate) fn describes(&self, field: &str) -> bool {
        self.values
            .iter()
            .any(|format| format.fields.pointers().any(|(described, _)| described == field))
    }

    /// The steps that the schema describes, with their names, in the order of a record's life.
    pub(crate) fn named_steps(&self) -> impl Iterator<Item = (&'static str, &Step)> {
        let steps = [
            ("begin", &self.begin),
            ("renew", &self.renew),
            ("complete", &self.complete),
            ("release", &self.release),
        ];
        steps.into_iter().filter_map(|(name, step)| Some((name, step.as_ref()?)))
    }

    /// The same steps without their names.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.named_steps().map(|(_, step)| step)
    }

    /// The Redis name of the type that the schema keeps at the Redis key with this index.
    pub(crate) fn type_at(&self, key_index: usize) -> &'static str {
        match self.values.iter().find(|format| format.key_index == key_index) {
            Some(format) => format.encoding().other_type().unwrap_or("string"),
            None => "string",
        }
    }

    /// The indexes of the Redis keys that hold a hash.
    pub(crate) fn hash_key_indexes(&self) -> Vec<usize> {
        let hash = Encoding::Hash.as_str();
        (0..self.keys.len()).filter(|key_index| self.type_at(*key_index) == hash).collect()
    }

    /// True if one of its Redis keys does not hold a string.
    pub(crate) fn keeps_collections(&self) -> bool {
        self.values.iter().any(|format| format.encoding().other_type().is_some())
    }

    /// How many bytes of a value idemctl reads to recognise its state, status and owner. A word
    /// that a value must equal is read completely.
    pub(crate) fn head_bytes(&self) -> usize {
        // 64 bytes are enough for the state and the age of the built-in services' records.
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

    /// The index of a Redis key, and the idempotency key in it. If the templates of both keys
    /// match, the more specific one wins.
    pub(crate) fn key_index_of<'a>(&self, redis_key: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let mut best = None;
        let mut most_specific = 0;
        for (key_index, role_key) in self.keys.iter().enumerate() {
            let Some(key) = role_key.template.idempotency_key(redis_key) else { continue };
            let specificity = role_key.template.specificity();
            // Of two equally specific templates, the first wins.
            if best.is_none() || specificity > most_specific {
                best = Some((key_index, key));
                most_specific = specificity;
            }
        }
        best
    }

    /// True if every Redis key that the templates build from this key yields the same key and the
    /// same key again.
    pub(crate) fn accepts_key(&self, key: &[u8]) -> bool {
        for (key_index, role_key) in self.keys.iter().enumerate() {
            if self.key_index_of(&role_key.template.redis_key(key)) != Some((key_index, key)) {
                return false;
            }
        }
        true
    }

    /// The Redis keys of an idempotency key, the lock's first.
    pub fn redis_keys(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.keys.iter().map(|role_key| role_key.template.redis_key(key)).collect()
    }

    /// Which field of `[keys]` excludes a Redis key although a template's literals match. `None` if
    /// the schema owns the Redis key, or no literals match.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<Exclusion> {
        // One of its two templates may exclude a key that the other one matches.
        if self.key_index_of(redis_key).is_some() {
            return None;
        }
        self.keys.iter().find_map(|key| key.template.leaves_out(redis_key))
    }

    /// The templates of its Redis keys, the lock's first, as `schema.toml` writes them.
    pub(crate) fn templates(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.template.display()).collect()
    }

    /// The regular expression that its keys must match.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        self.keys.first()?.template.key_pattern()
    }

    /// The templates of Redis keys that are not records. Each of the schema's Redis keys excludes
    /// the same ones.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let Some(first) = self.keys.first() else { return Vec::new() };
        first.template.ignored().iter().map(|template| template.display()).collect()
    }

    /// True if this Redis key is not a record, although its name fits a template of the schema.
    pub(crate) fn ignores(&self, redis_key: &[u8]) -> bool {
        self.keys.iter().any(|key| key.template.ignores(redis_key))
    }

    /// The roles of a record's Redis keys, the lock's first; empty if it has only one.
    pub(crate) fn roles(&self) -> Vec<Role> {
        if self.keys.len() == 1 {
            return Vec::new();
        }
        self.keys.iter().map(|key| key.role).collect()
    }

    /// The index of the key that a placeholder for this role refers to.
    pub(crate) fn index_of(&self, role: Role) -> Option<usize> {
        redis_keys::index_of(&self.keys, role)
    }
}

fn calls_of(step: Option<&Step>) -> &[Call] {
    step.map_or(&[], |step| &step.calls)
}

/// True if a word of these calls contains one of these placeholders.
fn send(calls: &[Call], any: &[Placeholder]) -> bool {
    calls.iter().flat_map(Call::words).any(|word| word.has(any))
}

/// A TTL of at most `most`. A service that sets no TTL does not set this one either.
fn at_most(ttl: Duration, most: Duration) -> Duration {
    if ttl == NO_TTL { NO_TTL } else { ttl.min(most) }
}

/// True for values with an owner or times. Also true for values whose first bytes may show nothing
/// else: compressed values, hashes, and PHP objects, which begin with the name of their class.
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

/// Where a schema comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaOrigin {
    BuiltIn,
    /// A folder of the operator.
    Folder(PathBuf),
}

/// A Lua script of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The name of its file, without `.lua`.
    pub(crate) name: String,
    pub text: Cow<'static, str>,
}
