//! Makes the steps of the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::effects::EffectsOracle;
use super::record_changes::{RecordChanges, Removal};
use super::records::RecordLookup;
use super::records::send_and_watch;
use crate::domain::probe::{
    Baseline, CheckedService, EffectsMade, ProbeAction, ProbeAnswer, ProbeCheck, ProbeExchange,
    ProbeJudgement, ProbeRequest, ProbeStep, ProbeStepResult, ProbeTask, RecordFault, StoredRecord,
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

/// A check with the results of its steps, or the judgement if it was not made.
pub(super) type MadeCheck = (&'static ProbeCheck, Result<Vec<ProbeStepResult>, ProbeJudgement>);

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

/// The requests before the first check.
///
/// # Errors
/// Usage: the request cannot be made.
pub(super) fn first_steps(task: &ProbeTask) -> Result<Vec<ProbeStep>, CommandError> {
    let first = new_request(task)?;
    let mut together = Vec::new();
    for _ in 0..TOGETHER_AT_START {
        together.push(new_request(task)?);
    }
    Ok(vec![
        ProbeStep { requests: vec![first.clone()], action: ProbeAction::Send },
        ProbeStep { requests: together, action: ProbeAction::Send },
        ProbeStep { requests: vec![first], action: ProbeAction::SendUntilFree },
    ])
}

fn new_request(task: &ProbeTask) -> Result<ProbeRequest, CommandError> {
    task.new_request().map_err(CommandError::usage)
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

    /// Makes one step, and remembers its keys, whose records are removed at the end.
    pub(super) async fn run(&mut self, task: &ProbeTask, step: &ProbeStep) -> ProbeStepResult {
        if let Some(changes) = &self.changes {
            let keys = step.requests.iter().filter_map(|request| request.key.clone());
            changes.lock().await.sent.extend(keys);
        }
        let result = self.make(task, step).await;
        if let Some(changes) = &self.changes {
            let exchanges = result.exchanges.iter();
            let successes =
                exchanges.filter(|exchange| exchange.answer().is_some_and(ProbeAnswer::is_success));
            let keys = successes.filter_map(|exchange| exchange.request.key.clone());
            changes.lock().await.answered.extend(keys);
        }
        result
    }

    async fn make(&mut self, task: &ProbeTask, step: &ProbeStep) -> ProbeStepResult {
        let mut result = ProbeStepResult::default();
        let Some(request) = step.requests.first() else { return result };
        self.sent += step.sends();
        match step.action {
            ProbeAction::Count => {
                result.effects = self.steady_count(request).await;
                result.counted_key.clone_from(&request.key);
                return result;
            }
            ProbeAction::Wait(time) => {
                sleep(time).await;
                return result;
            }
            ProbeAction::TakeFaultBack => {
                result.was_kept = Some(self.take_fault_back(request).await);
                return result;
            }
            ProbeAction::Send => {
                result.exchanges = self.client.send_together(&step.requests).await;
                if step.requests.len() > 1 {
                    let sent = result.exchanges.iter().filter_map(|exchange| exchange.sent_us);
                    let first = sent.clone().min().unwrap_or(0);
                    result.spread_us = Some(sent.max().unwrap_or(0).saturating_sub(first));
                }
            }
            ProbeAction::SendUntilFree => {
                result.exchanges = self.send_until_free(task, request).await;
            }
            ProbeAction::Watch => {
                if let Some(records) = &mut self.records {
                    return send_and_watch(&self.client, records, request).await;
                }
            }
            ProbeAction::Abandon(after) => {
                result.exchanges.push(self.client.abandon(request, after).await);
            }
            ProbeAction::Overlap(after) => {
                let late = async {
                    sleep(after).await;
                    tokio::join!(self.client.send(request), read_record(&mut self.records, request))
                };
                let (first, (second, record)) = tokio::join!(self.client.send(request), late);
                result.exchanges = vec![first, second];
                result.record = record;
                return result;
            }
            ProbeAction::FaultDuring(fault, after) => {
                let late = async {
                    sleep(after).await;
                    let made = self.make_fault(request, fault).await;
                    let retry = match made {
                        Ok(()) => Some(self.client.send(request).await),
                        Err(_) => None,
                    };
                    (made, retry)
                };
                let (first, (made, retry)) = tokio::join!(self.client.send(request), late);
                self.sent -= usize::from(retry.is_none());
                result.exchanges.push(first);
                result.exchanges.extend(retry);
                result.fault = Some(made);
            }
            ProbeAction::Fault(fault) => {
                result.fault = Some(self.make_fault(request, fault).await);
            }
        }
        result.record = read_record(&mut self.records, request).await;
        result
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
            let exchange = self.client.send(request).await;
            let is_busy = exchange.answer().is_some_and(|answer| task.is_conflict(answer));
            exchanges.push(exchange);
            let is_late = Instant::now() + pause > deadline;
            if !is_busy || is_late || exchanges.len() >= MAX_ATTEMPTS || self.repeats_left == 0 {
                return exchanges;
            }
            self.repeats_left -= 1;
            self.sent += 1;
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Counts effects until two counts agree; `None` without an oracle.
    async fn steady_count(&mut self, request: &ProbeRequest) -> Option<Result<u64, String>> {
        let oracle = self.oracle.as_ref()?;
        let is_of_key = oracle.is_of_key();
        let key = request.key.as_deref().unwrap_or_default();
        if is_of_key && key.is_empty() {
            // With an empty key, it may count those of all keys.
            return Some(Err("--effects counts one key, and this request has none".to_owned()));
        }
        // An effect may appear after its answer.
        sleep(self.lag * 2).await;
        let mut last = None;
        for _ in 0..MAX_COUNTS {
            let count = match oracle.read(key).await {
                Ok(count) => count,
                Err(why) => return Some(Err(why)),
            };
            if last == Some(count) {
                if let Some((before, sent)) = self.last_count
                    && sent == self.sent
                    && before != count
                    && !is_of_key
                {
                    self.drift = Some(self.drifted(before, count));
                }
                self.last_count = Some((count, self.sent));
                return Some(Ok(count));
            }
            last = Some(count);
            sleep(COUNT_PAUSE).await;
        }
        Some(Err("the number of effects does not come to rest".to_owned()))
    }

    /// Counts the effects of each key again, if the oracle tells keys apart. Those that appeared after
    /// the last count of a check belong to that check, because no other request has its key.
    pub(super) async fn count_again(&mut self, made: &mut [MadeCheck]) {
        let Some(oracle) = self.oracle.as_ref().filter(|oracle| oracle.is_of_key()) else { return };
        sleep(LATE_EFFECTS.max(self.lag * 2)).await;
        for results in made.iter_mut().filter_map(|(_, results)| results.as_mut().ok()) {
            // A count before the requests stays.
            let sends = |result: &ProbeStepResult| !result.exchanges.is_empty();
            let first = results.iter().position(sends).unwrap_or(results.len());
            let mut known = BTreeSet::new();
            for result in results[first..].iter_mut().rev() {
                let (Some(key), Some(Ok(before))) = (&result.counted_key, &result.effects) else {
                    continue;
                };
                if !known.insert(key.clone()) {
                    continue;
                }
                let now = oracle.read(key).await;
                if now.as_ref().map_or(true, |now| now >= before) {
                    result.effects = Some(now);
                }
            }
        }
    }

    /// Why the number of effects proves nothing, from a time in which idemctl sends nothing.
    ///
    /// # Errors
    /// A usage error if --effects gives no number, because the run could not count its effects.
    pub(super) async fn drift_at_start(
        &mut self,
        task: &ProbeTask,
    ) -> Result<Option<String>, CommandError> {
        let drift = self
            .drift_of(&task.new_key(), IDLE)
            .await
            .map_err(|why| CommandError::usage(format!("{why}; nothing was sent")))?;
        self.first_count = self.last_count.map_or(0, |(count, _)| count);
        Ok(drift)
    }

    /// The same at the end of the run, for this time.
    pub(super) async fn drift_at_end(&mut self, idle: Duration) -> Option<String> {
        if self.drift.is_some() || self.counts_by_key() {
            return self.drift.clone();
        }
        self.drift_of("", idle.max(IDLE)).await.unwrap_or_else(Some)
    }

    /// Why a number proves nothing that changes in this time, in which idemctl sends nothing.
    ///
    /// # Errors
    /// There is no number.
    async fn drift_of(&mut self, key: &str, idle: Duration) -> Result<Option<String>, String> {
        let Some(oracle) = &self.oracle else { return Ok(None) };
        let before = oracle.read(key).await?;
        sleep(idle).await;
        let after = oracle.read(key).await?;
        if after != before {
            return Ok(Some(self.drifted(before, after)));
        }
        self.last_count = Some((after, self.sent));
        Ok(None)
    }

    fn counts_by_key(&self) -> bool {
        self.oracle.as_ref().is_some_and(EffectsOracle::is_of_key)
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
        self.oracle.as_ref()?;
        if !self.counts_by_key() {
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

    /// Why a number proves nothing that changed while idemctl sent nothing.
    fn drifted(&self, before: u64, after: u64) -> String {
        let mut why = format!(
            "the number of effects changed from {before} to {after} while idemctl sent nothing"
        );
        if !self.counts_by_key() {
            why.push_str(
                "; if other clients use the service, write {{key}} into --effects to count one key",
            );
        }
        why
    }

    /// Sends the first request with a new key.
    ///
    /// # Errors
    /// Usage: the request cannot be made.
    pub(super) async fn first(&mut self, task: &ProbeTask) -> Result<ProbeExchange, CommandError> {
        let first = new_request(task)?.step(ProbeAction::Send);
        let sent = self.run(task, &first).await.exchanges.pop();
        sent.ok_or_else(|| CommandError::usage("no request was sent"))
    }

    /// What answers can show, from the first steps. Also measures how long an effect takes to appear.
    pub(super) async fn baseline(
        &mut self,
        task: &mut ProbeTask,
        first: &ProbeExchange,
        answer: &ProbeAnswer,
    ) -> Result<Baseline, CommandError> {
        if task.effects_drift.is_none() {
            task.effects_drift = self.measure_lag(first).await.err();
        }
        let together = &first_steps(task)?[1];
        // Answers at different times may differ only by their time.
        let together = self.run(task, together).await.exchanges;
        let mut answer_us = first.answer_time_us().unwrap_or_default();
        for exchange in &together {
            // The first request also opened connections and filled caches.
            if exchange.answer().is_some_and(ProbeAnswer::is_success) {
                answer_us = answer_us.min(exchange.answer_time_us().unwrap_or(u64::MAX));
            }
        }
        // A time in an answer has often a resolution of seconds.
        sleep(RETRY_PAUSE).await;
        let retry = first.request.clone().step(ProbeAction::SendUntilFree);
        let retries = self.run(task, &retry).await.exchanges;
        let retry = retries.last().and_then(|exchange| exchange.answer());
        let retry = retry.filter(|retry| retry.is_success());
        Ok(Baseline {
            answer_us,
            tells_results_apart: are_all_different(&together),
            retries_succeed: retry.is_some(),
            replays_equal: retry.is_some_and(|retry| !answer.is_other_result(retry)),
        })
    }

    /// Waits for the effect of the first request.
    ///
    /// # Errors
    /// Why the number of effects proves nothing.
    async fn measure_lag(&mut self, first: &ProbeExchange) -> Result<(), String> {
        let Some(oracle) = &self.oracle else { return Ok(()) };
        let key = first.request.key.as_deref().unwrap_or_default();
        let before = if oracle.is_of_key() { 0 } else { self.first_count };
        let began = Instant::now();
        while oracle.read(key).await? <= before {
            if began.elapsed() >= MAX_LAG {
                return Err(
                    "the number of effects did not rise after a request that succeeded".to_owned()
                );
            }
            sleep(COUNT_PAUSE / 2).await;
        }
        self.lag = began.elapsed().min(Duration::from_millis(500));
        Ok(())
    }
}

/// True if all requests succeeded, and each with another result.
fn are_all_different(exchanges: &[ProbeExchange]) -> bool {
    let answers = exchanges.iter().filter_map(ProbeExchange::answer);
    let successes: Vec<_> = answers.filter(|answer| answer.is_success()).collect();
    let mut pairs = successes.iter().enumerate();
    successes.len() == exchanges.len()
        && pairs.all(|(index, answer)| {
            successes[..index].iter().all(|other| answer.is_other_result(other))
        })
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
