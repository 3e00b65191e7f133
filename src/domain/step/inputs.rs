//! One request of a service: fills the placeholders in the calls that it sends and the values that
//! it writes.

use std::mem::{self, Discriminant};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::StepReply;
use super::encoding::{
    compact_json, escape_html, header_lists, headers, isoformat, milliseconds, timestamp,
    whole_seconds,
};
use super::kept;
use super::reply::{ReplyMatch, ReplyMatcher};
use crate::domain::hash_slot;
use crate::domain::hex::hex;
use crate::domain::record::encode::{encode, encode_fields};
use crate::domain::record::{
    Content, Field, Hash, Json, Reading, Response, age, decode, json_prefix,
};
use crate::domain::schema::closed_fields::escaped;
use crate::domain::schema::value_template::Placeholder;
use crate::domain::schema::{
    Action, Call, Encoding, ReplyPattern, Role, Schema, State, Template, Timestamp, TtlOf,
};

/// One worker's request with one idempotency key, from which the placeholders of a schema are
/// filled.
#[derive(Debug, Clone)]
pub struct StepInputs<'a> {
    pub schema: &'a Schema,
    pub key: &'a [u8],
    /// The worker's owner token, which the service's scripts compare, if the schema has owners. It
    /// need not be UTF-8.
    pub owner: &'a [u8],
    /// A hash of the request's payload, if the schema compares payloads.
    pub fingerprint: &'a str,
    pub response: &'a Response,
    /// The error text of a failed operation; `None` for a successful one.
    pub error: Option<&'a str>,
    /// The time in milliseconds since the epoch, for the times in values and calls.
    pub now_ms: u64,
    /// A text that is sent as lock TTL instead of the schema's lock TTL.
    pub lock_ttl: Option<&'a str>,
    /// The previous value, part of which a result may keep. `None`: the value is assumed to be a
    /// lock as the schema writes it.
    pub before: Option<&'a Content>,
}

/// A TTL in seconds as milliseconds. A text that is not a number of seconds is sent unchanged,
/// because a scenario may send one on purpose.
fn in_milliseconds(seconds: &str) -> Vec<u8> {
    match seconds.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000)) {
        Some(milliseconds) => milliseconds.to_string().into_bytes(),
        None => seconds.as_bytes().to_vec(),
    }
}

impl<'a> StepInputs<'a> {
    /// Creates a request of a successful operation, without a payload to compare.
    pub fn new(
        schema: &'a Schema,
        key: &'a [u8],
        owner: &'a (impl AsRef<[u8]> + ?Sized),
        response: &'a Response,
    ) -> Self {
        let owner = owner.as_ref();
        Self {
            schema,
            key,
            owner,
            fingerprint: "",
            response,
            error: None,
            now_ms: 0,
            lock_ttl: None,
            before: None,
        }
    }

