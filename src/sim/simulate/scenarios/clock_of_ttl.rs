//! A lock TTL is sent that is no whole number of seconds, or none at all; and one that is, for a lock has to live for it.

use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::environment::{Cut, Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "clock-of-ttl",
        summary: "a whole second, a fraction of one, and zero are sent as lock TTL",
        remedy: "round TTLs up to whole seconds before they are sent, never down to 0, and validate them before SET",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    if !stage.schema.sends_lock_ttl() {
        return Err(Cut::NotApplicable("its begin sends no lock TTL".to_owned()));
    }
    for ttl in ["1.5", "0"] {
        let take = stage.take(&format!("a TTL of {ttl}")).await?;
        let mut first = take.worker("worker 1", PAYMENT, Lock::Raw(ttl)).await?;
        match first.begins().await? {
            Begun::Acquired => {
                take.asks("a retry", PAYMENT).await?;
                first.works();
                first.completes().await?;
            }
            Begun::Fails(why) => take.told(PAYMENT, Told::Error(why)),
            _ => {}
        }
        take.retries("a later retry", PAYMENT).await?;
    }
    lives_for_its_ttl(stage).await
}

/// Seconds that are taken for milliseconds are over in no time.
async fn lives_for_its_ttl(stage: &Stage<'_>) -> Played {
    let take = stage.take("a TTL of which a quarter passes").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    let Begun::Acquired = first.begins().await? else { return take.retries("a retry", PAYMENT).await };
    tokio::time::sleep(stage.lock_ttl / 4).await;
    take.asks("a retry", PAYMENT).await?;
    first.works();
    first.completes().await?;
    take.retries("a later retry", PAYMENT).await
}
