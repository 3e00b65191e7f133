//! One exploration from beginning to end: the search, and every harm's history played by workers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::cast::Cast;
use super::stage::Stage;
use crate::domain::exploration::trace::held_at;
use crate::domain::exploration::{
    Act, Assumptions, BEGIN_IN_ONE_SCRIPT, Budget, Covered, Culprit, Does, Exploration, Fault, Harm, Invariant,
    Program, Replay, Token, invariants,
};
use crate::domain::record::age::millis;
use crate::domain::schema::{Meaning, Role, Schema};
use crate::explore::{Explored, Found, Limits, Question, Rules, Traced, explore, retrace};
use crate::interrupt::Interrupt;
use crate::sim::simulate::{Abort, Retelling, Retold};
use crate::store::{Connection, StoreError, Writable};

/// What is explored, and how far.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// The schema whose service is explored, or two that share Redis keys.
    pub(crate) program: Rc<Program>,
    pub(crate) workers: u8,
    pub(crate) most: Budget,
    pub(crate) assumptions: Assumptions,
    pub(crate) limits: Limits,
}

/// Where it is explored.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) target: &'a Writable,
    pub(crate) key: &'a [u8],
    /// True on a throw-away server.
    pub(crate) is_private: bool,
    pub(crate) interrupt: &'a Interrupt,
}

impl Task {
    pub(crate) fn program(services: Vec<Arc<Schema>>) -> Result<Rc<Program>, String> {
        Program::new(services).map(Rc::new)
    }

    fn rules(&self) -> Rules {
        let (program, in_order) = (Rc::clone(&self.program), true);
        Rules { program, workers: self.workers, most: self.most, assumptions: self.assumptions, in_order }
    }