    /// The matcher for replies to this request.
    pub fn matcher(&self) -> ReplyMatcher<'a> {
        ReplyMatcher {
            schema: self.schema,
            fingerprint: self.fingerprint,
            owner: self.owner,
            now_ms: self.now_ms,
        }
    }

    /// A KEYS, ARGV or command word of this request.
    pub fn word(&self, template: &Template) -> Vec<u8> {
        template.fill(|place| match place {
            Placeholder::Key => self.key.to_vec(),
            Placeholder::Prefix => self.schema.prefix.text.as_bytes().to_vec(),
            Placeholder::RedisKey(key_index) => self.redis_key(key_index),
            Placeholder::LockTtl => match self.lock_ttl {
                Some(ttl) => ttl.as_bytes().to_vec(),
                None => whole_seconds(self.schema.lock_ttl),
            },
            Placeholder::LockTtlMilliseconds => match self.lock_ttl {
                Some(ttl) => in_milliseconds(ttl),
                None => milliseconds(self.schema.lock_ttl),
            },
            Placeholder::ResultTtl => whole_seconds(self.schema.result_ttl),
            Placeholder::ResultTtlMilliseconds => milliseconds(self.schema.result_ttl),
            Placeholder::LockValue => self.lock_value(),
            Placeholder::ResultValue => self.result_value(),
            Placeholder::Outcome => {
                if self.error.is_some() { "failed" } else { "completed" }.into()
            }
            other => self.part(other),
        })
    }

    /// A word of a call. If it is the whole value of a hash, the names and values of the hash.
    pub(crate) fn spread(&self, template: &Template) -> Vec<Vec<u8>> {
        let content = match template.only_place() {
            Some(Placeholder::LockValue) => self.lock(),
            Some(Placeholder::ResultValue) => self.result(),
            _ => Content::Absent,
        };
        match content {
            Content::Hash(hash) => hash.into_words(),
            _ => vec![self.word(template)],
        }
    }

    /// The words that are sent for a call: a command, or EVAL with the service's script, its KEYS
    /// and its ARGV.
    pub(crate) fn words(&self, call: &Call) -> Vec<Vec<u8>> {
        match &call.action {
            Action::Command(command) => command.iter().flat_map(|word| self.spread(word)).collect(),
            Action::Script { name, keys, args } => {
                // The parser has checked that the script exists.
                let text = self.schema.scripts.get(name).map_or("", |script| &*script.text);
                // EVAL takes one round trip, and does not need the script to be loaded.
                let mut words = vec![b"EVAL".to_vec(), text.as_bytes().to_vec()];
                words.extend(self.script_arguments(keys, args));
                words
            }
        }
    }

    /// The words after a script or its digest: the number of KEYS, the KEYS, and the ARGV.
    pub(crate) fn script_arguments(&self, keys: &[Template], args: &[Template]) -> Vec<Vec<u8>> {
        let mut words = vec![keys.len().to_string().into_bytes()];
        for template in keys.iter().chain(args) {
            words.extend(self.spread(template));
        }
        words
    }

    /// The value of a lock that is a string; empty if it is not, or if the schema does not describe
    /// how a lock is written.
    pub fn lock_value(&self) -> Vec<u8> {
        string_of(self.lock())
    }

    /// The value of a result that is a string; empty if it is not, or if the schema does not
    /// describe how a result is written.
    pub fn result_value(&self) -> Vec<u8> {
        string_of(self.result())
    }

    /// The content of the lock's Redis key while this request holds the lock.
    pub(crate) fn lock(&self) -> Content {
        self.stored(
            self.schema.write.lock_value.as_ref(),
            self.schema.lock_key_index(),
            State::InProgress,
        )
    }

    /// The content of the result's Redis key after this request stored its result.
    pub(crate) fn result(&self) -> Content {
        let key_index = self.schema.result_key_index();
        self.stored(self.result_template(), key_index, self.result_state())
    }

    /// Why no result can be written for this request; `None` if one can.
    pub(crate) fn unwritten_result(&self) -> Option<String> {
        let text = self.value(self.result_template()?);
        self.packed(&text, self.schema.result_key_index(), self.result_state())?.err()
    }

    /// The state of the format in which this request's result is stored.
    fn result_state(&self) -> State {
        let has_own_format = self.schema.values.iter().any(|format| format.state == State::Failed);
        if self.error.is_some() && has_own_format { State::Failed } else { State::Completed }
    }

    /// The template of the result: the one for failed operations if this one failed and the service
    /// stores errors.
    fn result_template(&self) -> Option<&'a Template> {
        let write = &self.schema.write;
        if self.error.is_some() && write.failed_value.is_some() {
            return write.failed_value.as_ref();
        }
        write.result_value.as_ref()
    }

    /// The content of the result's Redis key after this request acquired its lock and stored its
    /// result. A hash keeps fields of the lock that the result does not have, unless a script
    /// removes those that no result has.
    pub(crate) fn result_over_lock(&self) -> Content {
        let is_separate = self.schema.has_separate_result();
        let over = self.result_over(&if is_separate { Content::Absent } else { self.lock() });
        let mut calls = self.schema.complete_calls().iter();
        if !calls.any(|call| matches!(call.action, Action::Script { .. })) {
            return over;
        }
        match self.as_result(&over) {
            Reading::Value(value) if value.conformance.deviation().is_some() => self.result(),
            _ => over,
        }
    }

    /// The content of the result's Redis key after the result replaced the content `before`. The
    /// new hash keeps fields of the old one that the result does not have.
    pub(crate) fn result_over(&self, before: &Content) -> Content {
        match (self.result(), before) {
            (Content::Hash(result), Content::Hash(before)) => {
                let mut fields: Vec<Field> = Vec::new();
                for field in &before.fields {
                    if !result.fields.iter().any(|new| new.name == field.name) {
                        fields.push(field.clone());
                    }
                }
                fields.extend(result.fields.iter().cloned());
                let count = fields.len() as u64;
                Content::Hash(Box::new(Hash::new(fields, count)))
            }
            (result, _) => result,
        }
    }

    /// This request's response as the service stores it: the whole value, or only the response if
    /// the schema describes it.
    pub fn stored_response(&self) -> Vec<u8> {
        match &self.schema.write.response {
            Some(response) => self.value(response),
            None => self.result_value(),
        }
    }

    /// This request's response, in the form in which replays are compared with it.
    pub fn replayed(&self) -> Vec<u8> {
        if let Content::Text { head, .. } = self.result()
            && let Some(response) = self.response_of_value(&head)
        {
            return response;
        }
        comparable(self.stored_response())
    }

    /// The response in a whole result, in the form of [`Self::replayed`]. Two results of one
    /// response may differ in their times, owners, and the order of their fields. `None` if the
    /// value is no result, or its format describes no body; also for a service that is sent the
    /// whole result, and stores it unchanged.
    fn response_of_value(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.schema.write.response.is_some() || self.schema.sends_result_value() {
            return None;
        }
        let reading = self.as_result(&Content::text(text.to_vec()));
        let value = reading.decoded()?;
        let format = &self.schema.values[value.format];
        if !format.state.is_result() || format.fields.body.is_none() {
            return None;
        }
        let response = value.response.as_ref()?.response();
        let body = comparable(response.body);
        let parts = serde_json::json!({
            "status": response.status,
            "headers": response.headers,
            "body": body.escape_ascii().to_string(),
            "error": value.error,
        });
        Some(parts.to_string().into_bytes())
    }

    /// The response that a matched reply carries, in the form of [`Self::replayed`]; `None` if the
    /// reply carries no response as text.
    pub fn carried_response(&self, matched: ReplyMatch<'_>, reply: &StepReply) -> Option<Vec<u8>> {
        if let Some(hash) = self.matcher().hash_in(matched, reply) {
            return self.response_in_hash(&hash);
        }
        if self.has_unknown_response(matched) {
            return None;
        }
        let mut text = self.matcher().response_in(matched, reply)?;
        if matched.entry.value.is_none()
            && let StepReply::Array(items) = reply
            && items.len() > RESPONSE_ALONE
        {
            text = self.response_among(items)?;
        }
        if self.schema.write.response.is_none() {
            // Without a description of the response, a script that returns a part of its result,
            // such as the body, cannot be compared.
            let is_described = matched.entry.value.is_some()
                || self.as_result(&Content::text(text.to_vec())).decoded().is_some();
            if !is_described {
                return None;
            }
            let response = self.response_of_value(text);
            return Some(response.unwrap_or_else(|| comparable(text.to_vec())));
        }
        // A service that is sent the response alone may still return the whole value. An opaque
        // format reads the response as a value, too.
        if let Reading::Value(decoded) = self.as_result(&Content::text(text.to_vec()))
            && !self.schema.values[decoded.format].is_opaque()
            && let Some(pointer) = self.pointer_to_response()
            && let Ok(whole) = serde_json::from_slice::<Value>(text)
            && let Some(response) = whole.pointer(&pointer)
        {
            return Some(comparable(response.to_string().into_bytes()));
        }
        Some(comparable(text.to_vec()))
    }

    /// True if a matched reply has a text that may be a response, and the service stores responses.
    pub fn may_carry(&self, matched: ReplyMatch<'_>, reply: &StepReply) -> bool {
        let has_text = match reply {
            StepReply::Array(items) => items.len() > 1,
            StepReply::Text(_) => matched.entry.pattern == ReplyPattern::Text,
            _ => false,
        };
        has_text && self.schema.write.keeps().body
    }

    /// True if the reply has a format that is neither that of a result nor that of a lock, such as
    /// a JSON object of the script. The schema then does not describe where in it the response is.
    fn has_unknown_response(&self, matched: ReplyMatch<'_>) -> bool {
        let Some(format) = matched.entry.value else { return false };
        if self.schema.values[format].state.is_result() {
            return false;
        }
        let lock = decode::decode_value(self.schema, self.schema.lock_key_index(), &self.lock());
        lock.decoded().is_none_or(|lock| lock.format != format)
    }

    /// The content as a value of the result's Redis key.
    fn as_result(&self, content: &Content) -> Reading {
        decode::decode_value(self.schema, self.schema.result_key_index(), content)
    }

    /// The first text after the word of a script that looks like a response. A script may return
    /// other fields beside it, such as the status, or only these, one by one: then the schema does
    /// not describe what a client makes of them, and there is none.
    fn response_among<'r>(&self, items: &'r [StepReply]) -> Option<&'r [u8]> {
        let sample = sample_response();
        let inputs = StepInputs { response: &sample, ..self.clone() };
        let own = inputs.stored_response();
        // A body may have any members, and a response of several fields has always the same.
        let is_body = comparable(own.clone()) == comparable(sample.body.clone());
        for item in items.iter().skip(1) {
            let StepReply::Text(text) = item else { continue };
            if json_type(text) == json_type(&own) && (is_body || members(text) == members(&own)) {
                return Some(text);
            }
        }
        None
    }

    /// The response that a client makes of a hash that it has read; `None` if the schema does not
    /// describe the response.
    fn response_in_hash(&self, hash: &Content) -> Option<Vec<u8>> {
        self.schema.write.response.as_ref()?;
        let Reading::Value(value) = self.as_result(hash) else { return None };
        let response = value.response.as_ref()?.response();
        let author =
            StepInputs { response: &response, error: value.error.as_deref(), ..self.clone() };
        Some(author.replayed())
    }

    /// The JSON pointer to the response in a result; `None` if the result is not JSON.
    fn pointer_to_response(&self) -> Option<String> {
        let sample = sample_response();
        let inputs = StepInputs { response: &sample, ..self.clone() };
        let whole: Value = serde_json::from_slice(&inputs.result_value()).ok()?;
        let part: Value = serde_json::from_slice(&inputs.stored_response()).ok()?;
        pointer_to(&whole, &part)
    }

    fn redis_key(&self, role: Role) -> Vec<u8> {
        match self.schema.index_of(role) {
            Some(index) => self.schema.keys[index].template.redis_key(self.key),
            None => Vec::new(),
        }
    }

    /// A value as it is stored. A text that cannot be encoded is stored unchanged, and is
    /// unreadable when it is read back.
    fn stored(&self, template: Option<&Template>, key_index: usize, state: State) -> Content {
        let Some(template) = template else { return Content::text(Vec::new()) };
        let text = self.value(template);
        match self.packed(&text, key_index, state) {
            Some(Ok(packed)) => packed,
            Some(Err(_)) | None => Content::text(text),
        }
    }

    /// The value, encoded by the first value format of the state, or the reason why it cannot be
    /// encoded. `None` if the value is stored as it is.
    fn packed(
        &self,
        text: &[u8],
        key_index: usize,
        state: State,
    ) -> Option<Result<Content, String>> {
        let mut formats = self.schema.values.iter();
        let format =
            formats.find(|format| format.key_index == key_index && format.state == state)?;
        let decoding = &format.decoding;
        if decoding.is_as_stored() {
            return None;
        }
        let bytes_at = &self.schema.write.bytes_at;
        Some(match format.encoding() {
            Encoding::Hash => encode_fields(decoding, text, bytes_at).map(Content::hash),
            _ => encode(decoding, text.to_vec(), bytes_at).map(Content::text),
        })
    }

    fn value(&self, template: &Template) -> Vec<u8> {
        if !template.keeps() {
            return template.fill(|place| self.part(place));
        }
        let before = self.before.cloned().unwrap_or_else(|| self.lock());
        let document = kept::document(self.schema, &before).unwrap_or(Json::Null);
        // A value without a fingerprint gets that of this request, in the form of its lock.
        let mut lock = None;
        if self.before.is_some() && !self.fingerprint.is_empty() {
            lock = kept::document(self.schema, &self.lock());
        }
        let kept_at = |pointer: &str| {
            let kept = kept::at(&document, pointer);
            let is_empty = kept.as_deref().is_none_or(|text| matches!(text, b"null" | b"\"\""));
            match &lock {
                Some(lock) if is_empty && self.schema.is_fingerprint(pointer) => {
                    kept::at(lock, pointer).or(kept)
                }
                _ => kept,
            }
        };
        // The template is filled twice. The first result shows which fields the template itself
        // writes; the second adds the kept fields.
        let named = self.fill_keeping(template, kept_at, b"");
        let named = json_prefix::parse(&named, true).unwrap_or(Json::Null);
        let unnamed = kept::unnamed(self.schema, &before, &named);
        self.fill_keeping(template, kept_at, &unnamed)
    }

    fn fill_keeping(
        &self,
        template: &Template,
        kept_at: impl Fn(&str) -> Option<Vec<u8>>,
        kept_fields: &[u8],
    ) -> Vec<u8> {
        template.fill_keeping(
            |place| {
                if place == Placeholder::KeptFields {
                    kept_fields.to_vec()
                } else {
                    self.part(place)
                }
            },
            kept_at,
        )
    }

    /// When a lock or a result that is written now expires, in milliseconds since the epoch.
    fn expires_ms(&self, of: TtlOf) -> u64 {
        let ttl = match of {
            TtlOf::Lock => self.sent_lock_ttl().or(self.schema.ttl(of)).unwrap_or_default(),
            TtlOf::Result => self.schema.result_ttl,
        };
        // Saturating, because a TTL that is sent may be any number of seconds.
        self.now_ms.saturating_add(age::millis(ttl))
    }

    /// The lock TTL that is sent instead of the schema's, if it is a number of seconds.
    fn sent_lock_ttl(&self) -> Option<Duration> {
        let seconds = self.lock_ttl?.parse::<f64>().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// The text of a placeholder that both calls and values may have.
    fn part(&self, place: Placeholder) -> Vec<u8> {
        let response = self.response;
        let write = &self.schema.write;
        match place {
            Placeholder::Owner => self.owner.to_vec(),
            Placeholder::Fingerprint => self.fingerprint.as_bytes().to_vec(),
            Placeholder::Key => self.key.to_vec(),
            Placeholder::ClientKey => self.schema.keys[0].template.client_key(self.key).to_vec(),
            Placeholder::Now | Placeholder::NowMilliseconds => self.now_ms.to_string().into_bytes(),
            Placeholder::NowSeconds => timestamp(self.now_ms, Timestamp::Seconds),
            Placeholder::NowRfc3339 => timestamp(self.now_ms, Timestamp::Rfc3339),
            Placeholder::NowIsoformat => isoformat(self.now_ms),
            Placeholder::NowTicks => timestamp(self.now_ms, Timestamp::Ticks),
            Placeholder::Expires(of, unit) => timestamp(self.expires_ms(of), unit),
            Placeholder::ExpiresIsoformat(of) => isoformat(self.expires_ms(of)),
            Placeholder::ContentType => match response.content_type() {
                Some(content_type) => self.json(Value::from(content_type)),
                None => self.json(Value::Null),
            },
            Placeholder::BodyHex => hex(&response.body).into_bytes(),
            Placeholder::Response => match &write.response {
                Some(response) => self.value(response),
                None => Vec::new(),
            },
            Placeholder::ErrorText => match self.error {
                Some(error) => self.json(Value::from(error)),
                None => b"null".to_vec(),
            },
            Placeholder::Status => response.status.unwrap_or(200).to_string().into_bytes(),
            Placeholder::HeaderLists => self.json(header_lists(response, write.header_names)),
            Placeholder::Headers => self.json(headers(response, write.header_names)),
            Placeholder::Body | Placeholder::BodyJson
                if response.body.is_empty() && write.no_body.is_some() =>
            {
                write.no_body.clone().unwrap_or_default().into_bytes()
            }
            Placeholder::Body => response.body.clone(),
            Placeholder::BodyBase64 => STANDARD.encode(&response.body).into_bytes(),
            Placeholder::BodyText => self.body_text(),
            Placeholder::BodyJson => {
                let is_json = response.is_json() || self.schema.bodies_are_json();
                let compact = if is_json { compact_json(&response.body) } else { None };
                // A body that is not JSON is written as a JSON string.
                compact.unwrap_or_else(|| self.body_text())
            }
            _ => Vec::new(),
        }
    }

    /// The body as a JSON string.
    fn body_text(&self) -> Vec<u8> {
        // Such a service keeps bodies as text, so `complete` rejects a body that is not UTF-8.
        self.json(Value::from(String::from_utf8_lossy(&self.response.body)))
    }

    /// A JSON value as the service's encoder writes it.
    fn json(&self, value: Value) -> Vec<u8> {
        let text = value.to_string();
        if self.schema.write.escape_html {
            return escape_html(&text).into_bytes();
        }
        text.into_bytes()
    }
}

