//! Watches the record of a request, to see when its result is stored.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::records::RecordLookup;
use crate::domain::probe::{ProbeAnswer, ProbeRequest, ProbeStepResult, StoredRecord, StoredTime};
use crate::http::HttpClient;

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
