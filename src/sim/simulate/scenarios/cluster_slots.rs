//! The schema's steps on a cluster. Can its scripts run there, and what becomes of those that cannot?

use std::rc::Rc;

use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::cluster::Cluster;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "cluster-slots",
        summary: "the schema's steps on a Redis Cluster",
        remedy: "keep a record in one Redis key, or put a hash tag around the idempotency key, and send every Redis key of a \
             script in KEYS",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let cluster = Rc::new(Cluster::start(environment.servers).await?);
    let run = environment.run_on("", cluster.target()).await?;
    run.runs_on(&cluster);
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    match first.begins().await? {
        Begun::Acquired => {
            first.works();
            if !first.completes().await? {
                run.remark(format!("its result cannot be stored: {}", cluster.slots().unwrap_or_default()));
            }
        }
        Begun::Fails(why) => {
            let slots = cluster.slots().map(|slots| format!(" ({slots})")).unwrap_or_default();
            run.told(PAYMENT, Told::Error(format!("{why}{slots}")));
            return Ok(());
        }
        _ => {}
    }
    run.retries("a retry", PAYMENT).await
}