/// The JSON pointer to a part of a document that equals `part`.
fn pointer_to(whole: &Value, part: &Value) -> Option<String> {
    if whole == part {
        return Some(String::new());
    }
    // The response is in an object; an array of responses would not tell which one.
    for (name, member) in whole.as_object()? {
        if let Some(rest) = pointer_to(member, part) {
            return Some(format!("/{}{rest}", escaped(name)));
        }
    }
    None
}

/// A response with the members of its JSON objects in the order of their names, because a script
/// that encodes the response again may change their order.
fn comparable(response: Vec<u8>) -> Vec<u8> {
    match serde_json::from_slice::<Value>(&response) {
        Ok(mut json) => {
            json.sort_all_objects();
            json.to_string().into_bytes()
        }
        Err(_) => response,
    }
}

/// A response whose body no other part of a result has.
fn sample_response() -> Response {
    Response {
        status: Some(201),
        body: br#"{"idemctl":"the response"}"#.to_vec(),
        ..Response::default()
    }
}

/// The number of items of an array that has a word and the response, and nothing else.
const RESPONSE_ALONE: usize = 2;

/// The names of the members of a JSON object, in their order by name; none of any other text.
fn members(text: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(Value::Object(members)) = serde_json::from_slice(text) {
        names.extend(members.into_iter().map(|(name, _)| name));
    }
    names.sort_unstable();
    names
}

