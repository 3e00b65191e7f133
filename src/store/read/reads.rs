//! What a page asks of each of its records, and what the replies say.

use std::ops::Range;

use super::reader::{ReadLimit, Seen};
use crate::domain::record::{Candidate, Content, Deadline, Expiry, Observation, SeenKey};
use crate::store::connection::{Connection, Token};
use crate::store::error::StoreError;

/// What is asked of each Redis key.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct KeyReads {
    /// The least that is read of a value.
    pub(in crate::store) head: ReadLimit,
    /// True when the lengths of values are asked for, too.
    pub(in crate::store) lengths: bool,
    /// False when only deadlines are asked for, which touches no key.
    pub(in crate::store) values: bool,
    /// True when the node tells deadlines by PEXPIRETIME, and its time; else PTTL is asked, and the time around the page.
    pub(in crate::store) exact: bool,
}

impl KeyReads {
    /// Asks for these records.
    pub(in crate::store) fn ask<'a>(
        self,
        stream: &mut Connection,
        records: impl Iterator<Item = &'a Candidate>,
    ) {
        if !self.exact {
            stream.queue(&[b"TIME"]);
        }
        for candidate in records {
            let last_byte = match self.head_of(candidate) {
                // One byte more tells a value that is longer from one that just fits.
                ReadLimit::Bytes(bytes) => bytes.to_string(),
                ReadLimit::Whole => "-1".to_owned(),
            };
            for redis_key in &candidate.redis_keys {
                if self.values {
                    stream.queue(&[b"GETRANGE", redis_key, b"0", last_byte.as_bytes()]);
                }
                stream.queue(&[self.expiry_command().as_bytes(), redis_key]);
                if self.values && self.lengths {
                    stream.queue(&[b"STRLEN", redis_key]);
                }
            }
        }
        stream.queue(&[b"TIME"]);
    }

    /// KeyReads the replies to [`KeyReads::ask`], one result a record: a record may be out of bounds for the user.
    pub(in crate::store) async fn seen<'a>(
        self,
        stream: &mut Connection,
        records: impl ExactSizeIterator<Item = &'a Candidate>,
    ) -> Result<Vec<Seen>, StoreError> {
        let before = if self.exact { None } else { time(stream).await? };
        let mut seen = Vec::with_capacity(records.len());
        for candidate in records {
            seen.push(self.record(stream, candidate, before).await?);
        }
        let after = time(stream).await?;
        let set = if self.exact { set_expiries } else { set_deadlines };
        seen.iter_mut().flatten().for_each(|seen| set(seen, after));
        Ok(seen)
    }

    /// How much is read of a record's values: no less than tells what they are.
    fn head_of(self, candidate: &Candidate) -> ReadLimit {
        match self.head {
            ReadLimit::Bytes(bytes) => ReadLimit::Bytes(bytes.max(candidate.head_bytes())),
            ReadLimit::Whole => ReadLimit::Whole,
        }
    }

    fn expiry_command(self) -> &'static str {
        if self.exact { "PEXPIRETIME" } else { "PTTL" }
    }

    async fn record(
        self,
        stream: &mut Connection,
        candidate: &Candidate,
        now: Option<u64>,
    ) -> Result<Seen, StoreError> {
        let mut keys = Vec::with_capacity(candidate.redis_keys.len());
        let mut forbidden = None;
        for redis_key in &candidate.redis_keys {
            let mut content = match self.values {
                true => self.content(stream, candidate).await?,
                false => Ok(Content::unread()),
            };
            let expiry = number(stream, self.expiry_command()).await?;
            if self.values && self.lengths {
                let now =
                    number(stream, "STRLEN").await?.ok().and_then(|now| u64::try_from(now).ok());
                if let Ok(Content::Text { head, length }) = &mut content {
                    // It may have changed meanwhile.
                    *length = length.or(now.map(|now| now.max(head.len() as u64)));
                }
            }
            match (content, expiry) {
                (Ok(_), Ok(-2)) => keys.push(self.seen_key(redis_key, Content::Absent, -2)),
                (Ok(content), Ok(expiry)) => keys.push(self.seen_key(redis_key, content, expiry)),
                (Err(error), _) | (_, Err(error)) => forbidden = Some(error),
            }
        }
        Ok(match forbidden {
            Some(error) => Err(error),
            None => Ok(Observation { server_ms: now, atomic: keys.len() == 1, keys }),
        })
    }

    /// `told` is the reply of PEXPIRETIME or PTTL.
    fn seen_key(self, redis_key: &[u8], content: Content, told: i64) -> SeenKey {
        let (expiry, deadline) = match self.exact {
            true => (Expiry::Never, Deadline::from_pexpiretime(told)),
            false => (Expiry::from_pttl(told), Deadline::from_pttl(told, None, None)),
        };
        SeenKey::new(redis_key, content, expiry, deadline)
    }

    async fn content(
        self,
        stream: &mut Connection,
        candidate: &Candidate,
    ) -> Result<Result<Content, StoreError>, StoreError> {
        match stream.token().await? {
            Token::Text(value) => {
                let value = stream.bytes(value);
                let is_longer =
                    matches!(self.head_of(candidate), ReadLimit::Bytes(most) if value.len() > most);
                let head = &value[..value.len() - usize::from(is_longer)];
                let length = (!is_longer).then_some(head.len() as u64);
                Ok(Ok(Content::Text { head: head.to_vec(), length }))
            }
            Token::Error(text) => match about_the_key(stream, text)? {
                error if error.is_wrong_type() => Ok(Ok(Content::Other(String::new()))),
                error => Ok(Err(error)),
            },
            _ => Err(stream.unexpected("GETRANGE")),
        }
    }
}

