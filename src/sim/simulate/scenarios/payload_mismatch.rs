//! Another operation comes with the key of one that is made already, or is being made.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, OTHER_PAYMENT, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "payload-mismatch",
        summary: "the same key comes with another payload",
        remedy: "store a hash of the payload with the lock, compare it at begin, and answer 422 when it differs",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    for (title, completed) in [("after the first completed", true), ("while the first is at work", false)] {
        let run = environment.run(title).await?;
        let mut first = run.worker("worker 1", PAYMENT, Lock::Long).await?;
        let Begun::Acquired = first.begins().await? else { return run.retries("a retry", PAYMENT).await };
        first.works();
        if completed {
            first.completes().await?;
        }
        run.asks("another client", OTHER_PAYMENT).await?;
        if !completed {
            first.completes().await?;
        }
        run.retries("a retry", PAYMENT).await?;
    }
    Ok(())
}