    /// Explores, and plays each harm's history.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn run(&self, place: Place<'_>) -> Result<Exploration, StoreError> {
        let since = Instant::now();
        let mut stage = self.stage(place).await?;
        let explored = self.explore(&mut stage).await?;
        let mut harms = Vec::new();
        for found in &explored.found {
            harms.push(self.harm(found, &mut stage, place).await?);
        }
        stage.clear().await?;
        Ok(Exploration {
            schemas: self.program.services.iter().map(|schema| schema.name.clone()).collect(),
            workers: self.workers,
            most: self.most,
            assumptions: self.assumptions,
            harms,
            not_asked: self.not_asked(),
            covered: explored.covered,
            wall_ms: millis(since.elapsed()),
            replay: None,
            unsteady: explored.unsteady.map(|question| self.unsteady(question)),
        })
    }

    pub(crate) async fn stage<'a>(&self, place: Place<'a>) -> Result<Stage<'a>, StoreError> {
        let cast = Cast::new(Rc::clone(&self.program), self.workers, place.key.to_vec());
        Ok(Stage::new(cast, Connection::connect(place.target).await?, place.interrupt))
    }

    pub(crate) async fn explore(&self, stage: &mut Stage<'_>) -> Result<Explored, StoreError> {
        let (responses, ticks) = (stage.cast.responses(), stage.cast.ticks);
        explore(self.rules(), responses, ticks, self.limits, stage).await
    }

    async fn harm(&self, found: &Found, stage: &mut Stage<'_>, place: Place<'_>) -> Result<Harm, StoreError> {
        let token = self.token(&found.beginning, &found.acts);
        let (traced, lines, deviates) = match self.retrace(&token, stage).await? {
            Ok(traced) => {
                let told = self.retell(&token, &traced, place).await?;
                (traced, told.lines, told.deviates)
            }
            Err(why) => (Vec::new(), Vec::new(), Some(why)),
        };
        let remedy = self.remedy(found.invariant, &token, &traced);
        Ok(Harm { invariant: found.invariant, faults: found.faults, remedy, lines, token, deviates })
    }

    /// What to change after this history, which breaks the invariant.
    fn remedy(&self, invariant: &Invariant, token: &Token, traced: &[Traced]) -> String {
        if self.begin_was_interrupted(traced) {
            return BEGIN_IN_ONE_SCRIPT.to_owned();
        }
        let breaks = |step: &&Traced| step.broken.iter().any(|broken| broken.name == invariant.name);
        let step = traced.iter().find(breaks);
        let mut stage = None;
        let mut service = self.services(token).first().copied().unwrap_or(0);
        if let Some(step) = step
            && let Some(worker) = step.act.worker()
        {
            service = self.services(token).get(usize::from(worker)).copied().unwrap_or(service);
            if let Does::Call { ask, .. } = step.does {
                stage = Some(self.program.asks[usize::from(ask)].stage);
            }
        }
        (invariant.remedy)(&Culprit { schema: &self.program.services[service], stage })
    }

    /// True if a later call of begin acquired the lock although another worker's lock, or a result, was there by then. Up to
    /// there nothing but the workers' own calls changed the keys: what an earlier call of begin saw was no longer so.
    fn begin_was_interrupted(&self, traced: &[Traced]) -> bool {
        let mut holder = None;
        for step in traced {
            if let Some(Fault::Expiry | Fault::Evict | Fault::Failover | Fault::Persist) = step.act.fault() {
                return false;
            }
            let acquired = step.heard.is_some_and(|heard| heard.means == Some(Meaning::Acquired));
            if let (Does::Call { ask, .. }, true) = (step.does, acquired) {
                let asks = self.program.asks[usize::from(ask)];
                let schema = &self.program.services[asks.service];
                let has_result =
                    (0..schema.keys.len()).any(|role| held_at(schema, &step.before, role) == Some(Role::Result));
                let is_anothers = holder.is_some() && holder != step.act.worker();
                if asks.index > 0 && (has_result || is_anothers) {
                    return true;
                }
            }
            holder = step.holder;
        }
        false
    }

    pub(super) fn token(&self, beginning: &[u8], acts: &[Act]) -> Token {
        let name = |start: &u8| {
            let service = self.program.starts.iter().position(|known| known == start).unwrap_or(0);
            self.program.services[service].name.clone()
        };
        Token { workers: beginning.iter().map(name).collect(), acts: acts.to_vec() }
    }

    /// The services of a token's workers.
    fn services(&self, token: &Token) -> Vec<usize> {
        let number = |name: &String| self.program.services.iter().position(|schema| schema.name == *name);
        token.workers.iter().map(|name| number(name).unwrap_or(0)).collect()
    }

    /// Goes through a token's history in the exploration; an error in words where it cannot happen.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn retrace(
        &self,
        token: &Token,
        stage: &mut Stage<'_>,
    ) -> Result<Result<Vec<Traced>, String>, StoreError> {
        let beginning: Vec<_> = self.services(token).into_iter().map(|service| self.program.starts[service]).collect();
        let rules = Rules { most: Budget::ANY, assumptions: Assumptions::default(), in_order: false, ..self.rules() };
        let (responses, ticks) = (stage.cast.responses(), stage.cast.ticks);
        retrace(&rules, responses, ticks, &beginning, &token.acts, stage).await
    }

    /// Plays a history with workers.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn retell(
        &self,
        token: &Token,
        traced: &[Traced],
        place: Place<'_>,
    ) -> Result<Retold, StoreError> {
        let Place { target, key, is_private, .. } = place;
        let services = self.services(token);
        let retelling = Retelling { program: &self.program, services: &services, key, target, is_private };
        match retelling.tell(traced).await {
            Ok(told) => Ok(told),
            Err(Abort::Store(error)) => Err(error),
            Err(Abort::NotApplicable(why)) => Ok(Retold { lines: Vec::new(), deviates: Some(why) }),
            Err(Abort::Late) => Ok(Retold { lines: Vec::new(), deviates: Some("it took too long".to_owned()) }),
        }
    }

    /// A history that was played again as an exploration of that one schedule: a harm for each invariant that it breaks.
    pub(crate) fn replayed(&self, token: &Token, traced: &[Traced], told: Retold) -> Exploration {
        let faults = traced.iter().filter_map(|step| step.act.fault());
        let used = faults.fold(Budget::default(), |used, fault| used.with(fault, Budget::ANY).unwrap_or(used));
        let harm = |invariant: &&'static Invariant| Harm {
            invariant,
            faults: used,
            remedy: self.remedy(invariant, token, traced),
            lines: told.lines.clone(),
            token: token.clone(),
            deviates: told.deviates.clone(),
        };
        let covered = Covered {
            complete: true,
            states: traced.len() + 1,
            transitions: traced.len(),
            schedules: Some(1.0),
            depth: traced.len(),
            server_calls: traced.iter().filter(|step| step.heard.is_some()).count(),
            bytes_a_state: 0,
            search_us: 0,
        };
        Exploration {
            schemas: self.program.services.iter().map(|schema| schema.name.clone()).collect(),
            workers: self.workers,
            most: used,
            assumptions: Assumptions::default(),
            harms: traced.iter().flat_map(|step| &step.broken).map(harm).collect(),
            not_asked: self.not_asked(),
            covered,
            wall_ms: 0,
            replay: Some(Replay { lines: told.lines.clone(), token: token.clone(), deviates: told.deviates.clone() }),
            unsteady: None,
        }
    }

    fn not_asked(&self) -> Vec<&'static str> {
        let is_asked = |invariant: &Invariant| self.program.services.iter().any(|schema| (invariant.asked_of)(schema));
        invariants::ALL.iter().filter(|invariant| !is_asked(invariant)).map(|invariant| invariant.name).collect()
    }

    pub(super) fn unsteady(&self, question: Question) -> String {
        let asks = self.program.asks[usize::from(question.ask)];
        let (stage, schema) = (asks.stage.as_str(), &self.program.services[asks.service].name);
        format!("call {} of {stage} of {schema} does not answer the same question alike", asks.index + 1)
    }
}
