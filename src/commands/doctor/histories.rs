//! The histories that `explore` finds for the schemas of a deployment and its faults, and their
//! cache.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::domain::doctor::{Counterexample, ExploredFaults, FaultOutcome, Statement};
use crate::domain::hex::hex;
use crate::domain::schema::Schema;
use crate::exit::CommandError;
use crate::files;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::sim::exploration::FaultExplorer;
use crate::sim::simulate::LocalServers;
use crate::version;

/// The name of the cache in the state folder.
const CACHE: &str = "explorations.json";

/// Larger than any cache: an entry has a few hundred bytes.
const LARGEST_CACHE: u64 = 4 * 1024 * 1024;

/// The number of entries from which the cache begins again. An entry is found by a hash of its
/// schema, so those of earlier versions of a schema are never used again.
const MAX_ENTRIES: usize = 1_000;

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

/// An exploration that is wanted.
type Wanted = (Arc<Schema>, ExploredFaults);

/// Explores schemas, each of them once with the same faults.
pub(super) struct Histories<'a> {
    session: &'a mut Session,
    /// The file of the cache; `None` if there is no state folder.
    file: Option<PathBuf>,
    cache: Cache,
    is_changed: bool,
}

impl<'a> Histories<'a> {
    pub(super) fn new(session: &'a mut Session) -> Self {
        let file = session.settings.state_dir().ok().map(|folder| folder.join(CACHE));
        let mut cache = Cache::new();
        if let Some(file) = &file
            && let Ok(text) = files::read_text(file, LARGEST_CACHE)
        {
            // A damaged cache is as good as none.
            cache = serde_json::from_str(&text).unwrap_or_default();
        }
        if cache.len() > MAX_ENTRIES {
            cache.clear();
        }
        Self { session, file, cache, is_changed: false }
    }

    /// What `explore` finds in each schema with its default faults, under all assumptions.
    ///
    /// # Errors
    /// Interrupted; or an error of the temporary local Redis.
    pub(super) async fn of_schemas(
        &mut self,
        schemas: &[Arc<Schema>],
    ) -> Result<Vec<(String, FaultOutcome)>> {
        let wanted = schemas.iter().map(|schema| (Arc::clone(schema), ExploredFaults::Usual));
        let mut found = Vec::new();
        for (schema, _, outcome) in self.outcomes(wanted.collect()).await? {
            found.push((schema.name.clone(), outcome));
        }
        Ok(found)
    }

    /// Adds to each statement with a fault what `explore` finds for the schemas in use. `are_all` is
    /// true if these are certainly all of them.
    ///
    /// # Errors
    /// Interrupted; or an error of the temporary local Redis.
    pub(super) async fn show(
        &mut self,
        statements: &mut [Statement],
        schemas: &[Arc<Schema>],
        are_all: bool,
    ) -> Result<()> {
        let mut faults = BTreeSet::new();
        for statement in statements.iter() {
            faults.extend(statement.judgement.fault);
        }
        let mut wanted = Vec::new();
        for fault in &faults {
            for schema in schemas {
                wanted.push((Arc::clone(schema), ExploredFaults::Alone(*fault)));
            }
        }
        let outcomes = self.outcomes(wanted).await?;
        for statement in statements {
            let Some(fault) = statement.judgement.fault else { continue };
            let mut of_fault = Vec::new();
            for (schema, faults, outcome) in &outcomes {
                if *faults == ExploredFaults::Alone(fault) {
                    of_fault.push((schema.name.clone(), outcome.clone()));
                }
            }
            statement.explain(&of_fault, are_all);
        }
        Ok(())
    }

    /// The outcomes of these explorations: those in the cache first, then the others.
    async fn outcomes(
        &mut self,
        wanted: Vec<Wanted>,
    ) -> Result<Vec<(Arc<Schema>, ExploredFaults, FaultOutcome)>> {
        let mut outcomes = Vec::new();
        let mut unknown = Vec::new();
        for (schema, faults) in wanted {
            match self.cached(&schema, faults) {
                Some(outcome) => outcomes.push((schema, faults, outcome)),
                None => unknown.push((schema, faults)),
            }
        }
        for (schema, faults, outcome) in self.explore(unknown).await? {
            self.remember(&schema, faults, &outcome);
            outcomes.push((schema, faults, outcome));
        }
        self.save();
        Ok(outcomes)
    }

    async fn explore(
        &mut self,
        wanted: Vec<Wanted>,
    ) -> Result<Vec<(Arc<Schema>, ExploredFaults, FaultOutcome)>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let environment = self.session.settings.environment();
        let servers = LocalServers {
            path: environment.path(),
            temp_dir: environment.temp_dir(),
            like: self.session.settings.target().clone(),
        };
        let interrupt = Interrupt::listen()?;
        interrupt.handle_terminate()?;
        let mut explored = Vec::new();
        let explorer = match FaultExplorer::start(&servers, &interrupt).await {
            Ok(explorer) => explorer,
            // The findings are true without a history.
            Err(error) => {
                let why = error.to_string();
                for (schema, faults) in wanted {
                    explored.push((schema, faults, FaultOutcome::Unknown(why.clone())));
                }
                return Ok(explored);
            }
        };
        let progress = self.session.ui.progress_of("explored", Some(wanted.len() as u64));
        for (schema, faults) in wanted {
            let outcome = explorer.explore(&schema, faults).await;
            progress.inc(1);
            if interrupt.is_raised() {
                progress.finish_and_clear();
                return Err(CommandError::interrupted("interrupted").into());
            }
            let outcome = outcome.inspect_err(|_| progress.finish_and_clear())?;
            explored.push((schema, faults, outcome));
        }
        progress.finish_and_clear();
        Ok(explored)
    }

    fn cached(&self, schema: &Schema, faults: ExploredFaults) -> Option<FaultOutcome> {
        Some(match self.cache.get(&name(schema, faults))? {
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

    fn remember(&mut self, schema: &Schema, faults: ExploredFaults, outcome: &FaultOutcome) {
        let entry = match outcome {
            FaultOutcome::Violates(found) => Some(CachedHistory {
                invariant: found.invariant.clone(),
                faults: found.faults.clone(),
                steps: found.steps,
                token: found.token.clone(),
            }),
            FaultOutcome::Holds => None,
            // The reason may be gone in the next run.
            FaultOutcome::Unexplorable(_) | FaultOutcome::Unknown(_) => return,
        };
        self.cache.insert(name(schema, faults), entry);
        self.is_changed = true;
    }

    fn save(&mut self) {
        let Some(file) = &self.file else { return };
        if !self.is_changed {
            return;
        }
        self.is_changed = false;
        let text = serde_json::to_string(&self.cache).unwrap_or_default();
        if let Some(folder) = file.parent() {
            // Without a cache, the next run explores again.
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = files::write(file, text.as_bytes(), true);
    }
}

/// The name of an exploration in the cache: a hash of everything that decides its outcome.
fn name(schema: &Schema, faults: ExploredFaults) -> String {
    let mut ttls = format!("{:?} {:?}", schema.lock_ttl, schema.result_ttl);
    for format in &schema.values {
        ttls.push_str(&format!(" {:?}", format.ttl));
    }
    let text = format!("{} {} {} {ttls} {faults:?}", version::TEXT, schema.name, schema.files_hash);
    hex(&Sha256::digest(text.as_bytes()))
}
