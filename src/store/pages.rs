//! One node's keyspace page by page: while a page's records are read, the next one is on its way.
//!
//! Requests go out as SCAN, reads of the page before, SCAN, reads ... on one connection. The server always has a page to
//! work at while the one before it is decoded and shown.

use std::ops::Range;
use std::time::Instant;

use super::error::StoreError;
use super::pace::{Gait, Pace};
use super::read::{Head, Seen};
use super::resp::Token;
use super::scan::Scan;
use super::stream::Stream;
use super::target::Target;
use crate::domain::candidates::{self, Candidate};
use crate::domain::catalog::Catalog;
use crate::domain::observation::{Content, Expiry, Observation, SeenSlot};
use crate::domain::slot;

/// A record that a page holds: where it is, by which of its Redis keys it was found, what was read.
pub(super) type Found = (Candidate, usize, Seen);

/// A page that was read.
pub(super) struct Page {
    /// Redis keys that were looked at.
    pub(super) looked_at: usize,
    /// The records they belong to.
    pub(super) found: Vec<Found>,
    /// Those that this node does not serve alone: a cluster keeps their Redis keys apart, or is moving them.
    pub(super) elsewhere: Vec<(Candidate, usize)>,
}

/// Records that are being read.
struct Asked {
    looked_at: usize,
    places: Vec<(Candidate, usize)>,
    elsewhere: Vec<(Candidate, usize)>,
    lengths: bool,
    at: Instant,
}

/// A walk over one node's keyspace.
pub(super) struct Pages {
    stream: Stream,
    scan: Scan,
    pace: Pace,
    pattern: Vec<u8>,
    /// The least that is read of a value.
    head: Head,
    lengths: bool,
    scanning: bool,
    asked: Option<Asked>,
    /// True for a node of a cluster, which serves a part of the slots.
    in_cluster: bool,
    /// The server's time in milliseconds since the epoch, and when it was told; `None` where it may not be asked.
    clock: Option<(u64, Instant)>,
}

impl Pages {
    /// Connects, and asks for the first page. In a cluster `masters` says how many nodes are walked.
    ///
    /// # Errors
    /// As [`Stream::connect`].
    pub(super) async fn open(
        target: &Target,
        pattern: &[u8],
        head: Head,
        gait: Gait,
        masters: Option<usize>,
    ) -> Result<Self, StoreError> {
        let (stream, round_trip) = Stream::connect(target).await?;
        let (scan, pace) = (Scan::new(), Pace::new(round_trip, gait, masters.unwrap_or(1)));
        let (pattern, in_cluster) = (pattern.to_vec(), masters.is_some());
        let (lengths, scanning, asked, clock) = (false, false, None, None);
        let mut pages = Self { stream, scan, pace, pattern, head, lengths, scanning, asked, in_cluster, clock };
        if in_cluster {
            // A replica serves nobody who did not say that it may be behind; to a master it is nothing.
            pages.stream.ask(&[b"READONLY"]);
        }
        pages.stream.ask(&[b"TIME"]);
        pages.ask_for_page();
        pages.stream.send().await?;
        if in_cluster {
            pages.stream.token().await?;
        }
        pages.clock = pages.time().await?.map(|now| (now, Instant::now()));
        Ok(pages)
    }

