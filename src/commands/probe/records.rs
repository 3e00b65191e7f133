//! The records of keys in Redis.

use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::options::Args;
use crate::args::ConfirmArgs;
use crate::domain::diagnosis::Thresholds;
use crate::domain::probe::{ProbeAnswer, ProbeRequest, ProbeStepResult, StoredRecord, StoredTime};
use crate::domain::record::age::millis;
use crate::domain::record::{GivenKey, Record, TimeLeft};
use crate::domain::schema::{Catalog, TtlOf};
use crate::exit::CommandError;
use crate::http::HttpClient;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{ReadLimit, RecordReader};

/// Reads records of keys.
#[derive(Clone)]
pub(super) struct RecordLookup {
    reader: RecordReader,
    catalog: Catalog,
}

/// The lookup on the server that the command line names; `None` if it names no server or no schema.
///
/// # Errors
/// Usage: only one of both is named, or the name of a protected context is not confirmed; else
/// those of a connection.
pub(super) async fn lookup(session: &mut Session, args: &Args) -> Result<Option<RecordLookup>> {
    let has_server = session.settings.asks_for_its_server();
    let has_schema = !args.schemas.schema.is_empty();
    if !has_server && !has_schema {
        return Ok(None);
    }
    if !has_server || !has_schema {
        let why = "the schema of the records and their server have to be named together";
        return Err(CommandError::usage(why)
            .hint("add --schema NAME, or -u URL or -h HOST")
            .into());
    }
    let catalog = session.catalog(&args.schemas)?;
    let reader = session.connect_reader().await?;
    session.learn_protection().await;
    if session.settings.is_protected() {
        let confirm_args = ConfirmArgs { confirm: args.confirm.clone(), ..ConfirmArgs::default() };
        let server = session.settings.target().to_string();
        let question = "probe reads the records of its keys.";
        confirm_args.confirm_by_name(session, question, &server, &Interrupt::listen()?).await?;
    }
    Ok(Some(RecordLookup { reader, catalog }))
}

impl RecordLookup {
    /// Reads the record of a key.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) async fn read(&mut self, key: &str) -> Result<StoredRecord, String> {
        let mut unread = None;
        let mut unrecognised =
            StoredRecord { state: "absent".to_owned(), ..StoredRecord::default() };
        for found in self.find(&[key]).await? {
            unread = unread.or(found.why_unread);
            for record in &found.records {
                if !record.author.is_foreign() {
                    return Ok(stored(record));
                }
                let redis_keys = present_keys(record);
                if !redis_keys.is_empty() {
                    // Nothing else is known of a value that the schema does not describe.
                    unrecognised.schema.clone_from(&record.schema.name);
                    unrecognised.state = "unrecognised".to_owned();
                    unrecognised.redis_keys = redis_keys;
                }
            }
        }
        match unread {
            Some(why) => Err(why.to_string()),
            None => Ok(unrecognised),
        }
    }

    /// Looks up keys, with whole values. A service may store a key with its quotation marks.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(super) async fn find(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>, String> {
        self.look_up(keys).await.map_err(|error| format!("{error:#}"))
    }

    /// The same, with the error that decides the exit code.
    ///
    /// # Errors
    /// The server could not be asked, or refuses to.
    pub(super) async fn look_up(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>> {
        let lookup = Lookup {
            first_read: ReadLimit::Whole,
            thresholds: Thresholds::default(),
            includes_less_specific_results: false,
            keeps_unrecognised: true,
        };
        let mut given = Vec::with_capacity(keys.len() * 2);
        for key in keys {
            given.push(GivenKey::word(key.as_bytes()));
            given.push(GivenKey::word(format!("\"{key}\"").as_bytes()));
        }
        lookup.find(&mut self.reader, &self.catalog, given).await
    }
}

/// The Redis keys of a record that exist.
pub(super) fn present_keys(record: &Record) -> Vec<Vec<u8>> {
    let present = record.seen.keys.iter().filter(|key| !key.content.is_absent());
    present.map(|key| key.redis_key.clone()).collect()
}

fn stored(record: &Record) -> StoredRecord {
    let time_left = record.time_left();
    let ttl_of = if record.state.is_result() { TtlOf::Result } else { TtlOf::Lock };
    StoredRecord {
        schema: record.schema.name.clone(),
        state: record.state.as_str().to_owned(),
        ttl_ms: time_left.and_then(TimeLeft::millis),
        stated_ttl_ms: record.schema.ttl(ttl_of).map(millis),
        never_expires: time_left == Some(TimeLeft::NoExpiry),
        owner: record.owner().map(|owner| String::from_utf8_lossy(owner).into_owned()),
        status: record.response().and_then(|response| response.status),
        redis_keys: present_keys(record),
    }
}

/// The shortest time between two reads. The time at which a result is stored is known only to
/// within a pause.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// How long idemctl waits after the answer for a result. A service may never store one.
const MAX_WATCH: Duration = Duration::from_secs(2);

/// Reads one record, and remembers when it had a result.
struct ResultWatch<'a> {
    client: &'a HttpClient,
    records: &'a mut RecordLookup,
    key: String,
    stored: StoredTime,
    /// True if a read found the result, or failed.
    is_over: bool,
}

/// Sends a request, and reads its record until it has a result: meanwhile, right after the answer, and
/// then up to the time limit. `record` is the one right after the answer.
pub(super) async fn send_and_watch(
    client: &HttpClient,
    records: &mut RecordLookup,
    request: &ProbeRequest,
) -> ProbeStepResult {
    let key = request.key.clone().unwrap_or_default();
    let stored = StoredTime::default();
    let mut watch = ResultWatch { client, records, key, stored, is_over: false };
    let answered = Notify::new();
    let sending = async {
        let exchange = client.send(request).await;
        answered.notify_one();
        exchange
    };
    let (exchange, ()) = tokio::join!(sending, watch.until(answered.notified()));
    let record = watch.read().await;
    if exchange.answer().is_some_and(ProbeAnswer::is_success) {
        watch.until(sleep(MAX_WATCH)).await;
    }
    ProbeStepResult {
        stored: Some(watch.stored),
        exchanges: vec![exchange],
        record: Some(record),
        ..ProbeStepResult::default()
    }
}

impl ResultWatch<'_> {
    /// Reads until then. A read that has begun is not interrupted, because its reply would be taken
    /// for that of the next one.
    async fn until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let began = Instant::now();
        while !self.is_over {
            let _ = self.read().await;
            tokio::select! {
                // The read after the answer must be the first one that begins after it.
                biased;
                () = &mut end => return,
                () = sleep(pause(began.elapsed())) => {}
            }
        }
    }

    async fn read(&mut self) -> Result<StoredRecord, String> {
        let began_us = self.client.now_us();
        let read = self.records.read(&self.key).await;
        // A result can be gone again, which does not change when it was stored.
        if self.stored.before_us.is_none() {
            match &read {
                Ok(record) if record.has_result() => {
                    self.stored.before_us = Some(self.client.now_us());
                }
                Ok(_) => self.stored.after_us = Some(began_us),
                Err(_) => {}
            }
        }
        self.is_over |= read.is_err() || self.stored.before_us.is_some();
        read
    }
}

/// The time until the next read. It grows, so that a slow handler does not cost Redis thousands of
/// reads.
fn pause(waited: Duration) -> Duration {
    MIN_PAUSE + waited / 100
}
