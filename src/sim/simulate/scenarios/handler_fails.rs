//! The handler fails without effect. Is the error stored, the lock released, or does it stay?

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "handler-fails",
        summary: "the handler fails without effect, and the client tries again",
        remedy: "when the handler fails, release the lock or store the error: a lock left behind blocks until its TTL ends",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let take = stage.take("").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.fails().await?;
    }
    take.retries("a retry", PAYMENT).await
}
