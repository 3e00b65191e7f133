//! The schema's steps on a cluster. Can its scripts run there, and what becomes of those that cannot?

use std::rc::Rc;

use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::cluster::Cluster;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "cluster-slots",
        summary: "the schema's steps on a Redis Cluster",
        remedy: "keep a record in one Redis key, or put a hash tag around the idempotency key, and send every Redis key of a \
             script in KEYS",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let cluster = Rc::new(Cluster::start(stage.servers).await?);
    let take = stage.take_on("", cluster.target()).await?;
    take.runs_on(&cluster);
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    match first.begins().await? {
        Begun::Acquired => {
            first.works();
            if !first.completes().await? {
                take.remark(format!("its result cannot be stored: {}", cluster.slots().unwrap_or_default()));
            }
        }
        Begun::Fails(why) => {
            let slots = cluster.slots().map(|slots| format!(" ({slots})")).unwrap_or_default();
            take.told(PAYMENT, Told::Error(format!("{why}{slots}")));
            return Ok(());
        }
        _ => {}
    }
    take.retries("a retry", PAYMENT).await
}
