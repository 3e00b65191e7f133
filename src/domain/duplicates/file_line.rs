//! A line of a file of `duplicates --from`: one JSON object per record, from any store.

use serde_json::Value;

use super::comparable::{Comparable, NotCompared};
use super::compare::{CompareRule, ComparedName, ComparedRecord, RecordParts, ResultOutcome};
use super::record_time::{RecordTime, TimeIs};
use super::stored_value::StoredValues;
use crate::domain::record::age::millis;
use crate::domain::record::{Evidence, Json};
use crate::domain::schema::State;

/// Numbers below this are seconds since the epoch, and others milliseconds: the year 5138 in
/// seconds, and 1973 in milliseconds.
const FIRST_MILLISECONDS: f64 = 1e11;

/// The last time that RFC 3339 can write, in milliseconds since the epoch.
const LAST_MS: f64 = 253_402_300_799_999.0;

/// The members that describe the record, and not its response.
const OWN_MEMBERS: [&str; 7] =
    ["key", "created_at", "state", "status", "fingerprint", "owner", "schema"];

/// What some programs write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A record of a file.
#[derive(Debug)]
pub(crate) struct FileLine {
    pub(crate) key: String,
    schema: String,
    created_ms: Option<u64>,
    state: Option<State>,
    status: Option<i64>,
    fingerprint: Option<String>,
    owner: Option<String>,
    /// The response, if the line has one; else the line itself.
    response: LineResponse,
    /// The line without its response.
    rest: Value,
}

#[derive(Debug)]
enum LineResponse {
    /// A text, which is a response body.
    Text(String),
    /// A body as a JSON value.
    Json(Value),
    /// The line itself.
    Line,
    /// The line says that there is none.
    Absent,
}

impl FileLine {
    /// Reads a line.
    ///
    /// # Errors
    /// Why the line is not a record.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(mut members) = value else {
            return Err("not a JSON object".to_owned());
        };
        let Some(Value::String(key)) = members.get("key") else {
            return Err("`key` is missing, or not a text".to_owned());
        };
        let key = key.clone();
        let status = match members.get("status") {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) if number.as_i64().is_some() => number.as_i64(),
            Some(_) => return Err("`status` is not a whole number".to_owned()),
        };
        let state = match text(&members, "state")? {
            None => None,
            Some(word) => Some(state(&word)?),
        };
        let created_ms = match members.get("created_at") {
            None | Some(Value::Null) => None,
            Some(at) => Some(time(at)?),
        };
        let schema = text(&members, "schema")?.unwrap_or_default();
        let fingerprint = text(&members, "fingerprint")?;
        let owner = text(&members, "owner")?;
        let response = match members.shift_remove("response") {
            Some(Value::String(text)) => LineResponse::Text(text),
            Some(Value::Null) => LineResponse::Absent,
            Some(other) => LineResponse::Json(other),
            None => LineResponse::Line,
        };
        let rest = Value::Object(members);
        Ok(Self { key, schema, created_ms, state, status, fingerprint, owner, response, rest })
    }

    /// The schema, empty if the line names none, and the key.
    pub(crate) fn name(&self) -> (&str, &str) {
        (&self.schema, &self.key)
    }

    /// The record as it is compared.
    pub(crate) fn compare(self, rule: &CompareRule) -> ComparedRecord {
        let name = ComparedName { schema: self.schema, key: self.key.into_bytes() };
        let body = match &self.response {
            LineResponse::Text(text) => Comparable::Yes(text.as_bytes()),
            _ => Comparable::No(NotCompared::Response),
        };
        let fingerprint = match &self.fingerprint {
            Some(fingerprint) => Comparable::Yes(fingerprint.as_str()),
            None => Comparable::No(NotCompared::Fingerprint),
        };
        let owner = match &self.owner {
            Some(owner) => Comparable::Yes(owner.as_bytes()),
            None => Comparable::No(NotCompared::Owner),
        };
        let rest = Json::from(self.rest);
        let stored = StoredValues::of_document(rest.by_ref());
        let parts = RecordParts { body, stored: Some(&stored), fingerprint, owner };
        let (mut values, fingerprint, further) = rule.parts(&name.key, &parts);
        // A body that is JSON in the line needs no parsing. The other reasons stay as they are.
        if values == Comparable::No(NotCompared::Response) {
            match self.response {
                LineResponse::Json(body) => {
                    values = rule.values_in(Some(&Json::from(body)), Some(&stored));
                }
                LineResponse::Line => values = rule.values_in(Some(&rest), Some(&stored)),
                LineResponse::Text(_) | LineResponse::Absent => {}
            }
        }
        ComparedRecord {
            name,
            state: self.state,
            status: self.status,
            outcome: ResultOutcome::of(self.state, self.status, false),
            owner: self.owner.map(String::into_bytes),
            time: self.created_ms.map(|at_ms| RecordTime {
                at_ms,
                is: TimeIs::Created,
                evidence: Evidence::Known,
            }),
            values,
            fingerprint,
            further,
        }
    }

    /// The response body, for counting pointers.
    pub(crate) fn body(&self) -> Option<Vec<u8>> {
        match &self.response {
            LineResponse::Text(text) => Some(text.clone().into_bytes()),
            LineResponse::Json(value) => Some(value.to_string().into_bytes()),
            LineResponse::Line => {
                let mut line = self.rest.clone();
                if let Value::Object(members) = &mut line {
                    members.retain(|name, _| !OWN_MEMBERS.contains(&name.as_str()));
                }
                Some(line.to_string().into_bytes())
            }
            LineResponse::Absent => None,
        }
    }
}