    /// The next page of the records that the catalog's schemas own and whose idempotency keys `wanted` lets through;
    /// `None` at the end. After an error, or when it is given up in between, the walk cannot go on.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn next(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Page>, StoreError> {
        if self.asked.is_none() {
            self.turn(catalog, &wanted).await?;
        }
        let Some(asked) = self.asked.take() else { return Ok(None) };
        self.turn(catalog, &wanted).await?;
        let (mut found, mut elsewhere) = (Vec::with_capacity(asked.places.len()), asked.elsewhere);
        for (candidate, slot) in asked.places {
            match self.seen(&candidate, asked.lengths).await? {
                Err(error) if error.is_redirect() => elsewhere.push((candidate, slot)),
                seen => found.push((candidate, slot, seen)),
            }
        }
        self.pace.took(asked.at.elapsed());
        Ok(Some(Page { looked_at: asked.looked_at, found, elsewhere }))
    }

    /// Whether the pages to come bring the lengths of values along.
    pub(super) fn bring_lengths(&mut self, lengths: bool) {
        self.lengths = lengths;
    }

    /// Takes in the page of Redis keys that is on its way, asks for its records, and before them for the next page.
    async fn turn(&mut self, catalog: &Catalog, wanted: impl Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        if !self.scanning {
            return Ok(());
        }
        let (looked_at, places) = self.page(catalog, wanted).await?;
        self.ask_for_page();
        let apart = |(candidate, _): &(Candidate, usize)| {
            self.in_cluster
                && candidate.redis_keys.len() > 1
                && !slot::is_one(candidate.redis_keys.iter().map(Vec::as_slice))
        };
        let (elsewhere, places): (Vec<_>, Vec<_>) = places.into_iter().partition(apart);
        for (candidate, _) in &places {
            let last_byte = match self.head_of(candidate) {
                // One byte more tells a value that is longer from one that just fits.
                Head::Bytes(bytes) => bytes.to_string(),
                Head::Whole => "-1".to_owned(),
            };
            for redis_key in &candidate.redis_keys {
                self.stream.ask(&[b"GETRANGE", redis_key, b"0", last_byte.as_bytes()]);
                self.stream.ask(&[b"PTTL", redis_key]);
                if self.lengths {
                    self.stream.ask(&[b"STRLEN", redis_key]);
                }
            }
        }
        self.asked = Some(Asked { looked_at, places, elsewhere, lengths: self.lengths, at: Instant::now() });
        self.stream.send().await
    }

    /// How much is read of a record's values: no less than tells what they are.
    fn head_of(&self, candidate: &Candidate) -> Head {
        match self.head {
            Head::Bytes(bytes) => Head::Bytes(bytes.max(candidate.head_bytes())),
            Head::Whole => Head::Whole,
        }
    }

    fn ask_for_page(&mut self) {
        let count = self.pace.count().to_string();
        if self.scan.cursor().is_some() && self.scan.ask(self.pace.count()) {
            self.stream.ask(&[b"DBSIZE"]);
        }
        let cursor = self.scan.cursor();
        if let Some(cursor) = cursor {
            self.stream.ask(&[b"SCAN", cursor, b"MATCH", &self.pattern, b"COUNT", count.as_bytes()]);
        }
        self.scanning = cursor.is_some();
    }

    /// Reads the reply of SCAN: how many Redis keys it holds, and the records they belong to.
    async fn page(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(usize, Vec<(Candidate, usize)>), StoreError> {
        if self.scan.awaits_size() {
            let there = self.number("DBSIZE").await?.ok().and_then(|there| u64::try_from(there).ok());
            self.scan.there_are(there).map_err(|why| self.stream.endless(why))?;
        }
        match self.stream.token().await? {
            Token::Array(2) => {}
            Token::Error(text) => return Err(self.stream.refusal(text)),
            _ => return Err(self.stream.unexpected("SCAN")),
        }
        let Token::Text(cursor) = self.stream.token().await? else { return Err(self.stream.unexpected("SCAN")) };
        let cursor = self.stream.bytes(cursor).to_vec();
        let Token::Array(count) = self.stream.token().await? else { return Err(self.stream.unexpected("SCAN")) };
        self.scan.turn(&cursor, count).map_err(|why| self.stream.endless(why))?;
        let mut looked_at = 0;
        let mut places = Vec::new();
        for _ in 0..count {
            let Token::Text(redis_key) = self.stream.token().await? else { return Err(self.stream.unexpected("SCAN")) };
            let redis_key = self.stream.bytes(redis_key);
            if !self.scan.is_new(redis_key) {
                continue;
            }
            looked_at += 1;
            places
                .extend(candidates::for_redis_key(catalog, redis_key).filter(|(candidate, _)| wanted(&candidate.key)));
        }
        Ok((looked_at, places))
    }

    /// Reads the reply of TIME; `None` where it may not be asked.
    async fn time(&mut self) -> Result<Option<u64>, StoreError> {
        if !matches!(self.stream.token().await?, Token::Array(2)) {
            return Ok(None);
        }
        let mut parts = [0; 2];
        for part in &mut parts {
            let Token::Text(text) = self.stream.token().await? else { return Err(self.stream.unexpected("TIME")) };
            *part = String::from_utf8_lossy(self.stream.bytes(text)).parse().unwrap_or(0);
        }
        Ok(Some(parts[0] * 1_000 + parts[1] / 1_000))
    }

    /// The server's time now.
    fn now_ms(&self) -> Option<u64> {
        let (told, at) = self.clock?;
        Some(told.saturating_add(u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)))
    }

    /// Reads the replies about one record; it may be out of bounds for the user.
    async fn seen(&mut self, candidate: &Candidate, lengths: bool) -> Result<Seen, StoreError> {
        let mut slots = Vec::with_capacity(candidate.redis_keys.len());
        let (head, mut forbidden) = (self.head_of(candidate), None);
        for redis_key in &candidate.redis_keys {
            let mut content = self.content(head).await?;
            let pttl = self.number("PTTL").await?;
            if lengths {
                let now = self.number("STRLEN").await?.ok().and_then(|now| u64::try_from(now).ok());
                if let Ok(Content::Text { head, length }) = &mut content {
                    // It may have changed meanwhile.
                    *length = length.or(now.map(|now| now.max(head.len() as u64)));
                }
            }
            match (content, pttl) {
                (Ok(_), Ok(-2)) => slots.push(slot(redis_key, Content::Absent, -2)),
                (Ok(content), Ok(pttl)) => slots.push(slot(redis_key, content, pttl)),
                (Err(error), _) | (_, Err(error)) => forbidden = Some(error),
            }
        }
        Ok(match forbidden {
            Some(error) => Err(error),
            None => Ok(Observation { server_ms: self.now_ms(), atomic: slots.len() == 1, slots }),
        })
    }

    async fn content(&mut self, head: Head) -> Result<Result<Content, StoreError>, StoreError> {
        match self.stream.token().await? {
            Token::Text(value) => {
                let value = self.stream.bytes(value);
                let is_longer = matches!(head, Head::Bytes(most) if value.len() > most);
                let head = &value[..value.len() - usize::from(is_longer)];
                let length = (!is_longer).then_some(head.len() as u64);
                Ok(Ok(Content::Text { head: head.to_vec(), length }))
            }
            Token::Error(text) => match self.about_the_key(text)? {
                error if error.is_wrong_type() => Ok(Ok(Content::Other(String::new()))),
                error => Ok(Err(error)),
            },
            _ => Err(self.stream.unexpected("GETRANGE")),
        }
    }

    async fn number(&mut self, asked: &str) -> Result<Result<i64, StoreError>, StoreError> {
        match self.stream.token().await? {
            Token::Integer(number) => Ok(Ok(number)),
            Token::Error(text) => self.about_the_key(text).map(Err),
            _ => Err(self.stream.unexpected(asked)),
        }
    }

    /// What an error says of this one Redis key: that the user may not read it, or that it is no string. Any other ends
    /// the walk.
    fn about_the_key(&self, text: Range<usize>) -> Result<StoreError, StoreError> {
        match self.stream.refusal(text) {
            error if error.is_permission() || error.is_wrong_type() || error.is_redirect() => Ok(error),
            error => Err(error),
        }
    }
}

fn slot(redis_key: &[u8], content: Content, pttl: i64) -> SeenSlot {
    let expiry = Expiry::from_pttl(pttl);
    SeenSlot { redis_key: redis_key.to_vec(), content, expiry, idle: None, memory: None }
}
