//! A worker takes the lock and dies before it has done anything. How long does its client wait?

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "crash-before-complete",
        summary: "a worker takes the lock and dies before it has done anything",
        remedy: "give the lock a TTL just above the slowest run of the handler; let long work renew it",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let take = stage.take("").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.crashes();
    }
    take.retries("a retry", PAYMENT).await
}