/// A member that is a text, or missing.
fn text(members: &serde_json::Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is not a text")),
    }
}

fn state(word: &str) -> Result<State, String> {
    for state in
        [State::InProgress, State::Completed, State::Failed, State::Released, State::Unreadable]
    {
        if state.as_str() == word {
            return Ok(state);
        }
    }
    Err("`state` is none of in-progress, completed, failed, released and unreadable".to_owned())
}

/// A time without the offset at its end, `+01:00`, and the milliseconds of the offset.
fn without_offset(text: &str) -> (&str, i64) {
    let Some((at, sign)) = text.char_indices().rev().nth(5) else { return (text, 0) };
    let sign = match sign {
        '+' => 1,
        '-' => -1,
        _ => return (text, 0),
    };
    let Some((hours, minutes)) = text[at + 1..].split_once(':') else { return (text, 0) };
    // A date also has a `-` six characters before its end, and no time.
    if hours.len() != 2 || !text.contains(['T', 't', ' ']) {
        return (text, 0);
    }
    match (hours.parse::<i64>(), minutes.parse::<i64>()) {
        (Ok(hours @ 0..=23), Ok(minutes @ 0..=59)) => {
            (&text[..at], sign * (hours * 60 + minutes) * 60_000)
        }
        _ => (text, 0),
    }
}

/// A time in milliseconds since the epoch: RFC 3339, or a number of seconds or milliseconds.
fn time(at: &Value) -> Result<u64, String> {
    let refused = || {
        "`created_at` is neither a time like 2026-11-26T18:00:00Z nor Unix seconds or milliseconds"
            .to_owned()
    };
    match at {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            // Some stores export numbers as texts.
            let number: serde_json::Number = text.parse().map_err(|_| refused())?;
            time(&Value::Number(number))
        }
        Value::String(text) => {
            let (local, offset_ms) = without_offset(text);
            let time = humantime::parse_rfc3339_weak(local).map_err(|_| refused())?;
            let since = time.duration_since(std::time::UNIX_EPOCH).map_err(|_| refused())?;
            millis(since).checked_add_signed(-offset_ms).ok_or_else(refused)
        }
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| *number >= 0.0).ok_or_else(refused)?;
            let at_ms = if number < FIRST_MILLISECONDS { number * 1_000.0 } else { number };
            if at_ms > LAST_MS {
                return Err(refused());
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the number is not negative, and less than 2^53"
            )]
            Ok(at_ms.round() as u64)
        }
        _ => Err(refused()),
    }
}
