//! One record for people: what it is, what the next request gets, what is wrong and what to do.

use super::page::Page;
use super::style::View;
use super::{body, escape, record_json, words};
use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::record::response::{SECRET_HEADERS, is_secret_header};
use crate::domain::record::{Content, Evidence, KeyState, Record, Response, TimeLeft, ValueField};
use crate::domain::schema::{State, TtlOf};

/// What a page shows beyond what everybody wants to see.
#[derive(Clone, Copy, Default)]
pub struct PageOptions {
    /// True to show credentials in headers.
    pub reveal: bool,
    /// True to show all of a long body.
    pub full: bool,
}

/// The largest body that is shown whole without `--full`, in bytes.
const PART_OF_BODY: &str = " (only the beginning; --full shows all of it)";

const LARGEST_BODY: usize = 64 * 1024;

/// How many bytes are shown of a larger body, which is about a screen.
const FIRST_OF_BODY: usize = 4 * 1024;

/// A record as a page of text.
pub fn page(record: &Record, view: View, options: PageOptions) -> String {
    let PageOptions { reveal, full } = options;
    let mut page = RecordPage { page: Page::new(view), reveal, full };
    page.heading(record);
    page.keys(record);
    if let Some(expiry) = words::own_expiry(record) {
        page.page.field("Own expiry", &expiry);
    }
    if record.state != State::Absent {
        page.lock_and_result(record);
        page.content(record);
    }
    if let Some(response) = record.response() {
        page.response(record, &response);
    }
    page.findings(record);
    page.page.text
}

/// What is shown of a field that is unknown, because the value was read only in part.
const UNREAD: &str = "not in the part of the value that was read; --full reads all of it";

/// From this idle time on, in milliseconds, it says more about the age than that the key is in use.
const SHOWS_AGE_MS: u64 = 60_000;

/// How long ago the record was last read or written. A write touches a key, so that the value is at
/// least that old. `None` if the server does not tell, or if an age that is known contradicts it.
fn idle(record: &Record) -> Option<String> {
    let since = words::idle(record.idle()?);
    let idle_ms = record.idle()?.as_secs() * 1_000;
    let is_within_age = record.age.is_some_and(|age| idle_ms <= age.millis);
    let is_age_proven = record.age.is_some_and(|age| age.evidence > Evidence::Estimated);
    if is_age_proven && !is_within_age {
        return None;
    }
    Some(if is_within_age || idle_ms < SHOWS_AGE_MS {
        format!("touched {since} ago")
    } else {
        format!("not touched for {since}, so at least that old")
    })
}

/// How many bytes of an unreadable value are shown, which is enough to recognise its kind.
const FIRST_BYTES: usize = 64;

/// The bytes that were read of a record's Redis keys, escaped, at most `most` of each key. Unless
/// `reveal` is set, bytes that contain credentials are withheld.
pub fn raw(record: &Record, view: View, most: usize, reveal: bool) -> String {
    let mut page = Page::new(view);
    for key in &record.seen.keys {
        let redis_key = escape::text(&key.redis_key);
        if !reveal && let Some(name) = secret_in(record, &key.content) {
            let why = format!(
                "{redis_key}: withheld, because the bytes contain the header {name}; --reveal shows \
                them"
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
            Content::Other(kind) => page.field(
                "Raw",
                &format!("{redis_key}: a {kind}, whose content idemctl does not read"),
            ),
        }
    }
    page.text
}

/// The name of a header with credentials that a value contains. A name in quotes among the bytes
/// counts too, because no schema decodes a value of another program.
fn secret_in(record: &Record, content: &Content) -> Option<String> {
    match content {
        Content::Absent | Content::Other(_) => return None,
        Content::Text { head, .. } => {
            if let Some(name) = secret_name_in(head) {
                return Some(name.to_owned());
            }
        }
        Content::Hash(hash) => {
            for field in &hash.fields {
                for name in SECRET_HEADERS {
                    if field.name.eq_ignore_ascii_case(name.as_bytes()) {
                        return Some((*name).to_owned());
                    }
                }
                if let Some(name) = secret_name_in(&field.head) {
                    return Some(name.to_owned());
                }
            }
        }
    }
    // A codec may hide the name among the bytes.
    for (name, _) in record.response()?.headers {
        if is_secret_header(&name) {
            return Some(name.to_ascii_lowercase());
        }
    }
    None
}

/// The first name of a header with credentials that bytes hold in double quotes.
fn secret_name_in(bytes: &[u8]) -> Option<&'static str> {
    SECRET_HEADERS.iter().find(|name| quoted_at(bytes, name).is_some()).copied()
}

/// How many of the first bytes of a value are shown. They end before the name of a header with
/// credentials.
fn bytes_before_secret(head: &[u8]) -> usize {
    let first = &head[..head.len().min(FIRST_BYTES)];
    let mut most = FIRST_BYTES;
    for name in SECRET_HEADERS {
        if let Some(at) = quoted_at(first, name) {
            most = most.min(at);
        }
    }
    most
}

