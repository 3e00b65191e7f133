//! Completing takes several calls, and the worker dies between two of them: a lock may be left beside the result.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "crash-between-steps",
        summary: "a worker dies between the calls of its completion",
        remedy: "store the result and drop the lock in one script, or store the result first",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let calls = environment.schema.complete_calls().len();
    if calls < 2 && environment.schema.keys.len() < 2 {
        return Err(Abort::NotApplicable(
            "it completes one Redis key in one call: nothing comes in between".to_owned(),
        ));
    }
    for done in 1..calls {
        let run = environment.run(&format!("after {done} of {calls} calls")).await?;
        let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
        if let Begun::Acquired = first.begins().await? {
            first.works();
            first.completes_with(0..done).await?;
            first.crashes();
        }
        run.retries("a retry", PAYMENT).await?;
    }
    if calls < 2 {
        leaves_its_lock(environment).await?;
    }
    Ok(())
}

/// As older releases of such a service complete: SET of the result, then DEL of the lock.
async fn leaves_its_lock(environment: &Environment<'_>) -> Played {
    let run = environment.run("an older worker's SET of the result, without DEL of the lock").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        first.sets_its_result().await?;
        first.crashes();
    }
    run.retries("a retry", PAYMENT).await
}
