//! Redis forgets its scripts between a worker's steps, as a restart or SCRIPT FLUSH makes it.

use crate::domain::simulation::Story;
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};
use crate::store::pack;

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "script-flush",
        summary: "Redis forgets the scripts between two steps (NOSCRIPT)",
        remedy: "on NOSCRIPT send the script whole: it was not executed",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    if environment.schema.scripts.is_empty() {
        return Err(Abort::NotApplicable("it runs no script".to_owned()));
    }
    let server = environment.servers.start(&[]).await?;
    let run = environment.run_on("", &server.target).await?;
    let flush = pack(["SCRIPT", "FLUSH"]);
    let mut first = run.worker("worker 1", PAYMENT, Lock::Short).await?;
    run.happens("the scripts are flushed", &flush).await?;
    if let Begun::Acquired = first.begins().await? {
        first.works();
        run.happens("the scripts are flushed", &flush).await?;
        first.completes().await?;
    }
    run.happens("the scripts are flushed", &flush).await?;
    run.retries("a retry", PAYMENT).await
}
