//! A lock without TTL is left behind: by a worker that died between SET NX and EXPIRE, or by the schema's own begin.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Lock, PAYMENT};
use crate::store::pack;

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "lock-without-expiry",
        summary: "SET NX, then a crash before EXPIRE: a lock without TTL",
        remedy: "take the lock and set its TTL in one command or script, and let begin give a TTL to a lock that has none; \
             until then `idemctl sweep --orphaned` finds them",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    // On a server of its own: were idemctl killed now, the operator's would keep such a lock.
    let server = stage.servers.start(&[]).await?;
    let calls = stage.schema.begin.calls.len();
    for done in 1..calls {
        let take = stage.take_on(&format!("its own begin, after {done} of {calls} calls"), &server.target).await?;
        let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
        first.begins_with(0..done).await?;
        first.crashes();
        take.retries("a retry", PAYMENT).await?;
        take.ask(&pack(["FLUSHALL"])).await?;
    }
    let take = stage.take_on("an older worker's SET NX", &server.target).await?;
    let first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    first.leaves_a_lock_for_ever().await?;
    first.crashes();
    take.retries("a retry", PAYMENT).await
}
