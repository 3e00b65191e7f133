//! A worker is paused beyond its lock. Another takes the lock and completes before the first comes back.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "zombie-overwrites",
        summary: "a worker paused beyond its lock comes back after another completed",
        remedy: "let complete check the lock's owner, and let a worker renew its lock right before what cannot be taken back",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    comes_back_to_work(stage).await?;
    comes_back_to_complete(stage).await
}

/// It was paused before it did anything, and goes on.
async fn comes_back_to_work(stage: &Stage<'_>) -> Played {
    let take = stage.take("it goes on working").await?;
    let mut zombie = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = take.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = zombie.begins().await? else { return take.retries("a retry", PAYMENT).await };
    take.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return take.retries("a retry", PAYMENT).await };
    second.works();
    second.completes().await?;
    if zombie.may_go_on().await? {
        zombie.works();
        zombie.completes_late("worker 2's result").await?;
    }
    take.retries("a retry", PAYMENT).await
}

/// What it asked for did not come about, and it comes back with that for an answer.
async fn comes_back_to_complete(stage: &Stage<'_>) -> Played {
    let take = stage.take("it completes what had no effect").await?;
    let mut zombie = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = take.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = zombie.begins().await? else { return take.retries("a retry", PAYMENT).await };
    zombie.works_in_vain();
    take.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return take.retries("a retry", PAYMENT).await };
    second.works();
    second.completes().await?;
    zombie.completes_late("worker 2's result").await?;
    take.retries("a retry", PAYMENT).await
}
