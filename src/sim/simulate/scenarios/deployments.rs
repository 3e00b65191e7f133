//! What a deployment can get wrong: values of another release, and TTLs in the wrong unit.

use std::sync::Arc;

use crate::domain::schema::Schema;
use crate::domain::simulation::{ClientAnswer, Story};
use crate::sim::simulate::{
    Aborted, BeginOutcome, LockLifetime, PAYMENT, Scenario, ScenarioEnvironment, ScenarioResult,
};

/// Another schema shares the Redis keys, such as the service's older release, and its values are met.
pub(super) const FOREIGN_VALUE: Scenario = Scenario {
    story: Story {
        name: "foreign-value",
        summary: "a value of another release on the same Redis key is met",
        remedy: "give a new release its own Redis keys, or let its begin read what the older one wrote",
    },
    run: |environment| Box::pin(foreign_value(environment)),
};

async fn foreign_value(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let others = schemas_on_the_same_keys(environment);
    if others.is_empty() {
        return Err(Aborted::NotApplicable("no other schema writes its Redis keys".to_owned()));
    }
    for other in others {
        let run = environment.run(&format!("a lock of {}", other.name)).await?;
        let worker = run.worker("another release", PAYMENT, LockLifetime::Short).await?;
        worker.set_lock_of(other).await?;
        worker.crash();
        run.retry_until_served("a retry", PAYMENT).await?;

        let run = environment.run(&format!("a result of {}", other.name)).await?;
        let mut worker = run.worker("another release", PAYMENT, LockLifetime::Long).await?;
        worker.set_lock_of(other).await?;
        run.request_once("a client", PAYMENT).await?;
        worker.set_result_of(other).await?;
        run.retry_until_served("a retry", PAYMENT).await?;
    }
    Ok(())
}

/// The other schemas whose services write the Redis keys of this one.
fn schemas_on_the_same_keys<'a>(environment: &ScenarioEnvironment<'a>) -> Vec<&'a Arc<Schema>> {
    let mut others = Vec::new();
    for other in environment.all {
        let is_other = other.name != environment.schema.name;
        if is_other
            && other.unplayable_because().is_none()
            && environment.schema.has_templates_of(other)
        {
            others.push(other);
        }
    }
    others
}

/// The lock TTL that is sent is not a whole number of seconds, or zero, or a whole number that the lock must live for.
pub(super) const CLOCK_OF_TTL: Scenario = Scenario {
    story: Story {
        name: "clock-of-ttl",
        summary: "a whole second, a fraction of one, and zero are sent as lock TTL",
        remedy: "round TTLs up to whole seconds before they are sent, never down to 0, and validate them before SET",
    },
    run: |environment| Box::pin(clock_of_ttl(environment)),
};

async fn clock_of_ttl(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    if !environment.schema.sends_lock_ttl() {
        return Err(Aborted::NotApplicable("its begin sends no lock TTL".to_owned()));
    }
    for ttl in ["1.5", "0"] {
        let run = environment.run(&format!("a TTL of {ttl}")).await?;
        let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Raw(ttl)).await?;
        match first.begin().await? {
            BeginOutcome::Acquired => {
                run.request_once("a retry", PAYMENT).await?;
                first.work();
                first.complete().await?;
            }
            BeginOutcome::Fails(why) => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
            _ => {}
        }
        run.retry_until_served("a later retry", PAYMENT).await?;
    }
    lives_for_its_ttl(environment).await
}

/// Seconds that are taken for milliseconds are over in no time.
async fn lives_for_its_ttl(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("a TTL of which a quarter passes").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if !first.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    tokio::time::sleep(environment.lock_ttl / 4).await;
    run.request_once("a retry", PAYMENT).await?;
    first.work();
    first.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}
