//! The histories that `explore` finds for the schemas of a deployment and its faults.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;

use crate::domain::doctor::{ExploredFaults, FaultOutcome, Statement};
use crate::domain::schema::Schema;
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::sim::exploration::FaultExplorer;
use crate::sim::simulate::LocalServers;

/// Adds to each statement with a fault what `explore` finds for the schemas in use with this fault
/// alone. `are_all` is true if these are certainly all of them.
///
/// # Errors
/// Interrupted; or an error of the temporary local Redis.
pub(super) async fn explain(
    session: &Session,
    statements: &mut [Statement],
    schemas: &[Arc<Schema>],
    are_all: bool,
) -> Result<()> {
    let mut faults = BTreeSet::new();
    for statement in statements.iter() {
        faults.extend(statement.judgement.fault);
    }
    for fault in faults {
        let outcomes = explore(session, schemas, ExploredFaults::Alone(fault)).await?;
        for statement in statements.iter_mut() {
            if statement.judgement.fault == Some(fault) {
                statement.explain(&outcomes, are_all);
            }
        }
    }
    Ok(())
}

/// What `explore` finds in each schema with these faults.
///
/// # Errors
/// Interrupted; or an error of the temporary local Redis.
pub(super) async fn explore(
    session: &Session,
    schemas: &[Arc<Schema>],
    faults: ExploredFaults,
) -> Result<Vec<(String, FaultOutcome)>> {
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    let environment = session.settings.environment();
    let servers = LocalServers {
        path: environment.path(),
        temp_dir: environment.temp_dir(),
        like: session.settings.target().clone(),
    };
    let interrupt = Interrupt::listen()?;
    interrupt.handle_terminate()?;
    let mut outcomes = Vec::new();
    let explorer = match FaultExplorer::start(&servers, &interrupt).await {
        Ok(explorer) => explorer,
        // The findings are true without a history.
        Err(error) => {
            for schema in schemas {
                outcomes.push((schema.name.clone(), FaultOutcome::Unknown(error.to_string())));
            }
            return Ok(outcomes);
        }
    };
    for schema in schemas {
        let outcome = explorer.explore(schema, faults).await;
        if interrupt.is_raised() {
            return Err(CommandError::interrupted("interrupted").into());
        }
        outcomes.push((schema.name.clone(), outcome?));
    }
    Ok(outcomes)
}
