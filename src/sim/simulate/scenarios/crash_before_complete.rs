//! A worker takes the lock and dies before it has done anything. How long does its client wait?

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "crash-before-complete",
        summary: "a worker takes the lock and dies before it has done anything",
        remedy: "give the lock a TTL just above the slowest run of the handler; let long work renew it",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.crashes();
    }
    run.retries("a retry", PAYMENT).await
}
