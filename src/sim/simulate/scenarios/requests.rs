//! Duplicate requests while everything works: retries, simultaneous requests, other payloads,
//! failing handlers.

use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;

use crate::domain::schema::{OnFailure, OnHangUp, PayloadUse};
use crate::domain::simulation::{ClientAnswer, Excuse, Story};
use crate::sim::simulate::{
    Aborted, BeginOutcome, LockLifetime, OTHER_PAYMENT, PAYMENT, Scenario, ScenarioEnvironment,
    ScenarioResult, ScenarioWorker,
};

/// A request is served. Its client lost the response, and asks again.
pub(super) const FIRST_THEN_RETRY: Scenario = Scenario {
    story: Story {
        name: "first-then-retry",
        summary: "a request is served, and its client retries",
        remedy: "look the result up before anything else, and store it before the client gets its \
            response",
    },
    run: |environment| Box::pin(first_then_retry(environment)),
};

async fn first_then_retry(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if first.acquire_lock().await? {
        first.work().await?;
        first.complete().await?;
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// Several requests with one key arrive at the same time.
///
/// Chance may or may not cause the critical interleavings. If begin has several calls, the scenario
/// therefore also executes on purpose everything that another request can do between two of them.
pub(super) const CONCURRENT_DUPLICATES: Scenario = Scenario {
    story: Story {
        name: "concurrent-duplicates",
        summary: "requests with the same key arrive at the same time",
        remedy: "look up the result and take the lock in one script, because another request can \
            begin and end between two calls",
    },
    run: |environment| Box::pin(concurrent_duplicates(environment)),
};

/// How many requests with one key are sent in a round. `race` sends more at the same time.
const REQUESTS: usize = 8;

/// The largest time between the requests, in microseconds. The delays are random, so that the
/// requests arrive in different orders.
const SPREAD_US: u64 = 500;

async fn concurrent_duplicates(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    // A failure that keeps the lock changes nothing between the calls.
    let keeps = environment.schema.on_failure() == OnFailure::Keep;
    let all = [Between::Everything, Between::Completion, Between::Failure, Between::Expiry];
    for done in 1..environment.schema.begin_calls().len() {
        for between in all {
            if between == Between::Failure && keeps {
                continue;
            }
            interleaved(environment, done, between).await?;
        }
    }
    let mut rng = Rng::with_seed(environment.seed);
    for round in 1..=environment.repeat {
        at_once(environment, &format!("all at once, round {round}"), &mut rng).await?;
    }
    Ok(())
}

/// All workers begin. The worker that gets the lock works and completes while the others are still
/// running.
async fn at_once(
    environment: &ScenarioEnvironment<'_>,
    title: &str,
    rng: &mut Rng,
) -> ScenarioResult {
    let run = environment.run(title).await?;
    let mut workers = Vec::new();
    for number in 1..=REQUESTS {
        workers.push(run.worker(&format!("worker {number}"), PAYMENT, LockLifetime::Long).await?);
    }
    rng.shuffle(&mut workers);
    let mut requests = Vec::new();
    for worker in &mut workers {
        // Drawn here and not in the request, so that a seed always gives the same delays.
        let delay = Duration::from_micros(rng.u64(0..SPREAD_US));
        requests.push(async move {
            tokio::time::sleep(delay).await;
            serve(worker).await
        });
    }
    for served in join_all(requests).await {
        served?;
    }
    run.retry_until_served("a retry", PAYMENT).await
}

async fn serve(worker: &mut ScenarioWorker<'_>) -> ScenarioResult {
    if worker.acquire_lock().await? {
        worker.work().await?;
        worker.complete().await?;
    }
    Ok(())
}

/// An event between two calls of a begin step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// Another request begins, works and completes.
    Everything,
    /// Another request, which began earlier, completes.
    Completion,
    /// Another request, which began earlier, fails.
    Failure,
    /// The lock of another request, which began earlier, expires.
    Expiry,
}

impl Between {
    fn words(self) -> &'static str {
        match self {
            Self::Everything => "another request begins and completes between two calls of begin",
            Self::Completion => "another request completes between two calls of begin",
            Self::Failure => "another request fails between two calls of begin",
            Self::Expiry => "another lock expires between two calls of begin",
        }
    }
}

