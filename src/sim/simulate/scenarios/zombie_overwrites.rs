//! A worker is paused beyond its lock. Another takes the lock and completes before the first comes back.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "zombie-overwrites",
        summary: "a worker paused beyond its lock comes back after another completed",
        remedy: "let complete check the lock's owner, and let a worker renew its lock right before what cannot be taken back",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    comes_back_to_work(environment).await?;
    comes_back_to_complete(environment).await
}

/// The paused worker had done nothing yet, and goes on with its work.
async fn comes_back_to_work(environment: &Environment<'_>) -> Played {
    let run = environment.run("it goes on working").await?;
    let mut zombie = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = zombie.begins().await? else { return run.retries("a retry", PAYMENT).await };
    run.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return run.retries("a retry", PAYMENT).await };
    second.works();
    second.completes().await?;
    if zombie.may_go_on().await? {
        zombie.works();
        zombie.completes_late("worker 2's result").await?;
    }
    run.retries("a retry", PAYMENT).await
}

/// The paused worker's operation had no effect, and the worker comes back to complete with that answer.
async fn comes_back_to_complete(environment: &Environment<'_>) -> Played {
    let run = environment.run("it completes what had no effect").await?;
    let mut zombie = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = zombie.begins().await? else { return run.retries("a retry", PAYMENT).await };
    zombie.works_in_vain();
    run.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return run.retries("a retry", PAYMENT).await };
    second.works();
    second.completes().await?;
    zombie.completes_late("worker 2's result").await?;
    run.retries("a retry", PAYMENT).await
}
