//! Records as JSON objects.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::Value;

use super::document::{base64_unless_text, text};
use super::{columns, escape};
use crate::domain::diagnosis::Finding;
use crate::domain::record::response::is_secret_header;
use crate::domain::record::{KeyState, Record, TimeLeft, response};
use crate::domain::snapshot::KeyPrint;
use crate::domain::step::UnknownAnswer;

/// What stands in place of a hidden header's value.
pub const HIDDEN: &str = "(hidden)";

/// Bytes that the line of most records fits in.
const LINE: usize = 768;

/// Records as [`RecordJson`] lines in one text, with `between` between two of them. This is much
/// cheaper than one text per record. The text reuses the memory of `before`.
pub fn lines(records: &[Record], between: &str, reveal: bool, before: String) -> String {
    let mut json = before.into_bytes();
    json.clear();
    json.reserve(records.len() * LINE);
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            json.extend_from_slice(between.as_bytes());
        }
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(writer_to(&mut json), &RecordJson::of(record, reveal));
    }
    escape::json(String::from_utf8(json).unwrap_or_default())
}

/// Up to this many headers, a search for a repeated name goes through all of them.
const FEW_HEADERS: usize = 16;

/// The writer that appends JSON to a text.
#[cfg(not(target_env = "musl"))]
fn writer_to(json: &mut Vec<u8>) -> &mut Vec<u8> {
    json
}

/// The writer that appends JSON to a text.
#[cfg(target_env = "musl")]
fn writer_to(json: &mut Vec<u8>) -> ShortCopies<'_> {
    ShortCopies(json)
}

/// Appends short texts without a call of memcpy.
///
/// The serializer writes every quotation mark, name and comma by itself, about 45 short texts per
/// record. The memcpy of musl, in the static binary, takes about 20 ns to begin, so that most of
/// the time of a list would be spent there. With that of glibc, plain copies are the faster ones.
#[cfg(target_env = "musl")]
struct ShortCopies<'a>(&'a mut Vec<u8>);

#[cfg(target_env = "musl")]
impl std::io::Write for ShortCopies<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        /// The longest text that is copied without memcpy. The memcpy of musl takes about 20 ns to
        /// begin.
        const SHORT: usize = 32;
        if bytes.len() > SHORT {
            self.0.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        // Blocks of a fixed size are copied by a few instructions.
        let (blocks, rest) = bytes.as_chunks::<8>();
        for block in blocks {
            self.0.extend_from_slice(block);
        }
        let (blocks, rest) = rest.as_chunks::<4>();
        for block in blocks {
            self.0.extend_from_slice(block);
        }
        for byte in rest {
            self.0.push(*byte);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A record as a JSON value, credentials hidden.
pub fn value(record: &Record) -> Value {
    serde_json::to_value(RecordJson::of(record, false)).unwrap_or_default()
}

/// A record's fields in the order of the contract; a field of which nothing is known is null.
#[derive(Serialize)]
pub struct RecordJson<'a> {
    schema: &'a str,
    key: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    redis_keys: Vec<Cow<'a, str>>,
    /// The database, if the records of all databases are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    db: Option<i64>,
    state: &'static str,
    /// Why the value matches no format of the schema; null if it matches one.
    foreign_because: Option<String>,
    owner: Option<Cow<'a, str>>,
    lock_ttl_ms: Option<u64>,
    result_ttl_ms: Option<u64>,
    no_expiry: bool,
    age_ms: Option<u64>,
    age_source: Option<&'static str>,
    age_evidence: Option<&'static str>,
    created_at: Option<String>,
    expires_at: Option<String>,
    size_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    idle_seconds: Option<u64>,
    fingerprint: Option<&'a str>,
    response: Option<ResponseJson>,
    /// The fields that are unknown, because the value was read only in part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<&'static str>,
    error: Option<&'a str>,
    blob: Option<&'a Value>,
    /// False if the record's Redis keys were not read atomically.
    atomic: bool,
    /// The identity of each Redis key, null for an absent one. `diff` compares it to recognise
    /// another record.
    identity: Vec<Option<KeyPrint>>,
    next_request: NextRequestJson<'a>,
    findings: Vec<FindingJson<'a>>,
    /// The expiry that the value itself contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_expiry: Option<OwnExpiry>,
    /// The time left in milliseconds, if the value that decides the state contains an expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_in_ms: Option<u64>,
}

/// The expiry that a value contains, the clock that decides, and the meaning of the value after it.
#[derive(Serialize)]
struct OwnExpiry {
    at: Option<String>,
    clock: &'static str,
    past: &'static str,
    /// Null if the server's time is unknown.
    is_past: Option<bool>,
}

impl OwnExpiry {
    fn of(record: &Record) -> Option<Self> {
        let (value, rule) = record.contained_expiry()?;
        Some(Self {
            at: value.expires_ms.and_then(columns::rfc3339),
            clock: rule.clock.as_str(),
            past: rule.past.as_str(),
            is_past: record.seen.server_ms.map(|_| value.past_expiry.is_some()),
        })
    }
}

#[derive(Serialize)]
struct NextRequestJson<'a> {
    answer: &'static str,
    until_ms: Option<u64>,
    client: Option<&'a str>,
    /// The field that the value lacks, if the answer is unknown because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_because: Option<&'a str>,
    /// True if the stored fingerprint is empty, so that the answer is only for a request with an
    /// empty one, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_without_fingerprint: bool,
    /// True if the request gives the lock, which never expires, a TTL.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gives_ttl: bool,
    /// True if the worker of the lock may renew it, so that `until_ms` need not be the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    renewable: bool,
    /// Redis keys outside the record that decide as well, and that idemctl does not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_depends_on: Vec<String>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    code: &'static str,
    severity: &'static str,
    evidence: &'static str,
    message: &'a str,
    advice: &'a str,
}

