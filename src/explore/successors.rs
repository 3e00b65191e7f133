//! Computes everything that can happen in one state, and the next states.

use std::rc::Rc;

use super::lag::Lags;
use super::names::Names;
use super::reply_table::{KnownEffect, ReplyTable};
use super::states::SearchState;
use crate::domain::exploration::{
    Act, Assumptions, ENDED, Fault, FaultBudget, MAX_LOST_WRITES, MAX_WORKERS, NextAction,
    Position, StateFacts, Transition, WorkerProgram,
};
use crate::domain::schema::Meaning;
use crate::explore::reply_table::UnknownReply;

/// The subject and the bounds of an exploration.
#[derive(Debug, Clone)]
pub struct Rules {
    pub program: Rc<WorkerProgram>,
    /// The number of workers.
    pub workers: u8,
    /// How often each fault may happen.
    pub most: FaultBudget,
    pub assumptions: Assumptions,
    pub symmetry: Symmetry,
    /// True if the last worker requests another operation with the same key.
    pub has_other_payload: bool,
}

/// How a search uses that the names of workers make no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symmetry {
    /// Not at all. A schedule that a person chose may name its workers in any order.
    Unused,
    /// For tests: the workers of one service begin in the order of their numbers. Other orders only
    /// repeat the same schedules.
    InOrder,
    /// They begin in order, and states that differ only by the names of workers are one state.
    Full,
}

impl Rules {
    /// The first positions of the workers. With two services there is one start for each possible
    /// number of workers of the first service.
    pub fn beginnings(&self) -> Vec<Vec<u8>> {
        let workers = usize::from(self.workers);
        let [first, second] = self.program.starts[..] else {
            return vec![vec![self.program.starts[0]; workers]];
        };
        let mut beginnings = Vec::new();
        for of_first in 1..workers {
            let mut beginning = vec![first; of_first];
            beginning.resize(workers, second);
            beginnings.push(beginning);
        }
        beginnings
    }

    /// The position of a worker.
    pub(super) fn position(&self, state: &SearchState, worker: u8) -> Position {
        self.program.positions[usize::from(state.positions[usize::from(worker)])]
    }

    /// The positions of all workers.
    pub(super) fn positions(&self, state: &SearchState) -> impl Iterator<Item = Position> {
        (0..self.workers).map(|worker| self.position(state, worker))
    }

    fn may_begin(&self, state: &SearchState, names: Names, place: u8) -> bool {
        let worker = names.at(place);
        // A worker with another payload is not like the worker before it.
        if self.symmetry == Symmetry::Unused
            || worker == 0
            || self.other_payload() & 1 << worker != 0
        {
            return true;
        }
        let before = names.place_of(worker - 1);
        state.positions[usize::from(before)] != state.positions[usize::from(place)]
    }

    /// The places whose workers may change places without any difference to the state, a bit each.
    fn free_places(&self, replies: &ReplyTable, state: &SearchState) -> u8 {
        if self.symmetry != Symmetry::Full {
            return 0;
        }
        let workers = u8::MAX >> (MAX_WORKERS - usize::from(self.workers));
        workers & !self.other_payload() & !replies.trace(state.keys, state.lag)
    }

    /// The workers that request another operation, one bit each.
    fn other_payload(&self) -> u8 {
        if self.has_other_payload { 1 << (self.workers - 1) } else { 0 }
    }
}

/// One transition from a state: the act, the next state, and the input for the invariants.
pub(super) struct Successor {
    /// With the worker's name, not its place.
    pub(super) act: Act,
    pub(super) state: SearchState,
    /// The names of the workers at the places of `state`.
    pub(super) names: Names,
    /// With the places of the workers, not their names.
    pub(super) transition: Transition,
}