async fn interleaved(
    environment: &ScenarioEnvironment<'_>,
    done: usize,
    between: Between,
) -> ScenarioResult {
    let run = environment.run(between.words()).await?;
    let lock = if between == Between::Expiry { LockLifetime::Short } else { LockLifetime::Long };
    let mut other = run.worker("worker 1", PAYMENT, lock).await?;
    let mut worker = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if between != Between::Everything && !other.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    let mut begun = worker.begin_with_calls(0..done).await?;
    match between {
        Between::Everything => serve(&mut other).await?,
        Between::Completion => {
            other.have_effect();
            other.complete().await?;
        }
        Between::Failure => other.fail().await?,
        Between::Expiry => run.wait_for_lock_expiry().await?,
    }
    if begun.is_none() {
        begun = worker.begin_with_calls(done..worker.begin_calls()).await?;
    }
    match begun {
        Some(BeginOutcome::Acquired) => {
            worker.have_effect();
            worker.complete().await?;
        }
        Some(BeginOutcome::Fails(why)) => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
        _ => {}
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// The handler fails without effect. Does the service store the error, release the lock, or keep
/// it?
pub(super) const HANDLER_FAILS: Scenario = Scenario {
    story: Story {
        name: "handler-fails",
        summary: "the handler fails without effect, and the client retries",
        remedy: "if the handler fails, release the lock or store the error, because a remaining \
            lock blocks until it expires",
    },
    run: |environment| Box::pin(handler_fails(environment)),
};

async fn handler_fails(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if first.acquire_lock().await? {
        first.fail().await?;
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// Another operation uses the key of an operation that has completed, or is still running.
pub(super) const PAYLOAD_MISMATCH: Scenario = Scenario {
    story: Story {
        name: "payload-mismatch",
        summary: "the same key is used with a different payload",
        remedy: "store a hash of the payload with the lock, compare it at begin, and respond with \
            422 if it differs",
    },
    run: |environment| Box::pin(payload_mismatch(environment)),
};

async fn payload_mismatch(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    if environment.schema.service.payload == Some(PayloadUse::InKey) {
        return Err(Aborted::NotApplicable(
            "a request with another payload has another Redis key, and so another record"
                .to_owned(),
        ));
    }
    for (title, completed) in
        [("after the first completed", true), ("while the first is running", false)]
    {
        let run = environment.run(title).await?;
        if !environment.schema.tells_payloads_apart() {
            run.excuse(Excuse::NotCompared);
        }
        let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Long).await?;
        if !first.acquire_lock().await? {
            return run.retry_until_served("a retry", PAYMENT).await;
        }
        first.have_effect();
        if completed {
            first.complete().await?;
        }
        run.request_once("another client", OTHER_PAYMENT).await?;
        if !completed {
            first.complete().await?;
        }
        run.retry_until_served("a retry", PAYMENT).await?;
    }
    Ok(())
}

/// The client disconnects before the response, while the handler is still running, and asks again.
pub(super) const CLIENT_HANGS_UP: Scenario = Scenario {
    story: Story {
        name: "client-hangs-up",
        summary: "the client disconnects before the response, and retries",
        remedy: "let the handler continue and store its result, because a disconnected client has \
            cancelled nothing",
    },
    run: |environment| Box::pin(client_hangs_up(environment)),
};

async fn client_hangs_up(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let Some(does) = environment.schema.service.on_hang_up else {
        return Err(Aborted::NotApplicable(
            "schema.toml does not define this behaviour (on_hang_up)".to_owned(),
        ));
    };
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Long).await?;
    if !first.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.note("a client", "hangs up", None, None);
    if does == OnHangUp::Release {
        first.release().await?;
    }
    run.request_once("a retry", PAYMENT).await?;
    first.have_effect();
    first.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}
