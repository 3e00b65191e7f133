//! Redis forgets its scripts between a worker's steps, as a restart or SCRIPT FLUSH makes it.

use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Cut, Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};
use crate::store::pack;

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "script-flush",
        summary: "Redis forgets the scripts between two steps (NOSCRIPT)",
        remedy: "on NOSCRIPT send the script whole: it was not executed",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    if stage.schema.scripts.is_empty() {
        return Err(Cut::NotApplicable("it runs no script".to_owned()));
    }
    let server = stage.servers.start(&[]).await?;
    let take = stage.take_on("", &server.target).await?;
    let flush = pack(["SCRIPT", "FLUSH"]);
    let mut first = take.worker("worker 1", PAYMENT, Lock::Short).await?;
    take.happens("the scripts are flushed", &flush).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        take.happens("the scripts are flushed", &flush).await?;
        first.completes().await?;
    }
    take.happens("the scripts are flushed", &flush).await?;
    take.retries("a retry", PAYMENT).await
}
