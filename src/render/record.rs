//! One record for people: what it is, what the next request gets, what is wrong and what to do.

use std::time::Duration;

use super::page::Page;
use super::schema::named;
use super::style::View;
use super::{body, escape, record_json, words};
use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::record::response::{SECRET_HEADERS, is_secret_header};
use crate::domain::record::{Content, Expiry, Record, Response, SeenKey};
use crate::domain::schema::{Schema, State, TtlOf};

/// A record as a page; `reveal` shows credentials in headers.
pub fn page(record: &Record, view: View, reveal: bool) -> String {
    let mut page = RecordPage { page: Page::new(view), reveal };
    page.head(record);
    page.keys(record);
    if let Some(expiry) = words::own_expiry(record) {
        page.page.field("Own expiry", &expiry);
    }
    if record.state != State::Absent {
        page.lock_and_result(record);
        page.content(record);
    }
    if let Some(response) = record.response() {
        page.response(&response);
    }
    page.findings(record);
    page.page.text
}

/// The bytes of a value that nobody could read, as many as show what kind of value it is.
const FIRST_BYTES: usize = 64;

/// The bytes that were read of a record's Redis keys, escaped: of each at most `most`. Unless `reveal` is set, bytes that hold
/// credentials are withheld.
pub fn raw(record: &Record, view: View, most: usize, reveal: bool) -> String {
    let mut page = Page::new(view);
    for key in &record.seen.keys {
        let redis_key = escape::text(&key.redis_key);
        if let Some(name) = secret_in(record, &key.content).filter(|_| !reveal) {
            let why = format!(
                "{redis_key}: withheld, because the bytes hold the header {name}; --reveal shows them"
            );
            page.field("Raw", &why);
            continue;
        }
        match &key.content {
            Content::Absent => {}
            Content::Text { head, length } => {
                page.field("Raw", &format!("{redis_key}{}", cut(head, most, *length)));
                page.indented(4, &escape::text(&head[..head.len().min(most)]));
            }
            Content::Hash(hash) => {
                page.field("Raw", &format!("{redis_key}, {} fields", hash.count));
                for field in &hash.fields {
                    let value = &field.head[..field.head.len().min(most)];
                    page.indented(
                        4,
                        &format!("{} = {}", escape::text(&field.name), escape::text(value)),
                    );
                }
            }
            Content::Other(kind) => {
                page.field("Raw", &format!("{redis_key}: a {kind}, which is not read"))
            }
        }
    }
    page.text
}

/// The name of a header with credentials that a value holds. Its name in quotes among the bytes counts, too: nobody decoded a
/// value of another program.
fn secret_in(record: &Record, content: &Content) -> Option<String> {
    let name_among =
        |bytes: &[u8]| SECRET_HEADERS.iter().find(|name| quoted_at(bytes, name).is_some()).copied();
    let in_bytes = match content {
        Content::Absent | Content::Other(_) => return None,
        Content::Text { head, .. } => name_among(head),
        Content::Hash(hash) => hash.fields.iter().find_map(|field| {
            let is_name = |name: &&&str| field.name.eq_ignore_ascii_case(name.as_bytes());
            SECRET_HEADERS.iter().find(is_name).copied().or_else(|| name_among(&field.head))
        }),
    };
    let decoded = || {
        let headers = record.response()?.headers;
        headers.into_iter().map(|(name, _)| name).find(|name| is_secret_header(name))
    };
    in_bytes.map(str::to_owned).or_else(decoded).map(|name| name.to_ascii_lowercase())
}

/// Where bytes hold this name in double quotes, in capitals or not.
fn quoted_at(bytes: &[u8], name: &str) -> Option<usize> {
    memchr::memchr_iter(b'"', bytes).find(|at| {
        let behind = &bytes[at + 1..];
        let is_name = behind
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        is_name && behind.get(name.len()) == Some(&b'"')
    })
}

