//! A worker's handler fails, but only after its lock has run out and another worker holds it.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "zombie-releases",
        summary: "a slow failure gives up the lock that another worker holds by then",
        remedy: "let release check the lock's owner, in a script: a plain DEL takes whatever is there",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    fails_late(environment, "it fails", false).await?;
    if environment.schema.release.is_some() {
        fails_late(environment, "it releases", true).await?;
    }
    Ok(())
}

async fn fails_late(environment: &Environment<'_>, title: &str, releases: bool) -> Played {
    let run = environment.run(title).await?;
    let mut slow = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = run.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = slow.begins().await? else { return run.retries("a retry", PAYMENT).await };
    run.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return run.retries("a retry", PAYMENT).await };
    if releases {
        slow.releases().await?;
    } else {
        slow.fails().await?;
    }
    run.asks("a retry", PAYMENT).await?;
    second.works();
    second.completes().await?;
    run.retries("a later retry", PAYMENT).await
}
