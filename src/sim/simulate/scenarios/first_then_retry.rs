//! A request is served, and its client, who lost the response, asks again.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "first-then-retry",
        summary: "a request is served, and its client asks again",
        remedy: "look the result up before anything else, and store it before the client gets its response",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let take = stage.take("").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        first.completes().await?;
    }
    take.retries("a retry", PAYMENT).await
}