/// The position of this name in double quotes, in capitals or not.
fn quoted_at(bytes: &[u8], name: &str) -> Option<usize> {
    for at in memchr::memchr_iter(b'"', bytes) {
        let after = &bytes[at + 1..];
        if let Some(found) = after.get(..name.len())
            && found.eq_ignore_ascii_case(name.as_bytes())
            && after.get(name.len()) == Some(&b'"')
        {
            return Some(at);
        }
    }
    None
}

/// Says how much of a value is shown; empty if all of it is.
fn cut(head: &[u8], most: usize, length: Option<u64>) -> String {
    let shown = head.len().min(most) as u64;
    match length {
        Some(length) if length == shown => String::new(),
        Some(length) => format!(", the first {} of {}", words::bytes(shown), words::bytes(length)),
        None => format!(", the first {}", words::bytes(shown)),
    }
}

/// A page under construction.
struct RecordPage {
    page: Page,
    reveal: bool,
    full: bool,
}

impl RecordPage {
    /// What the record is, and what the next request gets.
    fn heading(&mut self, record: &Record) {
        let palette = self.page.view.palette;
        let key = palette.bold(&escape::key(&record.key));
        let state = palette.state(record.state);
        let schema = palette.dim(&record.schema.name);
        self.page.line(&format!("{key}  {state}  {schema}"));
        let (word, rest) = words::next_request(record);
        let word = palette.answer(record.next_request.answer, word);
        self.page.field("Next request", &format!("{word}{rest}"));
    }

    fn keys(&mut self, record: &Record) {
        let label = if record.seen.keys.len() > 1 { "Redis keys" } else { "Redis key" };
        for (key_index, key) in record.seen.keys.iter().enumerate() {
            let label = if key_index == 0 { label } else { "" };
            self.page.field(label, &redis_key(record, key_index, key));
        }
    }

    fn lock_and_result(&mut self, record: &Record) {
        if let Some(why) = record.author.unrecognised_because() {
            let name = &record.schema.name;
            self.page.field(
                "Form",
                &format!("does not match schema {name} ({})", escape::text(why.as_bytes())),
            );
        }
        // A result may still name the worker that stored it.
        if record.state == State::InProgress || record.owner().is_some() {
            let owner = match record.owner() {
                Some(owner) => escape::text(owner),
                None if record.unread_fields().contains(ValueField::Owner) => UNREAD.to_owned(),
                None if record.keeps_owners() => "none in the value".to_owned(),
                None => "unknown, because this schema stores no owner".to_owned(),
            };
            self.page.field("Owner", &owner);
        }
        let is_neither = matches!(record.state, State::Unreadable | State::Released);
        if is_neither && !record.schema.has_separate_result() {
            // The value is no lock and no result, or may be either, so no TTL of the schema
            // applies.
            let time_left = record.time_left().map(words::time_left);
            self.page.field("TTL", &time_left.unwrap_or_default());
        } else if let Some(lock) = record.lock() {
            let key_index = record.schema.lock_key_index();
            let left = time_left(lock.time_left, record, key_index, TtlOf::Lock);
            self.page.field("Lock TTL", &left);
        }
        if let Some(result) = record.result() {
            let key_index = record.schema.result_key_index();
            let left = time_left(result.time_left, record, key_index, TtlOf::Result);
            self.page.field("Result TTL", &left);
        }
    }

    fn content(&mut self, record: &Record) {
        let mut age = words::age(record.age);
        if let Some(ttl) = record.contradicted_lock_ttl() {
            age += &format!(
                "; this time, or the lock TTL of {}, is wrong, unless the lock was renewed",
                duration::short(ttl)
            );
        }
        self.page.field("Age", &age);
        let mut size = match record.size_bytes() {
            Some(size) => words::bytes(size),
            None => "unknown".to_owned(),
        };
        if let Some(memory) = record.memory_bytes() {
            size += &format!(", {} in memory", words::bytes(memory));
        }
        self.page.field("Size", &size);
        if let Some(idle) = idle(record) {
            self.page.field("Idle", &idle);
        }
        if record.state == State::Unreadable {
            self.first_bytes(record);
        }
        if let Some(encoding) = record.shown_only() {
            self.page.field(
                "Value",
                &format!(
                    "{}, shown as bytes, because idemctl never decodes it",
                    encoding.language()
                ),
            );
        }
        if let Some(fingerprint) = record.fingerprint() {
            self.page.field("Fingerprint", &escape::text(fingerprint.as_bytes()));
        } else if record.unread_fields().contains(ValueField::Fingerprint) && !record.is_undecided()
        {
            self.page.field("Fingerprint", UNREAD);
        }
        if let Some(error) = record.error() {
            self.page.field("Error", &escape::text(error.as_bytes()));
        }
        if let Some(blob) = record.blob() {
            self.page.field("Blob pointer", &escape::json(blob.to_string()));
        }
        if !record.seen.atomic {
            self.page.field(
                "Read",
                "one Redis key after another, not atomically, because the cluster keeps them in \
                different slots, is moving them, or scripts are not permitted",
            );
        }
    }

