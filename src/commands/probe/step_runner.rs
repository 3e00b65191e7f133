//! Makes the steps of the checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::effects::EffectsOracle;
use super::record_changes::{RecordChanges, Removal};
use super::records::RecordLookup;
use super::stored_time::send_and_watch;
use crate::domain::probe::{
    Baseline, CheckedService, EffectsMade, ProbeAnswer, ProbeCheck, ProbeExchange, ProbeRequest,
    ProbeStep, ProbeStepResult, ProbeTask, RecordFault, StoredRecord,
};
use crate::exit::CommandError;
use crate::http::HttpClient;

/// How often a request is sent at most until it is not rejected as in progress. The pauses grow to
/// a second, so this takes 14 s if the time limit of a request does not end it earlier.
const MAX_ATTEMPTS: usize = 20;

/// The time between two counts that must agree.
const COUNT_PAUSE: Duration = Duration::from_millis(60);

/// How often effects are counted at most until two counts agree. A number that changes for longer
/// may count the effects of other clients, too.
const MAX_COUNTS: usize = 20;

/// How long effects are observed while idemctl sends nothing. A number that changes then counts
/// effects that idemctl did not cause.
const IDLE: Duration = Duration::from_millis(400);

/// How many requests with different keys are sent together at the start. If all their answers
/// differ, answers show which execution they belong to.
const TOGETHER_AT_START: usize = 3;

/// The time before the retry that shows whether a replay is equal to the first answer. It is longer
/// than a second, because a time in an answer often has a resolution of seconds.
const RETRY_PAUSE: Duration = Duration::from_millis(1_100);

/// The time between two looks whether a change has ended.
const CHANGE_PAUSE: Duration = Duration::from_millis(1);

/// The time in which late effects of the last checks appear.
const LATE_EFFECTS: Duration = Duration::from_millis(1_500);

/// The most time for the effect of the first request to appear. If it does not, the number of
/// effects proves nothing.
const MAX_LAG: Duration = Duration::from_secs(3);

/// Why a fault was not made.
const READS_ONLY: &str = "idemctl may not change records";