/// Says how much of a value is shown, where that is not all.
fn cut(head: &[u8], most: usize, length: Option<u64>) -> String {
    let shown = head.len().min(most) as u64;
    match length {
        Some(length) if length == shown => String::new(),
        Some(length) => format!(", the first {} of {}", words::bytes(shown), words::bytes(length)),
        None => format!(", the first {}", words::bytes(shown)),
    }
}

struct RecordPage {
    page: Page,
    reveal: bool,
}

impl RecordPage {
    fn head(&mut self, record: &Record) {
        let palette = self.page.view.palette;
        let key = palette.bold(&escape::key(&record.key));
        let (state, schema) = (palette.state(record.state), palette.dim(&record.schema.name));
        self.page.line(&format!("{key}  {state}  {schema}"));
        let (word, rest) = words::next_request(record);
        let word = palette.answer(record.next_request.answer, word);
        self.page.field("Next request", &format!("{word}{rest}"));
    }

    fn keys(&mut self, record: &Record) {
        let label = if record.seen.keys.len() > 1 { "Redis keys" } else { "Redis key" };
        for (index, key) in record.seen.keys.iter().enumerate() {
            self.page.field(if index == 0 { label } else { "" }, &redis_key(record, key));
        }
    }

    fn lock_and_result(&mut self, record: &Record) {
        if let Some(why) = record.claim.foreign_because() {
            let name = &record.schema.name;
            self.page.field("Form", &format!("not {name}'s: {}", escape::text(why.as_bytes())));
        }
        if record.state == State::InProgress || record.owner().is_some() {
            self.page.field(
                "Owner",
                &record
                    .owner()
                    .map_or_else(|| "unknown: the schema keeps none".to_owned(), escape::text),
            );
        }
        if record.state == State::Unreadable && record.schema.keys.len() == 1 {
            self.page.field("TTL", &record.expiry().map_or_else(String::new, words::expiry));
        } else if let Some(lock) = record.lock() {
            let left = match (record.has_lapsing_lock(), lock.expiry.millis()) {
                (true, Some(ms)) => format!("{} left of the Redis key's own", duration::short(ms)),
                _ => time_left(lock.expiry, &record.schema, TtlOf::Lock),
            };
            self.page.field("Lock TTL", &left);
        }
        if let Some(result) = record.result() {
            self.page.field("Result TTL", &time_left(result.expiry, &record.schema, TtlOf::Result));
        }
    }

    fn content(&mut self, record: &Record) {
        self.page.field("Age", &words::age(record.age));
        let memory = record
            .memory_bytes()
            .map(|memory| format!(", {} of memory", words::bytes(memory)))
            .unwrap_or_default();
        let size = record.size_bytes().map_or_else(|| "unknown".to_owned(), words::bytes);
        self.page.field("Size", &format!("{size}{memory}"));
        // A value that was idle for longer than it exists would only puzzle.
        let exists =
            |idle: &Duration| record.age.is_none_or(|age| idle.as_secs() * 1_000 <= age.millis);
        if let Some(idle) = record.idle().filter(exists) {
            let idle = if idle.as_secs() == 0 {
                "under 1s".to_owned()
            } else {
                duration::short(idle.as_secs() * 1_000)
            };
            self.page.field("Idle", &format!("{idle} since it was last touched"));
        }
        if record.state == State::Unreadable {
            self.first_bytes(record);
        }
        if let Some(encoding) = record.shown_only() {
            self.page.field(
                "Value",
                &format!("{}, shown as its bytes: idemctl never decodes one", named(encoding)),
            );
        }
        if let Some(fingerprint) = record.fingerprint() {
            self.page.field("Fingerprint", &escape::text(fingerprint.as_bytes()));
        }
        if let Some(error) = record.error() {
            self.page.field("Error", &escape::text(error.as_bytes()));
        }
        if let Some(blob) = record.blob() {
            self.page.field("Blob pointer", &escape::json(blob.to_string()));
        }
        if !record.seen.atomic {
            self.page.field("Read", "one Redis key after the other, not at one moment: a cluster keeps them apart or is moving them, or scripts are not permitted");
        }
    }

