//! A worker's handler fails, but only after its lock has run out and another worker holds it.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "zombie-releases",
        summary: "a slow failure gives up the lock that another worker holds by then",
        remedy: "let release check the lock's owner, in a script: a plain DEL takes whatever is there",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    fails_late(stage, "it fails", false).await?;
    if stage.schema.release.is_some() {
        fails_late(stage, "it releases", true).await?;
    }
    Ok(())
}

async fn fails_late(stage: &Stage<'_>, title: &str, releases: bool) -> Played {
    let take = stage.take(title).await?;
    let mut slow = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    let mut second = take.worker("worker 2", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = slow.begins().await? else { return take.retries("a retry", PAYMENT).await };
    take.lock_runs_out().await?;
    let Begun::Acquired = second.begins().await? else { return take.retries("a retry", PAYMENT).await };
    if releases {
        slow.releases().await?;
    } else {
        slow.fails().await?;
    }
    take.asks("a retry", PAYMENT).await?;
    second.works();
    second.completes().await?;
    take.retries("a later retry", PAYMENT).await
}
