//! A lock without TTL is left behind: by a worker that died between SET NX and EXPIRE, or by the schema's own begin.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Environment, Lock, PAYMENT, Played, Scenario};
use crate::store::pack;

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "lock-without-expiry",
        summary: "SET NX, then a crash before EXPIRE: a lock without TTL",
        remedy: "take the lock and set its TTL in one command or script, and let begin give a TTL to a lock that has none; \
             until then `sweep --orphaned` finds them",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    // On a server of its own: were idemctl killed now, the operator's would keep such a lock.
    let server = environment.servers.start(&[]).await?;
    let calls = environment.schema.begin_calls().len();
    for done in 1..calls {
        let run = environment.run_on(&format!("its own begin, after {done} of {calls} calls"), &server.target).await?;
        let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
        first.begins_with(0..done).await?;
        first.crashes();
        run.retries("a retry", PAYMENT).await?;
        run.ask(&pack(["FLUSHALL"])).await?;
    }
    let run = environment.run_on("an older worker's SET NX", &server.target).await?;
    let first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    first.leaves_a_lock_for_ever().await?;
    first.crashes();
    run.retries("a retry", PAYMENT).await
}
