//! The client is gone before the response, while the handler is still at work, and asks again.

use crate::domain::schema::OnHangUp;
use crate::domain::simulation::Story;
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "client-hangs-up",
        summary: "the client is gone before the response, and asks again",
        remedy: "let the handler go on and store its result: a client that is gone has cancelled nothing",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let Some(does) = environment.schema.service.on_hang_up else {
        return Err(Abort::NotApplicable(
            "schema.toml does not say what the service does then (on_hang_up)".to_owned(),
        ));
    };
    let run = environment.run("").await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = first.begins().await? else { return run.retries("a retry", PAYMENT).await };
    run.note("a client", "hangs up", None, None);
    if does == OnHangUp::Release {
        first.releases().await?;
    }
    run.asks("a retry", PAYMENT).await?;
    first.works();
    first.completes().await?;
    run.retries("a later retry", PAYMENT).await
}
