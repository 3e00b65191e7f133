//! How a record can have come to what it is: looked up among what its schema's workers can lead to, on a server of its own.

use std::sync::Arc;

use super::task::{Place, Task};
use crate::domain::exploration::{Assumptions, Budget, Past, Reached, Way, gist, past};
use crate::domain::record::Record;
use crate::explore::Limits;
use crate::interrupt::Interrupt;
use crate::sim::simulate::Servers;
use crate::store::{Sandbox, SandboxError, StoreError};

/// Workers that are enough for what can stand at the keys of one record, and faults one of each that leaves a trace there.
const WORKERS: u8 = 2;

/// More than two workers of any schema lead to.
const MOST_STATES: usize = 1_000_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotExplained {
    #[error(transparent)]
    NoServer(#[from] SandboxError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Schema(String),
}

/// What can have led to a record.
///
/// # Errors
/// No throw-away server, or one that fails; or a schema that cannot be explored.
pub(crate) async fn explain(record: &Record, servers: &Servers, interrupt: &Interrupt) -> Result<Past, NotExplained> {
    let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
    let target = sandbox.first_database(&servers.like);
    let program = Task::program(vec![Arc::clone(&record.schema)]).map_err(NotExplained::Schema)?;
    let most = "expiry=1,crash=1,lost=1,fail=1,persist=1".parse().unwrap_or(Budget::USUAL);
    let limits = Limits { most_states: MOST_STATES, forgets: false };
    let task = Task { program, workers: WORKERS, most, assumptions: Assumptions::default(), limits };
    let place = Place { target: &target, key: &record.key, is_private: true, interrupt };
    let mut stage = task.stage(place).await?;
    let explored = task.explore(&mut stage).await?;
    if let Some(question) = explored.unsteady {
        return Err(NotExplained::Schema(task.unsteady(question)));
    }
    let wanted = gist::of_seen(&record.schema, &record.seen);
    let mut ways = Vec::new();
    for reached in past::leading_to(&record.schema, &explored.reached, &wanted) {
        let Reached { holder_lives, faults, beginning, acts, .. } = reached;
        let token = task.token(beginning, acts);
        let traced = task.retrace(&token, &mut stage).await?.map_err(NotExplained::Schema)?;
        let lines = task.retell(&token, &traced, place).await?.lines;
        ways.push(Way { holder_lives: *holder_lives, faults: *faults, token, lines });
    }
    Ok(Past { most, workers: WORKERS, ways })
}