/// Adds everything that can happen in a state to `found`: first the acts of the workers in the order
/// of their `names`, so that schedules are found in the same order whatever the workers' places are.
///
/// # Errors
/// [`UnknownReply`] if the server must execute a call first. The successors that were found so far
/// are then incomplete.
pub(super) fn find_successors(
    rules: &Rules,
    replies: &mut ReplyTable,
    state: SearchState,
    names: Names,
    found: &mut Vec<Successor>,
) -> Result<(), UnknownReply> {
    let before = replies.facts(state.keys)?;
    let free = rules.free_places(replies, &state);
    let mut successors = Successors { rules, replies, state, names, before, found };
    for worker in 0..rules.workers {
        let mut place = names.place_of(worker);
        (successors.state, successors.names) = (state, names);
        // A worker without a trace acts from the first such place. The calls of all of them then
        // lead to the same states of the Redis keys.
        if free & 1 << place != 0 {
            let first = free.trailing_zeros() as u8;
            successors.state.swap_workers(first, place, &mut successors.names);
            place = first;
        }
        successors.add_worker_transitions(place)?;
    }
    (successors.state, successors.names) = (state, names);
    // The assumption excludes every fault while a worker is in its critical section.
    if rules.assumptions.critical_section
        && rules.positions(&state).any(|position| position.in_critical_section)
    {
        return Ok(());
    }
    successors.add_faults_of_redis()
}

/// A worker's call, and its effect.
#[derive(Clone, Copy)]
struct SentCall {
    /// The worker's place.
    caller: u8,
    effect: KnownEffect,
}

/// A state, its facts, and the successors found so far.
struct Successors<'a> {
    rules: &'a Rules,
    replies: &'a mut ReplyTable,
    state: SearchState,
    names: Names,
    before: StateFacts,
    found: &'a mut Vec<Successor>,
}

