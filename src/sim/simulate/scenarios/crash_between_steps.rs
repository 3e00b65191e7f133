//! Completing takes several calls, and the worker dies between two of them: a lock may be left beside the result.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Cut, Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "crash-between-steps",
        summary: "a worker dies between the calls of its completion",
        remedy: "store the result and drop the lock in one script, or store the result first",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let calls = stage.schema.complete.calls.len();
    if calls < 2 && stage.schema.slots.len() < 2 {
        return Err(Cut::NotApplicable("it completes one Redis key in one call: nothing comes in between".to_owned()));
    }
    for done in 1..calls {
        let take = stage.take(&format!("after {done} of {calls} calls")).await?;
        let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
        if let Begun::Acquired = first.begins().await? {
            first.works();
            first.completes_with(0..done).await?;
            first.crashes();
        }
        take.retries("a retry", PAYMENT).await?;
    }
    if calls < 2 {
        leaves_its_lock(stage).await?;
    }
    Ok(())
}

/// As older releases of such a service complete: SET of the result, then DEL of the lock.
async fn leaves_its_lock(stage: &Stage<'_>) -> Played {
    let take = stage.take("an older worker's SET of the result, without DEL of the lock").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        first.sets_its_result().await?;
        first.crashes();
    }
    take.retries("a retry", PAYMENT).await
}
