//! A lock TTL is sent that is no whole number of seconds, or none at all; and one that is, for a lock has to live for it.

use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "clock-of-ttl",
        summary: "a whole second, a fraction of one, and zero are sent as lock TTL",
        remedy: "round TTLs up to whole seconds before they are sent, never down to 0, and validate them before SET",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    if !environment.schema.sends_lock_ttl() {
        return Err(Abort::NotApplicable("its begin sends no lock TTL".to_owned()));
    }
    for ttl in ["1.5", "0"] {
        let run = environment.run(&format!("a TTL of {ttl}")).await?;
        let mut first = run.worker("worker 1", PAYMENT, Lock::Raw(ttl)).await?;
        match first.begins().await? {
            Begun::Acquired => {
                run.asks("a retry", PAYMENT).await?;
                first.works();
                first.completes().await?;
            }
            Begun::Fails(why) => run.told(PAYMENT, Told::Error(why)),
            _ => {}
        }
        run.retries("a later retry", PAYMENT).await?;
    }
    lives_for_its_ttl(environment).await
}

/// Seconds that are taken for milliseconds are over in no time.
async fn lives_for_its_ttl(environment: &Environment<'_>) -> Played {
    let run = environment.run("a TTL of which a quarter passes").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    let Begun::Acquired = first.begins().await? else { return run.retries("a retry", PAYMENT).await };
    tokio::time::sleep(environment.lock_ttl / 4).await;
    run.asks("a retry", PAYMENT).await?;
    first.works();
    first.completes().await?;
    run.retries("a later retry", PAYMENT).await
}
