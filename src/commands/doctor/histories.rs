//! The histories that `explore` finds for the faults of a deployment, and their cache.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::domain::doctor::{Counterexample, FaultOutcome, ModelledFault, Statement};
use crate::domain::hex::hex;
use crate::domain::schema::Schema;
use crate::exit::CommandError;
use crate::files;
use crate::interrupt::Interrupt;
use crate::sim::exploration::FaultExplorer;
use crate::sim::simulate::LocalServers;
use crate::version;

/// The name of the cache in the state folder.
const CACHE: &str = "explorations.json";

/// Larger than any cache: an entry has a few hundred bytes.
const LARGEST_CACHE: u64 = 4 * 1024 * 1024;

/// The number of entries from which the cache begins anew.
const MOST_ENTRIES: usize = 1_000;

/// The outcomes of earlier explorations, by the hash of what they depend on. `null` if no history
/// violates an invariant.
type Cache = BTreeMap<String, Option<CachedHistory>>;

/// A counterexample in the cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedHistory {
    invariant: String,
    faults: String,
    steps: usize,
    token: String,
}

/// Explores faults, each schema once.
pub(super) struct Histories<'a> {
    context: &'a mut Context,
    /// The file of the cache; `None` if there is no state folder.
    file: Option<PathBuf>,
    cache: Cache,
    is_changed: bool,
}

impl<'a> Histories<'a> {
    pub(super) fn new(context: &'a mut Context) -> Self {
        let file = context.settings.state_dir().ok().map(|folder| folder.join(CACHE));
        let mut cache = Cache::new();
        if let Some(file) = &file
            && let Ok(text) = files::read_text(file, LARGEST_CACHE)
        {
            // A damaged cache is as good as none.
            cache = serde_json::from_str(&text).unwrap_or_default();
        }
        if cache.len() > MOST_ENTRIES {
            cache.clear();
        }
        Self { context, file, cache, is_changed: false }
    }

    /// Adds to each statement with a fault what `explore` finds for the schemas in use. `are_all` is
    /// true if these are certainly all of them.
    ///
    /// # Errors
    /// Interrupted; or an error of the temporary local Redis.
    pub(super) async fn show(
        mut self,
        statements: &mut [Statement],
        schemas: &[Arc<Schema>],
        are_all: bool,
    ) -> Result<()> {
        let mut faults = BTreeSet::new();
        for statement in statements.iter() {
            faults.extend(statement.judgement.fault);
        }
        let mut outcomes = BTreeMap::new();
        let mut unknown = Vec::new();
        for fault in faults {
            let mut of_fault = Vec::new();
            for schema in schemas {
                match self.cached(schema, fault) {
                    Some(outcome) => of_fault.push((schema.name.clone(), outcome)),
                    None => unknown.push((Arc::clone(schema), fault)),
                }
            }
            outcomes.insert(fault, of_fault);
        }
        for (schema, fault, outcome) in self.explore(unknown).await? {
            self.remember(&schema, fault, &outcome);
            outcomes.entry(fault).or_default().push((schema.name.clone(), outcome));
        }
        for statement in statements {
            if let Some(fault) = statement.judgement.fault
                && let Some(outcomes) = outcomes.get(&fault)
            {
                statement.explain(outcomes, are_all);
            }
        }
        self.save();
        Ok(())
    }

    async fn explore(
        &mut self,
        wanted: Vec<(Arc<Schema>, ModelledFault)>,
    ) -> Result<Vec<(Arc<Schema>, ModelledFault, FaultOutcome)>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let environment = self.context.settings.environment();
        let servers = LocalServers {
            path: environment.path(),
            temp_dir: environment.temp_dir(),
            like: self.context.settings.target().clone(),
        };
        let interrupt = Interrupt::listen()?;
        interrupt.handle_terminate()?;
        let mut explored = Vec::new();
        let explorer = match FaultExplorer::start(&servers, &interrupt).await {
            Ok(explorer) => explorer,
            // The findings are true without a history.
            Err(error) => {
                let why = error.to_string();
                for (schema, fault) in wanted {
                    explored.push((schema, fault, FaultOutcome::Unknown(why.clone())));
                }
                return Ok(explored);
            }
        };
        let progress = self.context.ui.progress_of("explored", Some(wanted.len() as u64));
        for (schema, fault) in wanted {
            let outcome = explorer.explore(&schema, fault).await;
            progress.inc(1);
            if interrupt.is_raised() {
                progress.finish_and_clear();
                return Err(CommandError::interrupted("interrupted").into());
            }
            let outcome = outcome.inspect_err(|_| progress.finish_and_clear())?;
            explored.push((schema, fault, outcome));
        }
        progress.finish_and_clear();
        Ok(explored)
    }

    fn cached(&self, schema: &Schema, fault: ModelledFault) -> Option<FaultOutcome> {
        Some(match self.cache.get(&name(schema, fault))? {
            None => FaultOutcome::Holds,
            Some(history) => FaultOutcome::Violates(Counterexample {
                schema: schema.name.clone(),
                invariant: history.invariant.clone(),
                faults: history.faults.clone(),
                steps: history.steps,
                token: history.token.clone(),
            }),
        })
    }

    fn remember(&mut self, schema: &Schema, fault: ModelledFault, outcome: &FaultOutcome) {
        let entry = match outcome {
            FaultOutcome::Violates(found) => Some(CachedHistory {
                invariant: found.invariant.clone(),
                faults: found.faults.clone(),
                steps: found.steps,
                token: found.token.clone(),
            }),
            FaultOutcome::Holds => None,
            // The reason may be gone in the next run.
            FaultOutcome::Unknown(_) => return,
        };
        self.cache.insert(name(schema, fault), entry);
        self.is_changed = true;
    }

    fn save(&self) {
        let Some(file) = &self.file else { return };
        if !self.is_changed {
            return;
        }
        let text = serde_json::to_string(&self.cache).unwrap_or_default();
        if let Some(folder) = file.parent() {
            // Without a cache, the next run explores again.
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = files::write(file, text.as_bytes(), true);
    }
}

/// The name of an exploration in the cache: a hash of everything that decides its outcome.
fn name(schema: &Schema, fault: ModelledFault) -> String {
    let mut ttls = format!("{:?} {:?}", schema.lock_ttl, schema.result_ttl);
    for format in &schema.values {
        ttls.push_str(&format!(" {:?}", format.ttl));
    }
    let text = format!("{} {} {} {ttls} {fault:?}", version::TEXT, schema.name, schema.files_hash);
    hex(&Sha256::digest(text.as_bytes()))
}
