//! Two requests with one key come at the same moment.
//!
//! What chance may bring about is also played on purpose: where begin has several calls, everything that another
//! request can do between two of them.

use fastrand::Rng;
use futures_util::future::join_all;
use std::time::Duration;

use crate::domain::schema::OnFailure;
use crate::domain::simulation::{Story, Told};
use crate::sim::simulate::worker::Worker;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "concurrent-duplicates",
        summary: "requests with one key come at the same moment",
        remedy: "look up the result and take the lock in one script: between two calls another request can begin and end",
    },
    play: |environment| Box::pin(play(environment)),
};

const REQUESTS: usize = 8;

/// How far apart they may be, in microseconds.
const SPREAD_US: u64 = 500;

async fn play(environment: &Environment<'_>) -> Played {
    // A failure that leaves everything as it is brings nothing in between.
    let keeps = environment.schema.on_failure() == OnFailure::Keep;
    let all = [Between::Everything, Between::Completion, Between::Failure, Between::Expiry];
    for done in 1..environment.schema.begin_calls().len() {
        for between in all.into_iter().filter(|between| !keeps || *between != Between::Failure) {
            interleaved(environment, done, between).await?;
        }
    }
    let mut rng = Rng::with_seed(environment.seed);
    for round in 1..=environment.repeat {
        at_once(environment, &format!("all at once, round {round}"), &mut rng).await?;
    }
    Ok(())
}

/// Everybody begins, and who gets the lock works and completes while the others are still at it.
async fn at_once(environment: &Environment<'_>, title: &str, rng: &mut Rng) -> Played {
    let run = environment.run(title).await?;
    let mut workers = Vec::new();
    for number in 1..=REQUESTS {
        workers.push(run.worker(&format!("worker {number}"), PAYMENT, Lock::Long).await?);
    }
    rng.shuffle(&mut workers);
    let delays: Vec<_> = workers.iter().map(|_| Duration::from_micros(rng.u64(0..SPREAD_US))).collect();
    let requests = workers.iter_mut().zip(delays).map(|(worker, delay)| async move {
        tokio::time::sleep(delay).await;
        serves(worker).await
    });
    join_all(requests).await.into_iter().collect::<Played<Vec<()>>>()?;
    run.retries("a retry", PAYMENT).await
}

async fn serves(worker: &mut Worker<'_>) -> Played {
    if let Begun::Acquired = worker.begins().await? {
        worker.works();
        worker.completes().await?;
    }
    Ok(())
}

/// What happens between two calls of a begin step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// Another request begins, works and completes.
    Everything,
    /// Another request that had begun before completes.
    Completion,
    /// Another request that had begun before fails.
    Failure,
    /// The lock of another request that had begun before runs out.
    Expiry,
}

impl Between {
    fn words(self) -> &'static str {
        match self {
            Self::Everything => "another request begins and completes between two calls of begin",
            Self::Completion => "another request completes between two calls of begin",
            Self::Failure => "another request fails between two calls of begin",
            Self::Expiry => "another lock runs out between two calls of begin",
        }
    }
}

async fn interleaved(environment: &Environment<'_>, done: usize, between: Between) -> Played {
    let run = environment.run(between.words()).await?;
    let lock = if between == Between::Expiry { Lock::Short } else { Lock::Long };
    let mut other = run.worker("worker 1", PAYMENT, lock).await?;
    let mut worker = run.worker("worker 2", PAYMENT, Lock::Long).await?;
    if between != Between::Everything {
        let Begun::Acquired = other.begins().await? else { return run.retries("a retry", PAYMENT).await };
    }
    let mut begun = worker.begins_with(0..done).await?;
    match between {
        Between::Everything => serves(&mut other).await?,
        Between::Completion => {
            other.works();
            other.completes().await?;
        }
        Between::Failure => other.fails().await?,
        Between::Expiry => run.lock_runs_out().await?,
    }
    if begun.is_none() {
        begun = worker.begins_with(done..worker.begin_calls()).await?;
    }
    match begun {
        Some(Begun::Acquired) => {
            worker.works();
            worker.completes().await?;
        }
        Some(Begun::Fails(why)) => run.told(PAYMENT, Told::Error(why)),
        _ => {}
    }
    run.retries("a retry", PAYMENT).await
}
