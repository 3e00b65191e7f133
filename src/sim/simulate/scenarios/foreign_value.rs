//! Another schema shares the Redis keys, such as the service's older release, and its values are met.

use crate::domain::schema::Schema;
use crate::domain::simulation::Story;
use crate::sim::simulate::{Abort, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "foreign-value",
        summary: "a value of another release on the same Redis key is met",
        remedy: "give a new release its own Redis keys, or let its begin read what the older one wrote",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let others = || {
        let shares = |other: &&std::sync::Arc<Schema>| {
            other.unplayable_because().is_none() && environment.schema.has_templates_of(other)
        };
        environment.all.iter().filter(shares).filter(|other| other.name != environment.schema.name)
    };
    if others().next().is_none() {
        return Err(Abort::NotApplicable("no other schema writes its Redis keys".to_owned()));
    }
    for other in others() {
        let run = environment.run(&format!("a lock of {}", other.name)).await?;
        let worker = run.worker("another release", PAYMENT, Lock::Short).await?;
        worker.takes_lock_of(other).await?;
        worker.crashes();
        run.retries("a retry", PAYMENT).await?;

        let run = environment.run(&format!("a result of {}", other.name)).await?;
        let mut worker = run.worker("another release", PAYMENT, Lock::Long).await?;
        worker.takes_lock_of(other).await?;
        run.asks("a client", PAYMENT).await?;
        worker.leaves_result_of(other).await?;
        run.retries("a retry", PAYMENT).await?;
    }
    Ok(())
}