/// The JSON type of a text, or the absence of one.
fn json_type(text: &[u8]) -> Option<Discriminant<Value>> {
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(mem::discriminant(&value))
}

fn string_of(content: Content) -> Vec<u8> {
    match content {
        Content::Text { head, .. } => head,
        _ => Vec::new(),
    }
}

/// Why the scripts of a schema cannot run on a cluster for this idempotency key, with the hash
/// slots named. `None` if they can. All Redis keys of a script must be in one hash slot.
pub(crate) fn cluster_problem(schema: &Schema, key: &[u8]) -> Option<String> {
    let record = schema.redis_keys(key);
    let response = Response::default();
    let inputs = StepInputs::new(schema, key, "", &response);
    for call in schema.steps().flat_map(|step| &step.calls) {
        let Action::Script { name, keys, .. } = &call.action else { continue };
        let named: Vec<_> = keys.iter().map(|template| inputs.word(template)).collect();
        let mut all: Vec<&[u8]> = named.iter().map(Vec::as_slice).collect();
        // A script that receives only parts of Redis keys builds some of the record's Redis keys
        // itself.
        let builds_keys = keys.iter().any(|template| !template.is_redis_key());
        let why = if builds_keys {
            all.extend(record.iter().map(Vec::as_slice));
            "it builds Redis keys that KEYS does not name"
        } else if !hash_slot::is_one(all.iter().copied()) {
            "its Redis keys are apart"
        } else {
            continue;
        };
        return Some(format!("{name} cannot run on a cluster, {why}: {}", hash_slot::words(all)));
    }
    None
}
