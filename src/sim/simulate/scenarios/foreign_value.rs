//! Another schema shares the Redis keys, such as the service's older release, and its values are met.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Cut, Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "foreign-value",
        summary: "a value of another release on the same Redis key is met",
        remedy: "give a new release its own Redis keys, or let its begin read what the older one wrote",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let others = || {
        let shares = |other: &&std::sync::Arc<_>| stage.schema.has_templates_of(other);
        stage.all.iter().filter(shares).filter(|other| other.name != stage.schema.name)
    };
    if others().next().is_none() {
        return Err(Cut::NotApplicable("no other schema writes its Redis keys".to_owned()));
    }
    for other in others() {
        let take = stage.take(&format!("a lock of {}", other.name)).await?;
        let worker = take.worker("another release", PAYMENT, Lock::Short).await?;
        worker.takes_lock_of(other).await?;
        worker.crashes();
        take.retries("a retry", PAYMENT).await?;

        let take = stage.take(&format!("a result of {}", other.name)).await?;
        let mut worker = take.worker("another release", PAYMENT, Lock::Long).await?;
        worker.takes_lock_of(other).await?;
        take.asks("a client", PAYMENT).await?;
        worker.leaves_result_of(other).await?;
        take.retries("a retry", PAYMENT).await?;
    }
    Ok(())
}