/// The stored response. `body_base64` has a body that is not UTF-8. A body or headers that were not
/// read are null.
#[derive(Serialize)]
struct ResponseJson {
    status: Option<i64>,
    headers: Option<HeadersJson>,
    #[serde(flatten)]
    body: Body,
    whole: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body {
    Text { body: Option<String> },
    Bytes { body_base64: String },
}

/// Each header's name with the list of its values; credentials are hidden unless `reveal`.
struct HeadersJson {
    headers: Vec<(String, String)>,
    reveal: bool,
}

impl<'a> RecordJson<'a> {
    /// The fields of a record; `reveal` shows credentials in headers.
    pub fn of(record: &'a Record, reveal: bool) -> Self {
        let next = &record.next_request;
        Self {
            schema: &record.schema.name,
            key: text(&record.key),
            key_base64: base64_unless_text(&record.key),
            redis_keys: record.seen.keys.iter().map(|key| text(&key.redis_key)).collect(),
            db: record.db,
            state: record.state.as_str(),
            foreign_because: record.author.unrecognised_because(),
            owner: record.owner().map(text),
            lock_ttl_ms: ttl_ms(record.lock()),
            result_ttl_ms: ttl_ms(record.result()),
            no_expiry: record.time_left() == Some(TimeLeft::NoExpiry),
            age_ms: record.age.map(|age| age.millis),
            age_source: record.age.map(|age| age.source.as_str()),
            age_evidence: record.age.map(|age| age.evidence.as_str()),
            created_at: columns::created_at(record),
            expires_at: columns::expires_at(record),
            size_bytes: record.size_bytes(),
            memory_bytes: record.memory_bytes(),
            idle_seconds: record.idle().map(|idle| idle.as_secs()),
            fingerprint: record.fingerprint(),
            response: record.response().map(|response| ResponseJson::new(response, reveal)),
            unread: record.unread_fields().names(),
            error: record.error(),
            blob: record.blob(),
            atomic: record.seen.atomic,
            identity: record.seen.keys.iter().map(KeyPrint::of).collect(),
            next_request: NextRequestJson {
                answer: next.answer.as_str(),
                until_ms: next.until.and_then(TimeLeft::millis),
                client: next.client.as_deref(),
                unknown_because: next.unknown_because.as_ref().map(UnknownAnswer::as_str),
                only_without_fingerprint: next.only_without_fingerprint,
                gives_ttl: next.gives_ttl,
                renewable: record.is_renewable(),
                also_depends_on: also_depends_on(record),
            },
            findings: record.findings.iter().map(FindingJson::new).collect(),
            own_expiry: OwnExpiry::of(record),
            ends_in_ms: ends_in_ms(record),
        }
    }
}

/// The Redis keys outside the record on which the predicted answer depends, too.
fn also_depends_on(record: &Record) -> Vec<String> {
    let redis_keys = record.also_depends_on();
    redis_keys.iter().map(|redis_key| text(redis_key).to_string()).collect()
}

/// The time that a record has left whose value contains an expiry; `None` for any other.
fn ends_in_ms(record: &Record) -> Option<u64> {
    if !record.contains_expiry() {
        return None;
    }
    record.time_left()?.millis()
}

/// The time that a Redis key has left; `None` if it is absent or never expires.
fn ttl_ms(key: Option<&KeyState>) -> Option<u64> {
    key?.time_left.millis()
}

impl<'a> FindingJson<'a> {
    fn new(finding: &'a Finding) -> Self {
        Self {
            code: finding.code.as_str(),
            severity: finding.severity.as_str(),
            evidence: finding.evidence.as_str(),
            message: &finding.message,
            advice: &finding.advice,
        }
    }
}

impl ResponseJson {
    fn new(response: response::Response, reveal: bool) -> Self {
        let was_read = response.whole || !response.body.is_empty();
        let body = match String::from_utf8(response.body) {
            Ok(body) if was_read => Body::Text { body: Some(body) },
            // An empty text would claim that the service stored an empty body.
            Ok(_) => Body::Text { body: None },
            Err(error) => Body::Bytes { body_base64: STANDARD.encode(error.as_bytes()) },
        };
        // If only a part of the value was read, headers may be missing or cut, unless the body
        // begins behind them.
        let mut headers = None;
        if response.whole || was_read && !response.headers.is_empty() {
            headers = Some(HeadersJson { headers: response.headers, reveal });
        }
        Self { status: response.status, headers, body, whole: response.whole }
    }
}

impl Serialize for HeadersJson {
    /// A header that occurs several times is one entry with several values, where it occurs first.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut each: Vec<(&str, Vec<&str>)> = Vec::with_capacity(self.headers.len());
        // A response may have very many headers, so that beyond a few a map finds the earlier ones.
        let mut places: HashMap<&str, usize> = HashMap::new();
        let has_map = self.headers.len() > FEW_HEADERS;
        for (name, value) in &self.headers {
            let known = if has_map {
                places.get(name.as_str()).copied()
            } else {
                each.iter().position(|(known, _)| known == name)
            };
            let place = known.unwrap_or(each.len());
            if place == each.len() {
                each.push((name, Vec::with_capacity(1)));
                if has_map {
                    places.insert(name, place);
                }
            }
            // The name stays, so that a reader knows that the header is there.
            let hidden = !self.reveal && is_secret_header(name);
            each[place].1.push(if hidden { HIDDEN } else { value.as_str() });
        }
        let mut map = serializer.serialize_map(Some(each.len()))?;
        for (name, values) in &each {
            map.serialize_entry(name, values)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{record, text};

    /// An object of this many headers, with names that JSON escapes, a name that occurs twice in
    /// other letters, and lists.
    fn stored(headers: usize) -> Record {
        let mut names = String::from(r#""A\"b,:":["x"],"a\"b,:":["y","z"],"Set-Cookie":["s=1"]"#);
        for number in 0..headers {
            names.push_str(&format!(r#","X-{number}":["{number}"]"#));
        }
        let value = format!(
            r#"{{"status":1,"response":{{"StatusCode":201,"Header":{{{names}}},"Body":"e30="}}}}"#
        );
        record("go-chi", &[(text(value), TimeLeft::Millis(60_000))])
    }

    #[test]
    fn a_line_is_what_serde_json_writes() {
        for headers in [0, 40] {
            let record = stored(headers);
            let expected = serde_json::to_string(&RecordJson::of(&record, false)).unwrap();
            let records = [record.clone(), record];
            let lines = lines(&records, "\n", false, String::new());
            assert_eq!(lines, format!("{expected}\n{expected}"));
        }
    }

    #[test]
    fn repeated_headers_are_one_entry_however_many_headers_there_are() {
        let pairs = |count: usize| {
            let mut headers = vec![("b".to_owned(), "1".to_owned())];
            headers.extend((0..count).map(|number| (format!("x-{number}"), String::new())));
            headers.push(("b".to_owned(), "2".to_owned()));
            HeadersJson { headers, reveal: false }
        };
        for count in [0, 40] {
            let json = serde_json::to_value(pairs(count)).unwrap();
            assert_eq!(json["b"], serde_json::json!(["1", "2"]), "{count}");
            assert_eq!(json.as_object().unwrap().len(), count + 1);
        }
    }
}