    /// How the values begin that nobody could read.
    fn first_bytes(&mut self, record: &Record) {
        for key in &record.seen.keys {
            if let Content::Text { head, length } = &key.content {
                let mut most = FIRST_BYTES;
                if !self.reveal {
                    let first = &head[..head.len().min(FIRST_BYTES)];
                    // The name of a header with credentials, and what follows, is not shown.
                    let secret =
                        SECRET_HEADERS.iter().filter_map(|name| quoted_at(first, name)).min();
                    most = secret.unwrap_or(FIRST_BYTES);
                }
                let first = &head[..head.len().min(most)];
                let cut = cut(head, most, *length);
                self.page.field("Value", &format!("{}{cut}", escape::text(first)));
            }
        }
    }

    fn response(&mut self, response: &Response) {
        let status = response
            .status
            .map_or_else(|| "no status kept".to_owned(), |status| status.to_string());
        self.page.field("Response", &status);
        for (name, value) in &response.headers {
            let shown = if self.reveal || !is_secret_header(name) {
                value.as_str()
            } else {
                record_json::HIDDEN
            };
            let line =
                format!("{}: {}", escape::text(name.as_bytes()), escape::text(shown.as_bytes()));
            self.page.field("", &line);
        }
        if response.body.is_empty() {
            return;
        }
        let part = if response.whole { "" } else { ", the beginning; --full reads it all" };
        self.page.field("Body", &format!("{}{part}", words::bytes(response.body.len() as u64)));
        for line in body::lines(&response.body) {
            self.page.indented(4, &line);
        }
    }

    fn findings(&mut self, record: &Record) {
        for finding in &record.findings {
            let palette = self.page.view.palette;
            let severity = palette.severity(finding.severity);
            let code = palette.bold(&[finding.evidence.mark(), finding.code.as_str()].concat());
            self.page.wrapped(
                2,
                &format!("{severity} {code}: {}", escape::text(finding.message.as_bytes())),
            );
            // Names in command lines are escaped already: escaped twice, they would name another record.
            self.page.wrapped(4, &format!("→ {}", escape::again(&finding.advice)));
        }
    }
}

fn redis_key(record: &Record, key: &SeenKey) -> String {
    let there = match &key.content {
        Content::Absent => " (absent)".to_owned(),
        Content::Hash(hash) if hash.count == 1 => " (a hash of 1 field)".to_owned(),
        Content::Hash(hash) => format!(" (a hash of {} fields)", hash.count),
        Content::Other(kind) => format!(" (a {kind})"),
        Content::Text { .. } => String::new(),
    };
    let role = match record.schema.keys.len() {
        1 => String::new(),
        _ => record
            .seen
            .keys
            .iter()
            .position(|seen| seen.redis_key == key.redis_key)
            .map(|role| format!(" [{}]", record.schema.keys[role].role.as_str()))
            .unwrap_or_default(),
    };
    format!("{}{role}{there}", escape::text(&key.redis_key))
}

fn time_left(expiry: Expiry, schema: &Schema, of: TtlOf) -> String {
    let allowed = schema.ttl(of).map(|allowed| duration::short(millis(allowed)));
    let Some(allowed) = allowed else {
        return match expiry {
            Expiry::Never => "none, as the schema has it: the service gives it none".to_owned(),
            Expiry::In(ms) => format!("{} left, though the schema gives none", duration::short(ms)),
        };
    };
    match expiry {
        Expiry::Never => format!("none: it never expires (the schema gives {allowed})"),
        Expiry::In(ms) => {
            let whose = if schema.states_ttl(of) { "configured" } else { "schema default" };
            format!("{} left, {whose} {allowed}", duration::short(ms))
        }
    }
}
