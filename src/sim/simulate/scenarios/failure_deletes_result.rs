//! A slow worker completes after its lock has run out, and the worker that holds the lock by then fails.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "failure-deletes-result",
        summary: "a slow worker stores its result, and the failure of the next worker deletes the result",
        remedy: "let release check in a script that the lock is still its owner's, for a plain DEL takes a result as well; let no stored failure be the last word",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let run = environment.run("").await?;
    let mut slow = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = slow.begins().await? else { return run.retries("a retry", PAYMENT).await };
    run.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return run.retries("a retry", PAYMENT).await };
    if slow.may_go_on().await? {
        slow.works();
        slow.completes_late("worker 2's lock").await?;
    }
    second.fails().await?;
    run.retries("a retry", PAYMENT).await
}
