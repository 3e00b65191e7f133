//! Workers that continue after their lock expired, while another worker holds the lock or has
//! completed.

use std::sync::Arc;

use crate::domain::schema::Schema;
use crate::domain::simulation::{ClientAnswer, Excuse, Story};
use crate::sim::simulate::{
    Aborted, BeginOutcome, LockLifetime, PAYMENT, Scenario, ScenarioEnvironment, ScenarioResult,
};

const LATE_REMEDY: &str = "compare the lock's owner in the script that stores a result, and renew \
    a lock immediately before any effect that cannot be undone";

/// The take in which the paused worker's operation has no effect.
const WITHOUT_EFFECT: &str = "its operation has no effect";

/// A worker pauses until its lock has expired. Another worker acquires the lock and is still
/// running when the first continues.
pub(super) const ZOMBIE_COMPLETES: Scenario = Scenario {
    story: Story {
        name: "zombie-completes",
        summary: "a worker that was paused until its lock expired resumes while another worker is \
            running",
        remedy: LATE_REMEDY,
    },
    run: |environment| Box::pin(zombie_completes(environment)),
};

async fn zombie_completes(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    zombie_works_and_completes(environment).await?;
    zombie_without_effect_completes(environment).await
}

/// The paused worker has done nothing yet, and continues with its work.
async fn zombie_works_and_completes(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("it continues").await?;
    run.excuse(Excuse::Environment);
    let mut zombie = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !zombie.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    if zombie.work().await? {
        zombie.complete().await?;
    }
    run.request_once("a retry", PAYMENT).await?;
    second.have_effect();
    second.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}

/// The paused worker's operation had no effect, and the worker now completes with that answer.
async fn zombie_without_effect_completes(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run(WITHOUT_EFFECT).await?;
    run.excuse(Excuse::Environment);
    let mut zombie = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !zombie.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    zombie.work_without_effect();
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    second.have_effect();
    zombie.complete().await?;
    run.request_once("a retry", PAYMENT).await?;
    second.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}

/// A worker pauses until its lock has expired. Another worker acquires the lock and completes
/// before the first continues.
pub(super) const ZOMBIE_OVERWRITES: Scenario = Scenario {
    story: Story {
        name: "zombie-overwrites",
        summary: "a worker that was paused until its lock expired resumes after another worker \
            completed",
        remedy: LATE_REMEDY,
    },
    run: |environment| Box::pin(zombie_overwrites(environment)),
};

async fn zombie_overwrites(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    zombie_works_and_overwrites(environment).await?;
    zombie_without_effect_overwrites(environment).await
}

/// The paused worker has done nothing yet, and continues with its work.
async fn zombie_works_and_overwrites(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("it continues").await?;
    run.excuse(Excuse::Environment);
    let mut zombie = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !zombie.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    second.have_effect();
    second.complete().await?;
    if zombie.work().await? {
        zombie.complete().await?;
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// The paused worker's operation had no effect, and the worker now completes with that answer.
async fn zombie_without_effect_overwrites(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run(WITHOUT_EFFECT).await?;
    run.excuse(Excuse::Environment);
    let mut zombie = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !zombie.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    zombie.work_without_effect();
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    second.have_effect();
    second.complete().await?;
    zombie.complete().await?;
    run.retry_until_served("a retry", PAYMENT).await
}

/// A worker renews its lock, and pauses between the renewal and its effect until the lock has expired.
pub(super) const ZOMBIE_AFTER_RENEWAL: Scenario = Scenario {
    story: Story {
        name: "zombie-after-renewal",
        summary: "a worker pauses after its renewal until its lock has expired",
        remedy: LATE_REMEDY,
    },
    run: |environment| Box::pin(zombie_after_renewal(environment)),
};

async fn zombie_after_renewal(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    if environment.schema.renew.is_none() {
        return Err(Aborted::NotApplicable("no renew step".to_owned()));
    }
    let run = environment.run("").await?;
    run.excuse(Excuse::Environment);
    let mut zombie = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !zombie.acquire_lock().await? || !zombie.renew_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    zombie.have_effect();
    zombie.complete().await?;
    run.request_once("a retry", PAYMENT).await?;
    second.have_effect();
    second.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}

/// A worker's handler fails, but only after its lock has expired and another worker holds it.
pub(super) const ZOMBIE_RELEASES: Scenario = Scenario {
    story: Story {
        name: "zombie-releases",
        summary: "a slow failure releases the lock that another worker holds by then",
        remedy: "compare the lock's owner in the script that removes a lock, because a plain DEL \
            removes any value",
    },
    run: |environment| Box::pin(zombie_releases(environment)),
};

async fn zombie_releases(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    fails_late(environment, "it fails", false).await?;
    if environment.schema.release.is_some() {
        fails_late(environment, "it releases", true).await?;
    }
    Ok(())
}

async fn fails_late(
    environment: &ScenarioEnvironment<'_>,
    title: &str,
    releases: bool,
) -> ScenarioResult {
    let run = environment.run(title).await?;
    let mut slow = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !slow.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    if releases {
        slow.release().await?;
    } else {
        slow.fail().await?;
    }
    run.request_once("a retry", PAYMENT).await?;
    second.have_effect();
    second.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}

/// A slow worker completes after its lock has expired, and then the worker that holds the lock
/// fails.
pub(super) const FAILURE_DELETES_RESULT: Scenario = Scenario {
    story: Story {
        name: "failure-deletes-result",
        summary: "a slow worker stores its result, and the failure of the next worker deletes the \
            result",
        remedy: "let no stored failure be final, and let no failure remove a stored result",
    },
    run: |environment| Box::pin(failure_deletes_result(environment)),
};

async fn failure_deletes_result(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("").await?;
    run.excuse(Excuse::Environment);
    let mut slow = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, LockLifetime::Long).await?;
    if !slow.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    run.wait_for_lock_expiry().await?;
    if !second.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    if slow.work().await? {
        slow.complete().await?;
    }
    second.fail().await?;
    run.retry_until_served("a retry", PAYMENT).await
}

/// Another schema, such as the service's older release, shares the Redis keys, and the service
/// reads its values.
pub(super) const FOREIGN_VALUE: Scenario = Scenario {
    story: Story {
        name: "foreign-value",
        summary: "a request finds a value of another release at the same Redis key",
        remedy: "give a new release its own Redis keys, or let its begin read what the older one \
            wrote",
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

/// The other schemas whose services write the Redis keys of this schema.
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

/// The sent lock TTL is a fraction, zero, or a whole number of seconds. A lock with the last one
/// must live that long.
pub(super) const CLOCK_OF_TTL: Scenario = Scenario {
    story: Story {
        name: "clock-of-ttl",
        summary: "a whole second, a fraction of one, and zero are sent as lock TTL",
        remedy: "round TTLs up to whole seconds before they are sent, never down to 0, and \
            validate them before SET",
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
                first.have_effect();
                first.complete().await?;
            }
            BeginOutcome::Fails(why) => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
            _ => {}
        }
        run.retry_until_served("a later retry", PAYMENT).await?;
    }
    lives_for_its_ttl(environment).await
}

/// A lock whose TTL in seconds is taken for milliseconds would expire too early.
async fn lives_for_its_ttl(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let run = environment.run("a TTL of which a quarter passes").await?;
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    if !first.acquire_lock().await? {
        return run.retry_until_served("a retry", PAYMENT).await;
    }
    tokio::time::sleep(environment.lock_ttl / 4).await;
    run.request_once("a retry", PAYMENT).await?;
    first.have_effect();
    first.complete().await?;
    run.retry_until_served("a later retry", PAYMENT).await
}