impl Successors<'_> {
    /// Adds every transition of the worker at a place: its effect, its next call, a failing handler,
    /// a crash.
    fn add_worker_transitions(&mut self, place: u8) -> Result<(), UnknownReply> {
        let position = self.rules.position(&self.state, place);
        if position.is_waiting && !self.rules.may_begin(&self.state, self.names, place) {
            return Ok(());
        }
        let worker = self.names.at(place);
        match position.action {
            NextAction::Nothing => return Ok(()),
            NextAction::Effect { then } => {
                let next = self.state.with_worker_at(place, then).with_effect_of(place);
                self.add(Act::Effect(worker), None, next)?;
            }
            NextAction::Call { number, .. } => {
                let call = UnknownReply { keys: self.state.keys, caller: place, call: number };
                let effect = self.replies.reply(call)?;
                self.add_call(position, SentCall { caller: place, effect })?;
            }
        }
        if let (Some(fails_to), Some(faults)) = (position.fails_to, self.one_more(Fault::Fail)) {
            let next = self.state.with_worker_at(place, fails_to).with_faults(faults);
            self.add(Act::Fail(worker), None, next)?;
        }
        if let (Some(fails_to), Some(faults)) =
            (position.late_fails_to, self.one_more(Fault::LateFail))
            && !self.is_protected(position)
        {
            let next = self.state.with_worker_at(place, fails_to).with_faults(faults);
            self.add(Act::LateFail(worker), None, next)?;
        }
        if let (Some(gives_up_to), Some(faults)) =
            (position.gives_up_to, self.one_more(Fault::GiveUp))
        {
            let next = self.state.with_worker_at(place, gives_up_to).with_faults(faults);
            self.add(Act::GiveUp(worker), None, next)?;
        }
        // A worker that has not begun cannot crash, because its request does not exist yet.
        if let Some(faults) = self.one_more(Fault::Crash)
            && !position.is_waiting
            && !self.is_protected(position)
        {
            let next = self.state.with_worker_at(place, ENDED).with_faults(faults);
            self.add(Act::Crash(worker), None, next)?;
        }
        Ok(())
    }

    /// Adds the call of a worker, once with its reply received and once with the reply lost. After
    /// a lost reply the worker stops, or its client library sends the call again.
    fn add_call(&mut self, position: Position, sent: SentCall) -> Result<(), UnknownReply> {
        let worker = self.names.at(sent.caller);
        let next = self.state_after_call(position, sent)?;
        let then = position.action.follow(sent.effect.reply.meaning);
        // Redis executes the call in both cases. A lost reply makes a difference only for the
        // worker.
        self.add(Act::Call(worker), Some(sent), next.with_worker_at(sent.caller, then))?;
        // The section of a lock ends with the first call of release.
        let is_protected = self.is_protected(position) && !position.is_inside;
        if let Some(faults) = self.one_more(Fault::Lost)
            && !is_protected
        {
            let lost = next.with_worker_at(sent.caller, ENDED).with_faults(faults);
            self.add(Act::Lost(worker), Some(sent), lost)?;
        }
        let has_stored = position.has_worked && sent.effect.reply.meaning == Some(Meaning::Stored);
        if let (Some(resends_at), Some(faults)) =
            (position.resends_at, self.one_more(Fault::Resend))
            && (has_stored || !is_protected)
        {
            let resent = next.with_worker_at(sent.caller, resends_at).with_faults(faults);
            self.add(Act::Resend(worker), Some(sent), resent)?;
        }
        Ok(())
    }

    /// The state after a call, except for the position of the worker.
    fn state_after_call(
        &mut self,
        position: Position,
        sent: SentCall,
    ) -> Result<SearchState, UnknownReply> {
        let state = self.state;
        let KnownEffect { reply, keys, wrote_lock, .. } = sent.effect;
        let after = self.replies.facts(keys)?;
        let mut next = state.with_keys(keys);
        // Only a failover that may still happen depends on the earlier states.
        if keys != state.keys && self.one_more(Fault::Failover).is_some() {
            next.lag = self.replies.lags.after_write(state.lag, state.keys);
        }
        let is_new_lock =
            after.lock && (!self.before.lock || !self.replies.is_same_lock(state.keys, keys));
        // A call that writes a lock makes its sender the holder, even if its reply does not say so.
        // A call that only read the lock does not, whatever its reply means.
        if is_new_lock || wrote_lock && reply.meaning == Some(Meaning::Acquired) {
            next.set_holder(Some(sent.caller));
        }
        if position.has_worked && reply.meaning == Some(Meaning::Stored) {
            next.set_succeeded();
        }
        Ok(next)
    }

    /// The faults so far plus one; `None` if the budget does not allow it.
    fn one_more(&self, fault: Fault) -> Option<FaultBudget> {
        self.state.faults().with(fault, self.rules.most)
    }

    /// True if an assumption excludes faults for a worker at this position. Its handler may still
    /// fail before its effect, because nothing has been done that its failure would hide.
    fn is_protected(&self, position: Position) -> bool {
        self.rules.assumptions.critical_section && position.in_critical_section
    }

    /// Adds the faults that change the Redis keys without a worker.
    fn add_faults_of_redis(&mut self) -> Result<(), UnknownReply> {
        for key_index in 0..self.replies.key_count() {
            self.add_fault_at(Fault::Expiry, Act::Expiry(key_index))?;
            self.add_fault_at(Fault::Expiry, Act::Lapse(key_index))?;
            self.add_fault_at(Fault::Evict, Act::Evict(key_index))?;
            self.add_fault_at(Fault::Persist, Act::Persist(key_index))?;
        }
        self.add_fault_at(Fault::Delay, Act::Delay)?;
        self.add_fault_at(Fault::Restart, Act::Restart)?;
        self.add_failovers()
    }

    /// Adds a failover for each number of lost writes that leads to another state.
    fn add_failovers(&mut self) -> Result<(), UnknownReply> {
        let Some(faults) = self.one_more(Fault::Failover) else { return Ok(()) };
        let mut known = vec![self.state.keys];
        for more in 0..MAX_LOST_WRITES {
            let Some((keys, lag)) = self.replies.lags.lose(self.state.lag, more + 1) else { break };
            if known.contains(&keys) {
                continue;
            }
            known.push(keys);
            let mut next = self.state.with_keys(keys).with_faults(faults);
            next.lag = lag;
            self.add(Act::Failover(u8::try_from(more).unwrap_or(0)), None, next)?;
        }
        Ok(())
    }

    /// Adds a fault that changes Redis keys.
    fn add_fault_at(&mut self, fault: Fault, act: Act) -> Result<(), UnknownReply> {
        let Some(faults) = self.one_more(fault) else { return Ok(()) };
        if self.is_superfluous(act) {
            return Ok(());
        }
        let state = self.state;
        let Some(keys) = self.replies.apply_fault(state.keys, act) else { return Ok(()) };
        let mut next = state.with_keys(keys).with_faults(faults);
        if matches!(fault, Fault::Expiry | Fault::Delay) {
            let ends_result = self.before.result && !self.replies.facts(keys)?.result;
            if ends_result && self.rules.assumptions.results_outlive_retries {
                return Ok(());
            }
            // The same time passes on the replica.
            next.lag = self.replies.later_lag(state.lag, state.keys, act);
        }
        if fault == Fault::Restart {
            // The replica copies the empty master, so a failover cannot bring anything back.
            next.lag = Lags::NONE;
        }
        self.add(act, None, next)
    }

    /// True for a fault that repeats another, or that is irrelevant. Keys with equal TTLs expire
    /// together, and a lost TTL matters only for a lock.
    fn is_superfluous(&self, act: Act) -> bool {
        match act {
            Act::Expiry(key_index) => {
                let keys = self.replies.keys(self.state.keys);
                let ttl = keys.ttl_ms(usize::from(key_index));
                (0..key_index).any(|other| keys.ttl_ms(usize::from(other)) == ttl)
            }
            Act::Persist(key_index) => {
                !self.before.lock
                    || usize::from(key_index) != self.rules.program.services[0].lock_key_index()
            }
            _ => false,
        }
    }

    fn add(
        &mut self,
        act: Act,
        sent: Option<SentCall>,
        mut next: SearchState,
    ) -> Result<(), UnknownReply> {
        let state = self.state;
        let after = self.replies.facts(next.keys)?;
        // Without a lock the last holder is irrelevant. Keeping it would count equal states twice.
        if !after.lock {
            next.set_holder(None);
        }
        // A lock that names its owner says itself who holds it.
        if after.owner.is_some() {
            next.set_holder(after.owner);
        }
        // The replica's state is irrelevant if no failover may happen any more. Keeping it would
        // count equal states twice.
        if next.faults().of(Fault::Failover) == self.rules.most.of(Fault::Failover) {
            next.lag = Lags::NONE;
        }
        // An effect under a lock without a result lasts until its worker leaves the section.
        if self.rules.program.is_lock_alone {
            for worker in 0..self.rules.workers {
                if !self.rules.position(&next, worker).is_inside {
                    next.end_effect_of(worker);
                }
            }
        }
        let is_changed = next.keys != state.keys;
        let transition = Transition {
            caller: sent.map(|sent| sent.caller),
            reply: sent.map(|sent| sent.effect.reply),
            before: self.before,
            after,
            sets_other_ttl: sent.is_some_and(|sent| sent.effect.sets_other_ttl),
            result_rewritten: is_changed
                && self.before.result
                && after.result
                && !self.replies.is_same_result(state.keys, next.keys),
            lock_gone: self.before.lock
                && is_changed
                && !self.replies.is_same_lock(state.keys, next.keys),
            holder: state.holder(),
            effects_before: state.effects(),
            effects: next.effects(),
            other_payload: self.rules.other_payload(),
            quiet: !self.rules.positions(&next).any(Position::is_at_work),
            succeeded: next.succeeded(),
        };
        let mut names = self.names;
        next.sort_workers(self.rules.free_places(self.replies, &next), &mut names);
        self.found.push(Successor { act, state: next, names, transition });
        Ok(())
    }
}
