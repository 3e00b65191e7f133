//! Workers that crash, or lose Redis, between the steps of their work.

use crate::domain::simulation::{Excuse, Story};
use crate::sim::simulate::{
    Aborted, LockLifetime, PAYMENT, Scenario, ScenarioEnvironment, ScenarioResult,
};
use crate::store::pack;

/// A worker acquires the lock and crashes before it has done anything. How long does its client
/// wait?
pub(super) const CRASH_BEFORE_COMPLETE: Scenario = Scenario {
    story: Story {
        name: "crash-before-complete",
        summary: "a worker takes the lock and dies before it has done anything",
        remedy: "give the lock a TTL slightly longer than the slowest run of the handler, and \
            renew it during long work",
    },
    run: |environment| Box::pin(crash_before_complete(environment)),
};

async fn crash_before_complete(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if first.acquire_lock().await? {
        first.crash();
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// The completion has several calls, and the worker crashes between two of them. A lock may remain
/// beside the result.
pub(super) const CRASH_BETWEEN_STEPS: Scenario = Scenario {
    story: Story {
        name: "crash-between-steps",
        summary: "a worker dies between the calls of its completion",
        remedy: "store the result and delete the lock in one script, or store the result first",
    },
    run: |environment| Box::pin(crash_between_steps(environment)),
};

async fn crash_between_steps(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let calls = environment.schema.complete_calls().len();
    if calls < 2 && !environment.schema.has_separate_result() {
        return Err(Aborted::NotApplicable(
            "it completes with one Redis key and one call, so nothing can happen in between"
                .to_owned(),
        ));
    }
    for done in 1..calls {
        let run = environment.run(&format!("after {done} of {calls} calls")).await?;
        let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
        if first.acquire_lock().await? {
            first.have_effect();
            first.complete_calls(0..done).await?;
            first.crash();
        }
        run.retry_until_served("a retry", PAYMENT).await?;
    }
    if calls < 2 {
        older_worker_keeps_its_lock(environment).await?;
    }
    Ok(())
}

/// Completes as older releases of such a service do: SET of the result, then DEL of the lock.
async fn older_worker_keeps_its_lock(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run =
        environment.run("an older worker's SET of the result, without DEL of the lock").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if first.acquire_lock().await? {
        first.have_effect();
        first.set_result().await?;
        first.crash();
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// A lock without a TTL remains, because a worker crashed between SET NX and EXPIRE, or between the
/// calls of the schema's own begin.
pub(super) const LOCK_WITHOUT_EXPIRY: Scenario = Scenario {
    story: Story {
        name: "lock-without-expiry",
        summary: "a crash between SET NX and EXPIRE leaves a lock without TTL",
        remedy: "take the lock and set its TTL in one command or script, and let begin give a TTL \
            to a lock that has none; until then `sweep --orphaned` finds them",
    },
    run: |environment| Box::pin(lock_without_expiry(environment)),
};

async fn lock_without_expiry(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    // On a temporary server: if idemctl were killed now, such a lock would remain on the operator's
    // server.
    let server = environment.servers.start(&[]).await?;
    let calls = environment.schema.begin_calls().len();
    for done in 1..calls {
        let run = environment
            .run_on(&format!("its own begin, after {done} of {calls} calls"), &server.target)
            .await?;
        let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
        first.begin_with_calls(0..done).await?;
        first.crash();
        run.retry_until_served("a retry", PAYMENT).await?;
        // The next take uses the same key on this server, which belongs to the scenario.
        run.send(&pack(["FLUSHALL"])).await?;
    }
    let run = environment.run_on("an older worker's SET NX", &server.target).await?;
    run.excuse(Excuse::Environment);
    let first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    first.set_lock_without_ttl().await?;
    first.crash();
    run.retry_until_served("a retry", PAYMENT).await
}

/// The operation has its effect, but then Redis is unreachable and the result is not stored.
pub(super) const RESULT_NOT_STORED: Scenario = Scenario {
    story: Story {
        name: "result-not-stored",
        summary: "the operation is executed, but Redis is unreachable when the result is to be \
            stored",
        remedy: "no script can help; pass the idempotency key on to the provider, or store the \
            result in the operation's own transaction. By hand, use `complete` to store the true \
            response before the lock expires",
    },
    run: |environment| Box::pin(result_not_stored(environment)),
};

async fn result_not_stored(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("").await?;
    run.excuse(Excuse::Environment);
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if first.acquire_lock().await? {
        first.have_effect();
        first.disconnect();
        first.complete().await?;
    }
    run.retry_until_served("a retry", PAYMENT).await
}