/// What is left is counted from the time behind the page: a lock that was renewed while the page was read would have more
/// left than its TTL otherwise.
pub(super) fn set_expiries(seen: &mut Observation, after: Option<u64>) {
    seen.server_ms = after;
    for key in &mut seen.keys {
        key.expiry = Expiry::until(key.deadline, after.unwrap_or_default());
    }
}

/// PTTL was asked between these two moments: behind a page of many records on a busy server up to 55 ms apart.
fn set_deadlines(seen: &mut Observation, after: Option<u64>) {
    for key in &mut seen.keys {
        if let Expiry::In(left) = key.expiry {
            key.deadline =
                Deadline::from_pttl(i64::try_from(left).unwrap_or(i64::MAX), seen.server_ms, after);
        }
    }
}

/// Reads a reply that is a number, or an error of one Redis key.
pub(in crate::store) async fn number(
    stream: &mut Connection,
    asked: &str,
) -> Result<Result<i64, StoreError>, StoreError> {
    match stream.token().await? {
        Token::Integer(number) => Ok(Ok(number)),
        Token::Error(text) => about_the_key(stream, text).map(Err),
        _ => Err(stream.unexpected(asked)),
    }
}

/// What an error says of this one Redis key: that the user may not read it, that it is no string, or that the node does not
/// serve its slot. Any other ends the scan.
pub(super) fn about_the_key(
    stream: &Connection,
    text: Range<usize>,
) -> Result<StoreError, StoreError> {
    match stream.refusal(text) {
        error if error.is_permission() || error.is_wrong_type() || error.is_of_the_slot() => {
            Ok(error)
        }
        error => Err(error),
    }
}

/// Reads the reply of TIME, in milliseconds since the epoch; `None` where it may not be asked.
pub(in crate::store) async fn time(stream: &mut Connection) -> Result<Option<u64>, StoreError> {
    match stream.token().await? {
        Token::Array(2) => {}
        Token::Error(_) => return Ok(None),
        _ => return Err(stream.unexpected("TIME")),
    }
    let mut parts = [0_u64; 2];
    for part in &mut parts {
        let Token::Text(text) = stream.token().await? else {
            return Err(stream.unexpected("TIME"));
        };
        *part = String::from_utf8_lossy(stream.bytes(text)).parse().unwrap_or(0);
    }
    Ok(Some(parts[0].saturating_mul(1_000).saturating_add(parts[1] / 1_000)))
}
