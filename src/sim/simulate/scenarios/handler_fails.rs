//! The handler fails without effect. Is the error stored, the lock released, or does it stay?

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "handler-fails",
        summary: "the handler fails without effect, and the client tries again",
        remedy: "when the handler fails, release the lock or store the error: a lock left behind blocks until its TTL ends",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.fails().await?;
    }
    run.retries("a retry", PAYMENT).await
}
