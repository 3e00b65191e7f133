//! Redis cannot be reached when a request comes. Does the service refuse, or execute without a lock?

use crate::domain::schema::WithoutRedis;
use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "store-down",
        summary: "Redis cannot be reached when the request and its retry come",
        remedy: "fail closed: answer 503 when Redis cannot be reached, for a request executed without a lock has no retry",
    },
    play: |environment| Box::pin(play(environment)),
};

async fn play(environment: &Environment<'_>) -> Played {
    let Some(does) = environment.schema.service.without_redis else {
        return Err(Abort::NotApplicable(
            "schema.toml does not say what the service does then (without_redis)".to_owned(),
        ));
    };
    let run = environment.run("").await?;
    for name in ["worker 1", "a retry"] {
        let mut worker = run.worker(name, PAYMENT, Lock::Long).await?;
        worker.loses_redis();
        if let Begun::Unreachable(why) = worker.begins().await? {
            match does {
                WithoutRedis::Refuse => run.told(PAYMENT, Told::Error(why)),
                WithoutRedis::Execute => worker.works(),
            }
        }
    }
    Ok(())
}