    /// The beginning of each unreadable value.
    fn first_bytes(&mut self, record: &Record) {
        for key in &record.seen.keys {
            if let Content::Text { head, length } = &key.content {
                let most = if self.reveal { FIRST_BYTES } else { bytes_before_secret(head) };
                let first = &head[..head.len().min(most)];
                let cut = cut(head, most, *length);
                self.page.field("Value", &format!("{}{cut}", escape::text(first)));
            }
        }
    }

    fn response(&mut self, record: &Record, response: &Response) {
        let status = match response.status {
            Some(status) => status.to_string(),
            None if record.unread_fields().contains(ValueField::Status) => UNREAD.to_owned(),
            None => "no stored status".to_owned(),
        };
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
        let size = words::bytes(response.body.len() as u64);
        let size = if response.whole { size } else { format!("at least {size}") };
        let mut shown = &response.body[..];
        let mut about = "";
        if !self.full && shown.len() > LARGEST_BODY {
            shown = whole_characters(&shown[..FIRST_OF_BODY]);
            about = PART_OF_BODY;
        } else if !response.whole {
            about = PART_OF_BODY;
        }
        self.page.field("Body", &format!("{size}{about}"));
        for line in body::lines(shown) {
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
            // The preview of a change has no advice.
            if finding.advice.is_empty() {
                continue;
            }
            // Names in command lines are already escaped. Escaping them again would name another
            // record.
            self.page.wrapped(4, &format!("→ {}", escape::again(&finding.advice)));
        }
    }
}

/// Bytes without the beginning of a UTF-8 character at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// A Redis key with its role in the schema, if there are several, and its type unless it is a
/// string.
fn redis_key(record: &Record, key_index: usize, key: &KeyState) -> String {
    let content = match &key.content {
        Content::Absent => " (absent)".to_owned(),
        Content::Hash(hash) => format!(" (a hash of {})", words::counted(hash.count, "field")),
        Content::Other(kind) => format!(" (a {kind})"),
        Content::Text { .. } => String::new(),
    };
    let role = if record.schema.keys.len() > 1 {
        format!(" [{}]", record.schema.keys[key_index].role.as_str())
    } else {
        String::new()
    };
    format!("{}{role}{content}", escape::text(&key.redis_key))
}

/// The time that a Redis key has left, and the TTL of the schema.
fn time_left(time_left: TimeLeft, record: &Record, key_index: usize, of: TtlOf) -> String {
    let left = match time_left {
        TimeLeft::NoExpiry => "never expires".to_owned(),
        TimeLeft::Millis(ms) => format!("{} left", duration::short(ms)),
    };
    // The expiry in the value has a line of its own, and may be earlier.
    if record.key_contains_expiry(key_index) {
        return format!("{left} (the Redis key)");
    }
    let Some(allowed) = record.schema.ttl(of) else {
        return format!("{left}; the schema defines no TTL");
    };
    let whose = if record.schema.states_ttl(of) { "configured" } else { "schema default" };
    format!("{left}, {whose} {}", duration::short(millis(allowed)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    /// Rule: a key that was not touched for long is at least that old, unless more is known of its
    /// age.
    #[test]
    fn an_idle_time_says_how_old_a_record_is_at_least() {
        let timed = |at| {
            let value = format!(r#"{{"done":false,"at":{at}}}"#);
            record("timed", &[(text(value), TimeLeft::NoExpiry)])
        };
        let not_touched = "not touched for 3d, so at least that old";
        for (record, idle_s, expected) in [
            (chi(CHI_LOCK, TimeLeft::NoExpiry), 0, Some("touched under 1s ago")),
            (chi(CHI_LOCK, TimeLeft::NoExpiry), 4, Some("touched 4s ago")),
            (chi(CHI_LOCK, TimeLeft::NoExpiry), 259_200, Some(not_touched)),
            // The estimate of 59 s is wrong.
            (chi(CHI_LOCK, TimeLeft::Millis(1_000)), 259_200, Some(not_touched)),
            // Read at 1,000,000 ms.
            (timed(1), 900, Some("touched 15m ago")),
            (timed(999_000), 900, None),
        ] {
            let mut record = record;
            record.seen.keys[0].idle = Some(Duration::from_secs(idle_s));
            assert_eq!(idle(&record).as_deref(), expected, "{idle_s}");
        }
        assert_eq!(idle(&timed(1)), None, "the server does not tell");
    }

    /// Rule: an age far above the lock TTL contradicts it only if the lock still expires in time.
    #[test]
    fn a_time_in_a_lock_may_contradict_its_ttl() {
        let held = |at, left| {
            let value = format!(r#"{{"done":false,"at":{at}}}"#);
            record("timed", &[(text(value), left)]).contradicted_lock_ttl()
        };
        // Read at 1,000,000 ms, with a lock TTL of a minute.
        assert_eq!(held(399_999, TimeLeft::Millis(26_000)), Some(60_000));
        assert_eq!(held(400_000, TimeLeft::Millis(26_000)), None);
        assert_eq!(held(1, TimeLeft::Millis(60_001)), None, "it is in excess");
        assert_eq!(held(1, TimeLeft::NoExpiry), None);
        assert_eq!(chi(CHI_LOCK, TimeLeft::Millis(1)).contradicted_lock_ttl(), None);
    }
}
