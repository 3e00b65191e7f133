//! The operation is made, and then Redis cannot be reached to store the result.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "result-not-stored",
        summary: "the operation is made, but Redis cannot be reached to store the result",
        remedy: "no script can help: pass the idempotency key on to the provider, or keep the result in the operation's own \
             transaction; by hand, `complete` stores the true response before the lock's TTL ends",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        first.loses_redis();
        first.completes().await?;
    }
    run.retries("a retry", PAYMENT).await
}
