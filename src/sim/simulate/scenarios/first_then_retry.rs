//! A request is served, and its client, who lost the response, asks again.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "first-then-retry",
        summary: "a request is served, and its client asks again",
        remedy: "look the result up before anything else, and store it before the client gets its response",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        first.completes().await?;
    }
    run.retries("a retry", PAYMENT).await
}
