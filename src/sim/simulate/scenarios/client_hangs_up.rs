//! The client is gone before the response, while the handler is still at work, and asks again.

use crate::domain::schema::OnHangUp;
use crate::domain::simulation::Story;
use crate::sim::simulate::environment::{Cut, Played, Stage};
use crate::sim::simulate::scenario::Scenario;
use crate::sim::simulate::worker::{Begun, Lock, PAYMENT};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "client-hangs-up",
        summary: "the client is gone before the response, and asks again",
        remedy: "let the handler go on and store its result: a client that is gone has cancelled nothing",
    },
    play: |stage| Box::pin(play(stage)),
};

async fn play(stage: &Stage<'_>) -> Played {
    let Some(does) = stage.schema.conduct.on_hang_up else {
        return Err(Cut::NotApplicable("schema.toml does not say what the service does then (on_hang_up)".to_owned()));
    };
    let take = stage.take("").await?;
    let mut first = take.worker("worker 1", PAYMENT, Lock::Long).await?;
    let Begun::Acquired = first.begins().await? else { return take.retries("a retry", PAYMENT).await };
    take.note("a client", "hangs up", None, None);
    if does == OnHangUp::Release {
        first.releases().await?;
    }
    take.asks("a retry", PAYMENT).await?;
    first.works();
    first.completes().await?;
    take.retries("a later retry", PAYMENT).await
}