/// A check with the results of its steps, or why it is not applicable.
pub(super) type MadeCheck = (&'static ProbeCheck, Result<Vec<ProbeStepResult>, String>);

/// Makes steps, and counts the requests.
pub(super) struct StepRunner {
    client: HttpClient,
    oracle: Option<EffectsOracle>,
    records: Option<RecordLookup>,
    /// A change is made in a task of its own, because Ctrl-C must not end it halfway.
    changes: Option<Arc<Mutex<RecordChanges>>>,
    sent: usize,
    /// How many requests may be sent again because they were rejected as in progress.
    repeats_left: usize,
    /// How long effects take to appear after an answer.
    lag: Duration,
    /// The number of effects before the first request.
    first_count: u64,
    /// The last count, and how many requests were sent until then. It must not change while none is
    /// sent.
    last_count: Option<(u64, usize)>,
    /// Why the number of effects cannot be used, as far as this was seen between two checks.
    drift: Option<String>,
}

/// How many requests a step sends, without repetitions of those that are rejected as in progress.
pub(super) fn planned_requests(step: &ProbeStep) -> usize {
    match step {
        ProbeStep::CountEffects(_)
        | ProbeStep::Wait(_)
        | ProbeStep::Fault(..)
        | ProbeStep::TakeFaultBack(_) => 0,
        ProbeStep::Send(_)
        | ProbeStep::SendUntilFree(_)
        | ProbeStep::Watch(_)
        | ProbeStep::Abandon(..) => 1,
        ProbeStep::Overlap(..) | ProbeStep::FaultDuring(..) => 2,
        ProbeStep::Together(requests) => requests.len(),
    }
}

/// The requests before the first check.
///
/// # Errors
/// Usage: the request cannot be made.
pub(super) fn first_steps(task: &ProbeTask) -> Result<Vec<ProbeStep>, CommandError> {
    let request = || {
        let request = task.template.with_key(&task.new_key());
        request.map_err(|why| CommandError::usage(why.to_string()))
    };
    let first = request()?;
    let mut together = Vec::new();
    for _ in 0..TOGETHER_AT_START {
        together.push(request()?);
    }
    Ok(vec![
        ProbeStep::Send(first.clone()),
        ProbeStep::Together(together),
        ProbeStep::SendUntilFree(first),
    ])
}

/// The requests that a step sends.
fn requests_of(step: &ProbeStep) -> &[ProbeRequest] {
    match step {
        ProbeStep::CountEffects(_)
        | ProbeStep::Wait(_)
        | ProbeStep::Fault(..)
        | ProbeStep::TakeFaultBack(_) => &[],
        ProbeStep::Send(request)
        | ProbeStep::SendUntilFree(request)
        | ProbeStep::Watch(request)
        | ProbeStep::Abandon(request, _)
        // The second request has the key of the first.
        | ProbeStep::Overlap(request, ..)
        | ProbeStep::FaultDuring(request, ..) => std::slice::from_ref(request),
        ProbeStep::Together(requests) => requests,
    }
}

impl StepRunner {
    pub(super) fn new(
        client: HttpClient,
        oracle: Option<EffectsOracle>,
        records: Option<RecordLookup>,
        changes: Option<RecordChanges>,
        repeats_left: usize,
    ) -> Self {
        Self {
            client,
            oracle,
            records,
            changes: changes.map(|changes| Arc::new(Mutex::new(changes))),
            sent: 0,
            repeats_left,
            lag: Duration::ZERO,
            first_count: 0,
            last_count: None,
            drift: None,
        }
    }

    /// How many requests were sent to the service.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// True if this many more requests may be sent, which are then counted as repetitions.
    pub(super) fn may_repeat(&mut self, requests: usize) -> bool {
        match self.repeats_left.checked_sub(requests) {
            Some(left) => {
                self.repeats_left = left;
                true
            }
            None => false,
        }
    }

    /// Makes one step.
    pub(super) async fn run(&mut self, task: &ProbeTask, step: &ProbeStep) -> ProbeStepResult {
        self.note_keys(requests_of(step)).await;
        let result = self.make(task, step).await;
        self.note_answers(&result.exchanges).await;
        result
    }

    async fn make(&mut self, task: &ProbeTask, step: &ProbeStep) -> ProbeStepResult {
        let mut result = ProbeStepResult::default();
        match step {
            ProbeStep::CountEffects(request) => {
                result.effects = self.steady_count(request).await;
                result.counted_key.clone_from(&request.key);
                return result;
            }
            ProbeStep::Send(request) => {
                self.sent += 1;
                result.exchanges.push(self.client.send(request).await);
            }
            ProbeStep::SendUntilFree(request) => {
                result.exchanges = self.send_until_free(task, request).await;
            }
            ProbeStep::Wait(time) => {
                sleep(*time).await;
                return result;
            }
            ProbeStep::Watch(request) => {
                self.sent += 1;
                match &mut self.records {
                    Some(records) => {
                        return send_and_watch(&self.client, records, request).await;
                    }
                    None => result.exchanges.push(self.client.send(request).await),
                }
            }
            ProbeStep::Together(requests) => {
                self.sent += requests.len();
                result.exchanges = self.client.send_together(requests).await;
                let sent = result.exchanges.iter().filter_map(|exchange| exchange.sent_us);
                let first = sent.clone().min().unwrap_or(0);
                result.spread_us = Some(sent.max().unwrap_or(0).saturating_sub(first));
            }
            ProbeStep::Abandon(request, after) => {
                self.sent += 1;
                result.exchanges.push(self.client.abandon(request, *after).await);
            }
            ProbeStep::Overlap(first, second, after) => {
                self.sent += 2;
                let client = self.client.clone();
                let late = async {
                    sleep(*after).await;
                    tokio::join!(client.send(second), read_record(&mut self.records, second))
                };
                let (first, (second, record)) = tokio::join!(client.send(first), late);
                result.exchanges = vec![first, second];
                result.record = record;
                result.is_read_meanwhile = true;
                return result;
            }
            ProbeStep::FaultDuring(request, fault, after) => {
                return self.fault_during(request, *fault, *after).await;
            }
            ProbeStep::Fault(request, fault) => {
                result.fault = Some(self.make_fault(request, *fault).await);
                result.record = read_record(&mut self.records, request).await;
                return result;
            }
            ProbeStep::TakeFaultBack(request) => {
                result.was_kept = Some(self.take_fault_back(request).await);
                return result;
            }
        }
        if let Some(exchange) = result.exchanges.first() {
            let request = exchange.request.clone();
            result.record = read_record(&mut self.records, &request).await;
        }
        result
    }

    /// Remembers the keys of requests, whose records are removed at the end.
    async fn note_keys(&self, requests: &[ProbeRequest]) {
        let Some(changes) = &self.changes else { return };
        let mut changes = changes.lock().await;
        for request in requests {
            if let Some(key) = &request.key {
                changes.note_sent(key);
            }
        }
    }

    /// Remembers the keys that the service answered with a success, which it has probably stored.
    async fn note_answers(&self, exchanges: &[ProbeExchange]) {
        let Some(changes) = &self.changes else { return };
        let mut changes = changes.lock().await;
        for exchange in exchanges {
            if let Some(key) = &exchange.request.key
                && exchange.answer().is_some_and(ProbeAnswer::is_success)
            {
                changes.note_answered(key);
            }
        }
    }

    async fn make_fault(&self, request: &ProbeRequest, fault: RecordFault) -> Result<(), String> {
        let Some(changes) = self.changes.clone() else { return Err(READS_ONLY.to_owned()) };
        let key = request.key.clone().unwrap_or_default();
        let made = tokio::spawn(async move { changes.lock().await.make(&key, fault).await });
        made.await.map_err(|error| error.to_string())?
    }

    async fn take_fault_back(&self, request: &ProbeRequest) -> Result<bool, String> {
        let Some(changes) = self.changes.clone() else { return Err(READS_ONLY.to_owned()) };
        let key = request.key.clone().unwrap_or_default();
        let taken = tokio::spawn(async move { changes.lock().await.take_back(&key).await });
        taken.await.map_err(|error| error.to_string())?
    }

    /// Sends a request, makes a fault while its handler runs, and sends the request again.
    async fn fault_during(
        &mut self,
        request: &ProbeRequest,
        fault: RecordFault,
        after: Duration,
    ) -> ProbeStepResult {
        self.sent += 1;
        let then = async {
            sleep(after).await;
            let made = self.make_fault(request, fault).await;
            let retry = match made {
                Ok(()) => Some(self.client.send(request).await),
                Err(_) => None,
            };
            (made, retry)
        };
        let (first, (made, retry)) = tokio::join!(self.client.send(request), then);
        self.sent += usize::from(retry.is_some());
        let mut exchanges = vec![first];
        exchanges.extend(retry);
        let record = read_record(&mut self.records, request).await;
        ProbeStepResult { exchanges, fault: Some(made), record, ..ProbeStepResult::default() }
    }

    /// Removes the records of all keys that were sent; `None` if idemctl changes nothing in Redis.
    /// Waits for a change that is being made.
    pub(super) async fn remove_records(&mut self) -> Option<Removal> {
        let mut changes = self.changes.take()?;
        loop {
            match Arc::try_unwrap(changes) {
                Ok(changes) => return Some(changes.into_inner().remove_all().await),
                // Ctrl-C interrupted the wait for a change, and not the change.
                Err(in_use) => changes = in_use,
            }
            sleep(CHANGE_PAUSE).await;
        }
    }

    /// Sends a request until it is not rejected as in progress, or the time limit is reached.
    async fn send_until_free(
        &mut self,
        task: &ProbeTask,
        request: &ProbeRequest,
    ) -> Vec<ProbeExchange> {
        let deadline = Instant::now() + self.client.request_timeout();
        let mut exchanges = Vec::new();
        let mut pause = Duration::from_millis(20);
        loop {
            self.sent += 1;
            let exchange = self.client.send(request).await;
            let is_busy = exchange
                .answer()
                .is_some_and(|answer| task.profile.statuses.conflict.contains(&answer.status));
            exchanges.push(exchange);
            let is_late = Instant::now() + pause > deadline;
            if !is_busy || is_late || exchanges.len() >= MAX_ATTEMPTS || self.repeats_left == 0 {
                return exchanges;
            }
            self.repeats_left -= 1;
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Counts effects until two counts agree; `None` without an oracle.
    async fn steady_count(&mut self, request: &ProbeRequest) -> Option<Result<u64, String>> {
        let key = request.key.clone().unwrap_or_default();
        let oracle = self.oracle.as_ref()?;
        if oracle.is_of_key() && request.key.is_none() {
            // With an empty key, it may count those of all keys.
            return Some(Err("--effects counts one key, and this request has none".to_owned()));
        }
        // An effect may appear after its answer.
        sleep(self.lag * 2).await;
        let mut last = match oracle.read(&key).await {
            Ok(count) => count,
            Err(why) => return Some(Err(why)),
        };
        for _ in 0..MAX_COUNTS {
            sleep(COUNT_PAUSE).await;
            match oracle.read(&key).await {
                Ok(count) if count == last => {
                    if let Some((before, sent)) = self.last_count
                        && sent == self.sent
                        && before != count
                        && !oracle.is_of_key()
                    {
                        self.drift = Some(self.drifted(before, count));
                    }
                    self.last_count = Some((count, self.sent));
                    return Some(Ok(count));
                }
                Ok(count) => last = count,
                Err(why) => return Some(Err(why)),
            }
        }
        Some(Err("the number of effects does not come to rest".to_owned()))
    }

    /// Counts the effects of each key again, if the oracle tells keys apart. Those that appeared after
    /// the last count of a check belong to that check, because no other request has its key.
    pub(super) async fn count_again(&mut self, made: &mut [MadeCheck]) {
        let Some(oracle) = self.oracle.as_ref().filter(|oracle| oracle.is_of_key()) else { return };
        sleep(LATE_EFFECTS.max(self.lag * 2)).await;
        for (_, results) in made {
            let Ok(results) = results else { continue };
            let mut last_counts = BTreeMap::new();
            let mut was_sent = false;
            for (place, result) in results.iter().enumerate() {
                was_sent |= !result.exchanges.is_empty();
                let Some(key) = &result.counted_key else { continue };
                // A count before the requests stays.
                if was_sent {
                    last_counts.insert(key.clone(), place);
                }
            }
            for (key, place) in last_counts {
                if let Some(Ok(before)) = results[place].effects {
                    match oracle.read(&key).await {
                        Ok(now) if now >= before => results[place].effects = Some(Ok(now)),
                        Ok(_) => {}
                        Err(why) => results[place].effects = Some(Err(why)),
                    }
                }
            }
        }
    }

    /// Sends the first request with a new key.
    ///
    /// # Errors
    /// Usage: the request cannot be made.
    pub(super) async fn first(&mut self, task: &ProbeTask) -> Result<ProbeExchange, CommandError> {
        let request = task
            .template
            .with_key(&task.new_key())
            .map_err(|why| CommandError::usage(why.to_string()))?;
        self.note_keys(std::slice::from_ref(&request)).await;
        self.sent += 1;
        let exchange = self.client.send(&request).await;
        self.note_answers(std::slice::from_ref(&exchange)).await;
        Ok(exchange)
    }

    /// Why the number of effects proves nothing, from a time in which idemctl sends nothing.
    ///
    /// # Errors
    /// A usage error if --effects gives no number, because the run could not count its effects.
    pub(super) async fn drift_at_start(
        &mut self,
        task: &ProbeTask,
    ) -> Result<Option<String>, CommandError> {
        let Some(oracle) = &self.oracle else { return Ok(None) };
        let key = task.new_key();
        let no_number = |why| {
            CommandError::usage(why)
                .hint("idemctl asked before the first request; nothing was sent")
        };
        let before = oracle.read(&key).await.map_err(no_number)?;
        sleep(IDLE).await;
        let after = oracle.read(&key).await.map_err(no_number)?;
        if after != before {
            return Ok(Some(self.drifted(before, after)));
        }
        self.first_count = after;
        self.last_count = Some((after, self.sent));
        Ok(None)
    }

    /// How many operations were executed, as far as --effects counted them; `None` without it, or if
    /// it proves nothing. Asks nothing.
    pub(super) fn effects_made(
        &self,
        task: &ProbeTask,
        checked: &[CheckedService],
    ) -> Option<EffectsMade> {
        if task.effects_drift.is_some() {
            return None;
        }
        if !self.oracle.as_ref()?.is_of_key() {
            let (last, _) = self.last_count?;
            let count = last.checked_sub(self.first_count)?;
            return Some(EffectsMade { count, is_complete: true });
        }
        // Not every check counts, and the first requests are not counted.
        let mut of_keys = BTreeMap::new();
        for result in checked.iter().flat_map(|checked| &checked.results) {
            if let (Some(key), Some(Ok(count))) = (&result.counted_key, &result.effects) {
                of_keys.insert(key, *count);
            }
        }
        Some(EffectsMade { count: of_keys.values().sum(), is_complete: false })
    }

    /// The same at the end of the run, for this time.
    pub(super) async fn drift_at_end(&mut self, idle: Duration) -> Option<String> {
        if self.drift.is_some() {
            return self.drift.clone();
        }
        let oracle = self.oracle.as_ref()?;
        if oracle.is_of_key() {
            return None;
        }
        let before = match oracle.read("").await {
            Ok(count) => count,
            Err(why) => return Some(why),
        };
        sleep(idle.max(IDLE)).await;
        match oracle.read("").await {
            Ok(after) if after == before => {
                self.last_count = Some((after, self.sent));
                None
            }
            Ok(after) => Some(self.drifted(before, after)),
            Err(why) => Some(why),
        }
    }

    /// Why a number proves nothing that changed while idemctl sent nothing.
    fn drifted(&self, before: u64, after: u64) -> String {
        let mut why = format!(
            "the number of effects changed from {before} to {after} while idemctl sent nothing"
        );
        if !self.oracle.as_ref().is_some_and(EffectsOracle::is_of_key) {
            why.push_str(
                "; if other clients use the service, write {{key}} into --effects to count one key",
            );
        }
        why
    }

    /// What answers can show, from three simultaneous requests and a retry. Also measures how long an effect takes to
    /// appear.
    pub(super) async fn baseline(
        &mut self,
        task: &mut ProbeTask,
        first: &ProbeExchange,
        answer: &ProbeAnswer,
    ) -> Baseline {
        self.measure_lag(task, first).await;
        let mut baseline = Baseline {
            answer_us: first.answer_time_us().unwrap_or_default(),
            ..Baseline::default()
        };
        // Answers at different times may differ only by their time.
        let mut requests = Vec::new();
        for _ in 0..TOGETHER_AT_START {
            requests.extend(task.template.with_key(&task.new_key()));
        }
        self.note_keys(&requests).await;
        self.sent += requests.len();
        let together = self.client.send_together(&requests).await;
        self.note_answers(&together).await;
        baseline.tells_results_apart = are_all_different(&together);
        for exchange in &together {
            // The first request also opened connections and filled caches.
            if exchange.answer().is_some_and(ProbeAnswer::is_success) {
                let again = exchange.answer_time_us().unwrap_or(u64::MAX);
                baseline.answer_us = baseline.answer_us.min(again);
            }
        }
        // A time in an answer has often a resolution of seconds.
        sleep(RETRY_PAUSE).await;
        let retries = self.send_until_free(task, &first.request).await;
        if let Some(retry) = retries.last().and_then(|exchange| exchange.answer()) {
            baseline.retries_succeed = retry.is_success();
            baseline.replays_equal = retry.is_success() && !answer.is_other_result(retry);
        }
        baseline
    }

    /// Waits for the effect of the first request.
    async fn measure_lag(&mut self, task: &mut ProbeTask, first: &ProbeExchange) {
        let Some(oracle) = &self.oracle else { return };
        if task.effects_drift.is_some() {
            return;
        }
        let key = first.request.key.clone().unwrap_or_default();
        let before =
            if oracle.is_of_key() { 0 } else { self.last_count.map_or(0, |(count, _)| count) };
        let began = Instant::now();
        loop {
            match oracle.read(&key).await {
                Ok(count) if count > before => {
                    self.lag = began.elapsed().min(Duration::from_millis(500));
                    return;
                }
                Ok(_) if began.elapsed() < MAX_LAG => sleep(COUNT_PAUSE / 2).await,
                Ok(_) => {
                    task.effects_drift = Some(
                        "the number of effects did not rise after a request that succeeded"
                            .to_owned(),
                    );
                    return;
                }
                Err(why) => {
                    task.effects_drift = Some(why);
                    return;
                }
            }
        }
    }
}

/// True if all requests succeeded, and each with another result.
fn are_all_different(exchanges: &[ProbeExchange]) -> bool {
    for (index, exchange) in exchanges.iter().enumerate() {
        let Some(answer) = exchange.answer() else { return false };
        if !answer.is_success() {
            return false;
        }
        for other in exchanges[index + 1..].iter().filter_map(ProbeExchange::answer) {
            if !answer.is_other_result(other) {
                return false;
            }
        }
    }
    true
}

/// Reads the record of a request's key; `None` if Redis is not read.
async fn read_record(
    records: &mut Option<RecordLookup>,
    request: &ProbeRequest,
) -> Option<Result<StoredRecord, String>> {
    let records = records.as_mut()?;
    let key = request.key.as_ref()?;
    Some(records.read(key).await)
}
