//! What can happen in one state, and what the state becomes.

use super::perform::Question;
use super::places::Table;
use super::rules::Rules;
use super::state::State;
use crate::domain::exploration::{Act, Budget, Does, ENDED, Facts, Fault, Heard, Moment, Point, Program};
use crate::domain::schema::Meaning;

/// One step: what happens, what the state becomes, and what the invariants look at.
pub(super) struct Step {
    pub(super) act: Act,
    pub(super) state: State,
    pub(super) moment: Moment,
}

/// What a call came to on the server.
#[derive(Clone, Copy)]
struct Sent {
    caller: u8,
    heard: Heard,
    store: u32,
}

/// A state, what is known of it, and the steps from it that were found.
struct Here<'a> {
    rules: &'a Rules,
    table: &'a mut Table,
    state: &'a State,
    before: Facts,
    steps: &'a mut Vec<Step>,
}

/// An error is a question whose answer is needed first; what steps were found until then is of no use.
type Asked = Result<(), Question>;

/// Finds everything that can happen in a state.
pub(super) fn steps(rules: &Rules, table: &mut Table, state: &State, steps: &mut Vec<Step>) -> Asked {
    let before = table.facts(state.store)?;
    Here { rules, table, state, before, steps }.steps()
}

impl Here<'_> {
    fn steps(mut self) -> Asked {
        for worker in 0..self.rules.workers {
            self.worker(worker)?;
        }
        let is_section =
            self.rules.assumptions.critical_section && self.rules.points(self.state).any(|point| point.in_section);
        if is_section { Ok(()) } else { self.world() }
    }

    fn worker(&mut self, worker: u8) -> Asked {
        let point = self.rules.point(self.state, worker);
        if point.waits && !self.rules.may_begin(self.state, worker) {
            return Ok(());
        }
        let used = self.state.used;
        match point.does {
            Does::Nothing => return Ok(()),
            Does::Effect { then } => {
                let effects = self.state.effects | 1 << worker;
                self.add(Act::Effect(worker), None, State { effects, ..self.state.moved(worker, then, used) })?;
            }
            Does::Call { ask, .. } => {
                let (heard, store) = self.table.call(Question { store: self.state.store, caller: worker, ask })?;
                self.call(point, Sent { caller: worker, heard, store })?;
            }
        }
        if let (Some(used), Some(to)) = (self.with(Fault::Fail), point.fails_to) {
            self.add(Act::Fail(worker), None, self.state.moved(worker, to, used))?;
        }
        match self.with(Fault::Crash) {
            Some(used) if !point.waits && !self.spares(point) => {
                self.add(Act::Crash(worker), None, self.state.moved(worker, ENDED, used))
            }
            _ => Ok(()),
        }
    }

    fn call(&mut self, point: Point, sent: Sent) -> Asked {
        let next = self.sent(point, sent)?;
        let told = Program::leads_to(point.does, sent.heard.means);
        self.add(Act::Call(sent.caller), Some(sent), next.moved(sent.caller, told, next.used))?;
        match self.with(Fault::Lost) {
            Some(used) if !self.spares(point) => {
                self.add(Act::Lost(sent.caller), Some(sent), next.moved(sent.caller, ENDED, used))
            }
            _ => Ok(()),
        }
    }

    /// The faults that happened with one more; `None` where it may not happen.
    fn with(&self, fault: Fault) -> Option<Budget> {
        self.state.used.with(fault, self.rules.most)
    }

    /// True when no fault is to befall a worker that stands there. A handler may still fail, which is no fault of the world.
    fn spares(&self, point: Point) -> bool {
        self.rules.assumptions.critical_section && point.in_section
    }

    /// The state after a call, but for where the worker stands.
    fn sent(&mut self, point: Point, sent: Sent) -> Result<State, Question> {
        let after = self.table.facts(sent.store)?;
        let state = self.state;
        let behind = if sent.store == state.store { state.behind } else { state.store };
        let mut next = State { store: sent.store, behind, ..*state };
        let is_new = || !self.before.lock || !self.table.same_lock(state.store, sent.store);
        if sent.heard.means == Some(Meaning::Acquired) || (after.lock && is_new()) {
            next.is_held_by(Some(sent.caller));
        }
        next.succeeded |= point.has_worked && sent.heard.means == Some(Meaning::Stored);
        Ok(next)
    }

    /// What happens to the Redis keys without a worker.
    fn world(&mut self) -> Asked {
        for role in 0..self.table.roles() {
            self.befalls(Fault::Expiry, Act::Expiry(role), role)?;
            self.befalls(Fault::Evict, Act::Evict(role), role)?;
            self.befalls(Fault::Persist, Act::Persist(role), role)?;
        }
        match self.with(Fault::Failover) {
            Some(used) if self.state.behind != self.state.store => {
                self.add(Act::Failover, None, State { store: self.state.behind, used, ..*self.state })
            }
            _ => Ok(()),
        }
    }

    fn befalls(&mut self, fault: Fault, act: Act, role: u8) -> Asked {
        let Some(used) = self.with(fault) else { return Ok(()) };
        if self.is_idle(act) {
            return Ok(());
        }
        let state = self.state;
        let Some(store) = self.table.world(state.store, act) else { return Ok(()) };
        let ends_result =
            fault == Fault::Expiry && self.before.result.is_some() && self.table.facts(store)?.result.is_none();
        if ends_result && self.rules.assumptions.results_outlive_retries {
            return Ok(());
        }
        let behind = match fault {
            Fault::Expiry => self.table.as_much_later(state.behind, state.store, role),
            _ => state.behind,
        };
        self.add(act, None, State { store, behind, used, ..*state })
    }

    /// True for an act of nobody that is another's, or none of interest: TTLs that end together end once, and locks alone are
    /// worth taking a TTL from.
    fn is_idle(&self, act: Act) -> bool {
        let ttl = |role: u8| self.table.keys(self.state.store).ttl_ms(usize::from(role));
        match act {
            Act::Expiry(role) => (0..role).any(|other| ttl(other) == ttl(role)),
            Act::Persist(role) => !self.before.lock || usize::from(role) != self.rules.program.services[0].lock_role(),
            _ => false,
        }
    }

    fn add(&mut self, act: Act, sent: Option<Sent>, next: State) -> Asked {
        let (state, after) = (self.state, self.table.facts(next.store)?);
        let mut next = next;
        if !after.lock {
            next.is_held_by(None);
        }
        // What a failover would bring back counts only while one may come.
        if next.used.of(Fault::Failover) == self.rules.most.of(Fault::Failover) {
            next.behind = 0;
        }
        let changed = next.store != state.store;
        let moment = Moment {
            caller: sent.map(|sent| sent.caller),
            heard: sent.map(|sent| sent.heard),
            before: self.before,
            after,
            rewritten: changed && !self.table.same_result(state.store, next.store),
            lock_gone: self.before.lock && changed && !self.table.same_lock(state.store, next.store),
            holder: state.holder(),
            effects_before: state.effects,
            effects: next.effects,
            quiet: self.rules.points(&next).all(|point| point.waits || point.does == Does::Nothing),
            succeeded: next.succeeded,
        };
        self.steps.push(Step { act, state: next, moment });
        Ok(())
    }
}
