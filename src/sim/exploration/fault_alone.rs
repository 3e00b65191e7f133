//! What a schema does with one fault alone, or with the default faults.

use std::sync::Arc;

use super::task::{ExplorationPlace, ExplorationTask, unexplorable_because};
use crate::domain::doctor::{Counterexample, ExploredFaults, FaultOutcome};
use crate::domain::exploration::{Assumptions, Exploration, FaultBudget, Violation};
use crate::domain::schema::Schema;
use crate::explore::SearchLimits;
use crate::interrupt::Interrupt;
use crate::sim::simulate::LocalServers;
use crate::store::{Sandbox, SandboxError, StoreError, Writable};

/// As many workers as `explore` has by default.
const WORKERS: u8 = 3;

/// The states after which an exploration ends. With the built-in schemas, a fault alone reaches a
/// few thousand, and the default faults under the assumptions up to 20,000.
const MAX_STATES: usize = 300_000;

/// The idempotency key on a temporary local Redis.
const KEY: &[u8] = b"order-1";

/// A temporary local Redis on which faults are explored, one after the other.
pub(crate) struct FaultExplorer<'a> {
    target: Writable,
    interrupt: &'a Interrupt,
    _sandbox: Sandbox,
}

impl<'a> FaultExplorer<'a> {
    /// Starts the server.
    ///
    /// # Errors
    /// There is no server program, or it does not start.
    pub(crate) async fn start(
        servers: &LocalServers,
        interrupt: &'a Interrupt,
    ) -> Result<Self, SandboxError> {
        let sandbox = Sandbox::start(&servers.path, &servers.temp_dir).await?;
        Ok(Self { target: sandbox.first_database(&servers.like), interrupt, _sandbox: sandbox })
    }

    /// Explores a schema with these faults.
    ///
    /// # Errors
    /// An error of the temporary server.
    pub(crate) async fn explore(
        &self,
        schema: &Arc<Schema>,
        faults: ExploredFaults,
    ) -> Result<FaultOutcome, StoreError> {
        if let Some(why) = unexplorable_because(schema) {
            return Ok(FaultOutcome::Unexplorable(why));
        }
        let program = match ExplorationTask::program(vec![Arc::clone(schema)]) {
            Ok(program) => program,
            Err(why) => return Ok(FaultOutcome::Unexplorable(why)),
        };
        let (most, assumptions) = match faults {
            ExploredFaults::Alone(fault) => (fault.budget(), Assumptions::default()),
            ExploredFaults::Usual => (FaultBudget::USUAL, Assumptions::ALL),
        };
        let task = ExplorationTask {
            program,
            workers: WORKERS,
            has_other_payload: false,
            most,
            assumptions,
            limits: SearchLimits { max_states: MAX_STATES, forgets: false },
        };
        let place = ExplorationPlace {
            target: &self.target,
            key: KEY,
            is_private: true,
            interrupt: self.interrupt,
        };
        Ok(outcome(&task.run(place).await?, faults))
    }
}

fn outcome(explored: &Exploration, faults: ExploredFaults) -> FaultOutcome {
    // If a step replies differently to the same state, the states that follow are wrong.
    if let Some(why) = &explored.unsteady {
        return FaultOutcome::Unknown(why.clone());
    }
    let mut found: Vec<Counterexample> = Vec::new();
    for violation in &explored.violations {
        if is_caused(violation, faults) {
            found.push(Counterexample {
                schema: explored.name(),
                invariant: violation.invariant,
                faults: violation.faults.to_string(),
                steps: violation.token.acts.len(),
                token: violation.token.to_string(),
            });
        }
    }
    match (Counterexample::most_harmful(found), explored.violations.first()) {
        (Some(counterexample), _) => FaultOutcome::Violates(counterexample),
        (None, Some(violation)) => FaultOutcome::Unknown(unproven_because(violation)),
        // Then the absence of violations means nothing.
        (None, None) if !explored.unreached().is_empty() => FaultOutcome::Unknown(
            "without a fault, no history has an effect, stores a result and replays it".to_owned(),
        ),
        (None, None) if explored.is_complete() => FaultOutcome::Holds,
        (None, None) => FaultOutcome::Unknown(format!("explore stopped after {MAX_STATES} states")),
    }
}

/// Why a violation does not answer the question of the exploration.
fn unproven_because(violation: &Violation) -> String {
    let invariant = violation.invariant.name;
    match &violation.deviates {
        // Only the smallest histories are kept, so that these hide what the fault adds to them.
        None => format!("it violates {invariant} without this fault, see explore"),
        Some(why) => format!("workers could not execute the violation of {invariant}: {why}"),
    }
}

/// True if the faults cause the violation. If one fault is explored alone, a violation that happens
/// without it says nothing about this deployment.
fn is_caused(violation: &Violation, faults: ExploredFaults) -> bool {
    // A history that workers could not execute proves nothing.
    if violation.deviates.is_some() {
        return false;
    }
    let ExploredFaults::Alone(fault) = faults else { return true };
    violation.token.acts.iter().any(|act| act.fault() == Some(fault.fault()))
}
