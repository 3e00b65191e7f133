//! The naive checker: breadth-first through everything that can happen, one step at a time. It
//! leaves nothing out, remembers no more than what a call did, and judges each step by the
//! invariants of `docs/explore.md`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::calls::{Caller, Keys, Outcome, Step, Stored, Which};
use super::event::Event;
use super::fence::Fence;
use super::format::Format;
use super::protocol::{Call, MAX_WORKERS, Means, OnFailure, Protocol};
use super::request::Request;
use crate::support::Server;

/// The faults, as indices of how often each happened.
pub const FAULTS: [&str; 9] =
    ["expiry", "crash", "lost", "fail", "late-fail", "give-up", "resend", "restart", "delay"];
const EXPIRY: usize = 0;
const CRASH: usize = 1;
const LOST: usize = 2;
const FAIL: usize = 3;
const LATE_FAIL: usize = 4;
const GIVE_UP: usize = 5;
const RESEND: usize = 6;
pub const RESTART: usize = 7;
const DELAY: usize = 8;

/// How often each fault happened, or may happen.
pub type Faults = [u8; FAULTS.len()];

/// What a check covers.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub workers: u8,
    pub faults: Faults,
    /// Assumes `critical-section` and `results-outlive-retries`.
    pub assumes: bool,
}

/// Where a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Call(Step, usize),
    /// The call was executed, its reply was lost, and the same call is sent again.
    Again(Step, usize),
    Effect,
    /// The result is stored, and the worker may still release its lock, as the step says that this
    /// is safe.
    Stored,
    Done,
}

/// Everything that the past leaves to the future.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    keys: usize,
    at: [At; MAX_WORKERS],
    used: Faults,
    /// The workers that had their effect, a bit each.
    effects: u8,
    /// Who took the lock that is there, where its value names no owner.
    holder: Option<u8>,
    /// The workers in their critical section, a bit each.
    section: u8,
    /// A worker has stored the result of its effect, which may have ended since.
    has_stored: bool,
    /// What the system of the effects knows, if it has fencing.
    fence: Fence,
}

struct Node {
    state: State,
    parent: usize,
    event: Event,
    steps: usize,
}

/// A broken invariant, as the first history that breaks it with these faults.
pub struct Harm {
    pub steps: usize,
    /// The steps whose calls end such histories of this length; nothing for what is not a call.
    pub by: BTreeSet<Option<Step>>,
    pub history: Vec<Event>,
}

/// The smallest sets of faults by which an invariant breaks.
pub type Frontier = BTreeMap<(&'static str, Faults), Harm>;

/// What a check found.
pub struct Checked {
    pub frontier: Frontier,
    /// What there is to reach.
    pub goals: &'static [&'static str],
    /// The goals that some history without a fault reaches: `effect`, `stored-result`, `replay`.
    pub reached: BTreeSet<&'static str>,
}

/// Checks a protocol.
pub fn check(protocol: &Protocol, bounds: Bounds, server: &Server) -> Checked {
    let mut caller = Caller::new(protocol, bounds.workers, server);
    let nothing = Keys { stored: vec![None; protocol.redis_keys.len()], clock_ms: 0 };
    let mut at = [At::Done; MAX_WORKERS];
    for worker in &mut at[..usize::from(bounds.workers)] {
        *worker = At::Call(Step::Begin, 0);
    }
    let start = State {
        keys: caller.number(nothing),
        at,
        used: Faults::default(),
        effects: 0,
        holder: None,
        section: 0,
        has_stored: false,
        fence: Fence::default(),
    };
    let mut search = Search {
        protocol,
        bounds,
        caller,
        nodes: vec![Node { state: start, parent: 0, event: Event::Start, steps: 0 }],
        seen: HashSet::from([start]),
        found: BTreeMap::new(),
        reached: BTreeSet::new(),
    };
    let mut next = 0;
    while next < search.nodes.len() {
        search.look_around(next);
        for worker in 0..bounds.workers {
            search.worker_goes_on(next, worker);
            search.handler_fails(next, worker);
            search.handler_fails_late(next, worker);
            search.worker_gives_up(next, worker);
            search.worker_crashes(next, worker);
        }
        search.time_passes(next);
        search.half_the_time_passes(next);
        search.redis_restarts(next);
        next += 1;
    }
    let goals: &[_] = if protocol.is_lock_alone {
        &["effect", "released-lock"]
    } else {
        &["effect", "stored-result", "replay"]
    };
    Checked { frontier: search.frontier(), goals, reached: search.reached }
}

struct Search<'a> {
    protocol: &'a Protocol,
    bounds: Bounds,
    caller: Caller<'a>,
    nodes: Vec<Node>,
    seen: HashSet<State>,
    /// The shortest history that breaks an invariant with these faults.
    found: BTreeMap<(&'static str, Faults), Found>,
    reached: BTreeSet<&'static str>,
}

/// The end of a history: a node, and what happened after it. Without that, one more request asked.
#[derive(Clone)]
struct Found {
    after: usize,
    last: Option<Event>,
    steps: usize,
    by: BTreeSet<Option<Step>>,
}

impl Search<'_> {
    fn reach(&mut self, parent: usize, state: State, event: Event, broken: &[&'static str]) {
        let steps = self.nodes[parent].steps + 1;
        if self.seen.insert(state) {
            self.nodes.push(Node { state, parent, event, steps });
        }
        for invariant in broken {
            let by = BTreeSet::from([event.step()]);
            self.note(invariant, state.used, Found { after: parent, last: Some(event), steps, by });
        }
    }

    /// Another fault, where there may be one more.
    fn with(&self, mut used: Faults, fault: usize) -> Option<Faults> {
        used[fault] += 1;
        let times = [EXPIRY, DELAY];
        if times.contains(&fault) && used[EXPIRY] + used[DELAY] > self.bounds.faults[EXPIRY] {
            return None;
        }
        (used[fault] <= self.bounds.faults[fault]).then_some(used)
    }

    /// The same, where none may happen in a critical section.
    fn outside(&self, state: &State, fault: usize) -> Option<Faults> {
        if self.bounds.assumes && state.section != 0 {
            return None;
        }
        self.with(state.used, fault)
    }

    fn worker_goes_on(&mut self, node: usize, worker: u8) {
        let state = self.nodes[node].state;
        let (step, call) = match state.at[usize::from(worker)] {
            At::Done => return,
            At::Effect => return self.worker_has_its_effect(node, worker),
            At::Stored => (Step::Release, 0),
            At::Call(step, call) | At::Again(step, call) => (step, call),
        };
        let outcome =
            self.caller.outcome(state.keys, Which { step, call, number: worker, is_other: false });
        let (mut broken, holder) = self.judge(&state, worker, step, &outcome);
        if self.sets_other_ttl(state.keys, step, call, &outcome) {
            broken.push("ttl-as-stated");
        }
        let mut after = State { keys: outcome.after, holder, ..state };
        // A completion that is refused has stored nothing, although another's result may be there.
        let stores = step == Step::Complete
            && outcome.means != Some(Means::Refused)
            && self.result_in(outcome.after).is_some();
        after.has_stored |= stores;
        // Who sends the first call of release has left what the lock protects.
        let leaves = self.protocol.is_lock_alone && step == Step::Release;
        if leaves {
            after.effects &= !bit(worker);
        }
        let ends_section = stores || leaves;

        // The worker gets no reply, so nobody is told anything.
        let mut lost = after;
        lost.at[usize::from(worker)] = At::Done;
        lost.section &= !bit(worker);
        let in_section = if ends_section { lost } else { state };
        if let Some(used) = self.outside(&in_section, LOST) {
            let event = Event::Call { worker, step, means: outcome.means, is_lost: true };
            self.reach(node, State { used, ..lost }, event, &broken);
        }

        // The client library gets no reply, and the worker waits.
        let mut resent = after;
        resent.at[usize::from(worker)] = At::Again(step, call);
        resent.section = if ends_section { lost.section } else { state.section };
        if let Some(used) = self.outside(&in_section, RESEND) {
            let event = Event::Resend { worker, step, means: outcome.means };
            self.reach(node, State { used, ..resent }, event, &broken);
        }

        if self.protocol.is_fenced && outcome.means == Some(Means::Acquired) {
            after.fence.hand_out(worker);
        }
        let at = self.follows(step, call, outcome.means);
        after.at[usize::from(worker)] = at;
        let is_on = match at {
            At::Done => false,
            At::Call(Step::Complete, _) => !stores && state.section & bit(worker) != 0,
            _ => self.is_checked(at),
        };
        after.section = state.section & !bit(worker) | if is_on { bit(worker) } else { 0 };
        if outcome.means == Some(Means::Replay) {
            broken.extend(judge_replay(&state, &outcome));
        }
        if state.used == Faults::default() {
            let has_result = self.result_in(outcome.after).is_some();
            match outcome.means {
                Some(Means::Released) => _ = self.reached.insert("released-lock"),
                Some(Means::Stored) => _ = self.reached.insert("stored-result"),
                Some(Means::Replay) if has_result => _ = self.reached.insert("replay"),
                _ => {}
            }
        }
        let event = Event::Call { worker, step, means: outcome.means, is_lost: false };
        self.reach(node, after, event, &broken);
    }

    fn worker_has_its_effect(&mut self, node: usize, worker: u8) {
        let mut state = self.nodes[node].state;
        if self.protocol.is_fenced && !state.fence.accepts(worker) {
            self.reached.insert("refused effect");
            state.at[usize::from(worker)] = self.after_failure();
            return self.reach(node, state, Event::Effect(worker), &[]);
        }
        if state.used == Faults::default() {
            self.reached.insert("effect");
        }
        let is_lock = self.protocol.is_lock_alone;
        let twice = if is_lock { "one-holder" } else { "one-effect" };
        let broken: &[_] = if state.effects == 0 { &[] } else { &[twice] };
        state.effects |= bit(worker);
        let next = if is_lock { Step::Release } else { Step::Complete };
        state.at[usize::from(worker)] = At::Call(next, 0);
        self.reach(node, state, Event::Effect(worker), broken);
    }

    /// A handler runs once its worker has acquired, and fails before the effect.
    fn handler_fails(&mut self, node: usize, worker: u8) {
        let to = self.after_failure();
        self.worker_stops_before_its_effect(node, worker, FAIL, to);
    }

    fn after_failure(&self) -> At {
        match self.protocol.on_failure {
            OnFailure::Store => At::Call(Step::StoreFailure, 0),
            OnFailure::Release if !self.protocol.release.is_empty() => At::Call(Step::Release, 0),
            _ => At::Done,
        }
    }

    /// The handler has had its effect, and its worker has not sent a call of complete.
    fn handler_fails_late(&mut self, node: usize, worker: u8) {
        let mut state = self.nodes[node].state;
        if state.at[usize::from(worker)] != At::Call(Step::Complete, 0) {
            return;
        }
        let Some(used) = self.outside(&state, LATE_FAIL) else { return };
        state.used = used;
        state.section &= !bit(worker);
        state.at[usize::from(worker)] = self.after_failure();
        self.reach(node, state, Event::LateFail(worker), &[]);
    }

    /// Where a failure does not release, a worker may still do so.
    fn worker_gives_up(&mut self, node: usize, worker: u8) {
        let is_release = self.protocol.on_failure == OnFailure::Release;
        if !is_release && !self.protocol.release.is_empty() {
            let to = At::Call(Step::Release, 0);
            self.worker_stops_before_its_effect(node, worker, GIVE_UP, to);
        }
    }

    /// That ends its critical section, and may happen in those of others.
    fn worker_stops_before_its_effect(&mut self, node: usize, worker: u8, fault: usize, to: At) {
        let mut state = self.nodes[node].state;
        let is_before =
            matches!(state.at[usize::from(worker)], At::Call(Step::Renew, _) | At::Effect);
        // A lock is released whether or not the work fails.
        if !is_before || self.protocol.is_lock_alone {
            return;
        }
        let Some(used) = self.with(state.used, fault) else { return };
        state.used = used;
        state.section &= !bit(worker);
        state.at[usize::from(worker)] = to;
        let event = if fault == FAIL { Event::Fail(worker) } else { Event::GiveUp(worker) };
        self.reach(node, state, event, &[]);
    }

    fn worker_crashes(&mut self, node: usize, worker: u8) {
        let mut state = self.nodes[node].state;
        if matches!(state.at[usize::from(worker)], At::Done | At::Call(Step::Begin, 0)) {
            return;
        }
        let Some(used) = self.outside(&state, CRASH) else { return };
        state.used = used;
        state.at[usize::from(worker)] = At::Done;
        state.section &= !bit(worker);
        if self.protocol.is_lock_alone {
            state.effects &= !bit(worker);
        }
        self.reach(node, state, Event::Crash(worker), &[]);
    }

    fn time_passes(&mut self, node: usize) {
        let state = self.nodes[node].state;
        let Some(used) = self.outside(&state, EXPIRY) else { return };
        let reading = self.caller.state(state.keys);
        let keys = reading.keys.clone();
        let mut moments = reading.ends.concat();
        moments.sort_unstable();
        moments.dedup();
        let result_ends = reading.ends[self.protocol.result].clone();
        for passes in moments {
            let ends_result = result_ends.iter().any(|end| *end <= passes);
            if self.bounds.assumes && ends_result && self.result_in(state.keys).is_some() {
                continue;
            }
            let keys = self.caller.number(later(&keys, passes));
            let holder = if self.has_lock(keys) { state.holder } else { None };
            self.reach(node, State { keys, used, holder, ..state }, Event::Expiry(passes), &[]);
        }
    }

    /// Half of the time until the first deadline, in whole seconds.
    fn half_the_time_passes(&mut self, node: usize) {
        let state = self.nodes[node].state;
        let Some(used) = self.outside(&state, DELAY) else { return };
        let reading = self.caller.state(state.keys);
        let Some(first) = reading.ends.iter().flatten().min() else { return };
        let passes = first / 2_000 * 1_000;
        if passes == 0 {
            return;
        }
        let keys = later(&reading.keys, passes);
        let keys = self.caller.number(keys);
        self.reach(node, State { keys, used, ..state }, Event::Delay(passes), &[]);
    }

    fn redis_restarts(&mut self, node: usize) {
        let state = self.nodes[node].state;
        let Some(used) = self.outside(&state, RESTART) else { return };
        let mut keys = self.caller.state(state.keys).keys.clone();
        if keys.stored.iter().all(Option::is_none) {
            return;
        }
        keys.stored.fill(None);
        let keys = self.caller.number(keys);
        self.reach(node, State { keys, used, holder: None, ..state }, Event::Restart, &[]);
    }

    fn calls(&self, step: Step) -> &[Call] {
        match step {
            Step::Begin => &self.protocol.begin,
            Step::Renew => &self.protocol.renew,
            Step::Complete | Step::StoreFailure => &self.protocol.complete,
            Step::Release => &self.protocol.release,
        }
    }

    /// Where a worker is after a call.
    fn follows(&self, step: Step, call: usize, means: Option<Means>) -> At {
        let protocol = self.protocol;
        let calls = self.calls(step);
        match means {
            Some(Means::Next) if call + 1 < calls.len() => At::Call(step, call + 1),
            Some(Means::Acquired) if !protocol.renew.is_empty() => At::Call(Step::Renew, 0),
            Some(Means::Acquired | Means::Renewed) => At::Effect,
            Some(Means::Stored) if step == Step::Complete && protocol.claims(Step::Release) => {
                At::Stored
            }
            _ => At::Done,
        }
    }

    /// No call between here and the effect touches the lock's key.
    fn is_checked(&self, at: At) -> bool {
        let mut ahead = Vec::new();
        match at {
            At::Call(Step::Begin, call) => {
                ahead.extend(&self.protocol.begin[call..]);
                ahead.extend(&self.protocol.renew);
            }
            At::Call(Step::Renew, call) => ahead.extend(&self.protocol.renew[call..]),
            At::Effect => {}
            _ => return false,
        }
        !ahead.iter().any(|call| call.touches_lock)
    }

    /// The invariants that a worker's call breaks by what it does to the keys, and who holds the
    /// lock after it.
    fn judge(
        &self,
        state: &State,
        worker: u8,
        step: Step,
        outcome: &Outcome,
    ) -> (Vec<&'static str>, Option<u8>) {
        let mut broken = Vec::new();
        match (self.result_in(state.keys), self.result_in(outcome.after)) {
            (Some(_), None) => broken.push("result-kept"),
            (Some(before), Some(after)) if before.content != after.content => {
                broken.push("result-not-replaced");
            }
            _ => {}
        }
        let takes = matches!(outcome.means, Some(Means::Acquired | Means::Next));
        let mut holder = state.holder;
        if step == Step::Begin && takes && outcome.wrote_lock {
            holder = Some(worker);
        }
        if !self.has_lock(outcome.after) {
            holder = None;
        }
        let held_by = self.owner(state.keys, state.holder);
        let is_others = held_by.is_some_and(|owner| owner != worker);
        if is_others && self.owner(outcome.after, holder) != held_by {
            broken.push("owner-only");
        }
        (broken, holder)
    }

    /// The call gives a Redis key a TTL that is not stated, also where the value's own time has
    /// passed.
    fn sets_other_ttl(&self, before: usize, step: Step, call: usize, outcome: &Outcome) -> bool {
        let protocol = self.protocol;
        let is_first_renewal = outcome.means == Some(Means::Renewed) && call == 0;
        for role in 0..protocol.redis_keys.len() {
            let Some(form) = self.caller.state(outcome.after).forms[role] else { continue };
            let is_result = protocol.formats[form].is_completed;
            let stated = if is_result { protocol.result_ttl } else { protocol.lock_ttl };
            if stated == 0 {
                continue;
            }
            let had = &self.caller.state(before).keys.stored[role];
            let has = &self.caller.state(outcome.after).keys.stored[role];
            let stores = had.is_none() || self.caller.state(before).forms[role] != Some(form);
            let had_ttl = had.as_ref().and_then(|stored| stored.ttl);
            let has_ttl = has.as_ref().and_then(|stored| stored.ttl);
            if !stores && had_ttl == has_ttl && !(is_first_renewal && role == protocol.lock) {
                continue;
            }
            if has_ttl.is_none() && self.names_again(step, call, role, outcome.means) {
                continue;
            }
            // Either the Redis key ends then, or the value says that it does.
            let ends = &self.caller.state(outcome.after).ends[role];
            if !ends.contains(&stated) {
                return true;
            }
        }
        false
    }

    /// A later call of the step names the Redis key.
    fn names_again(&self, step: Step, call: usize, role: usize, means: Option<Means>) -> bool {
        let is_named = |call: &Call| {
            if role == self.protocol.lock { call.touches_lock } else { call.touches_result }
        };
        means == Some(Means::Next) && self.calls(step)[call + 1..].iter().any(is_named)
    }

    /// A lock is there.
    fn has_lock(&self, keys: usize) -> bool {
        self.format(keys, self.protocol.lock).is_some_and(|format| !format.is_completed)
    }

    /// The result that is there, also where a lock hides it from the next request.
    fn result_in(&self, keys: usize) -> Option<&Stored> {
        let format = self.format(keys, self.protocol.result)?;
        let stored = &self.caller.state(keys).keys.stored[self.protocol.result];
        stored.as_ref().filter(|_| format.is_completed && self.protocol.replays(format))
    }

    /// The first format that the value of a role fits.
    fn format(&self, keys: usize, role: usize) -> Option<&Format> {
        self.caller.state(keys).formats[role].map(|format| &self.protocol.formats[format])
    }

    /// Who holds the lock: the owner in its value, or else whoever took it.
    fn owner(&self, keys: usize, holder: Option<u8>) -> Option<u8> {
        let format = self.format(keys, self.protocol.lock).filter(|format| !format.is_completed)?;
        if format.owner.is_none() {
            return holder;
        }
        let owner = self.caller.state(keys).owner.as_ref()?;
        (0..self.bounds.workers).find(|worker| Request::owner(*worker) == *owner)
    }

    /// Asks what one more request would get, where an invariant is about that.
    fn look_around(&mut self, node: usize) {
        let state = self.nodes[node].state;
        let is_idle = |at: &At| matches!(at, At::Done | At::Stored | At::Call(Step::Begin, 0));
        // Before all workers there is nothing that went wrong.
        if node > 0 && state.at.iter().all(is_idle) {
            let (means, _) = self.one_more(state.keys, false);
            let is_stuck = self.rejects_indefinitely(state.keys);
            if is_stuck {
                self.note_one_more("lock-ends", node);
            }
            // So does what gets a reply that the schema does not list.
            let fails = matches!(means, None | Some(Means::Fail | Means::Mismatch));
            if state.has_stored && (fails || is_stuck) {
                self.note_one_more("replays-after-success", node);
            }
        }
        if self.protocol.sends_fingerprint {
            let is_in_use = self.has_lock(state.keys) || self.result_in(state.keys).is_some();
            let (means, _) = self.one_more(state.keys, true);
            if means == Some(Means::Replay) || means == Some(Means::Acquired) && is_in_use {
                self.note_one_more("payloads-apart", node);
            }
        }
    }

    /// One more request is rejected, neither that nor time changes anything, and the next one is
    /// rejected as well.
    fn rejects_indefinitely(&mut self, keys: usize) -> bool {
        let (first, after) = self.one_more(keys, false);
        let (second, after_second) = self.one_more(after, false);
        if first != Some(Means::Conflict) || second != Some(Means::Conflict) {
            return false;
        }
        let lock = self.protocol.lock;
        let ends = self.caller.state(after).ends[lock].clone();
        let Some(passes) = ends.iter().max() else { return true };
        if ends != self.caller.state(after_second).ends[lock] {
            return true;
        }
        // No retry prolongs it, so it ends, and that has to end the rejection.
        let ended = later(&self.caller.state(after).keys, *passes);
        let ended = self.caller.number(ended);
        self.one_more(ended, false).0 == Some(Means::Conflict)
    }

    fn note_one_more(&mut self, invariant: &'static str, node: usize) {
        let used = self.nodes[node].state.used;
        let steps = self.nodes[node].steps + 1;
        let by = BTreeSet::from([None]);
        self.note(invariant, used, Found { after: node, last: None, steps, by });
    }

    fn note(&mut self, invariant: &'static str, used: Faults, found: Found) {
        let first = self.found.entry((invariant, used)).or_insert_with(|| found.clone());
        if found.steps < first.steps {
            *first = found;
        } else if found.steps == first.steps {
            first.by.extend(found.by);
        }
    }

    /// What another request is told, and the keys after it. It makes all its calls at once, and is
    /// one step.
    fn one_more(&mut self, mut keys: usize, is_other: bool) -> (Option<Means>, usize) {
        let number = self.bounds.workers + u8::from(is_other);
        for call in 0..self.protocol.begin.len() {
            let which = Which { step: Step::Begin, call, number, is_other };
            let outcome = self.caller.outcome(keys, which);
            keys = outcome.after;
            if outcome.means != Some(Means::Next) {
                return (outcome.means, keys);
            }
        }
        (None, keys)
    }

    /// What is found, without what a part of its faults breaks as well.
    fn frontier(&self) -> Frontier {
        let mut frontier = Frontier::new();
        for ((invariant, faults), found) in &self.found {
            let is_less = |other: &Faults| {
                other != faults && other.iter().zip(faults).all(|(other, own)| other <= own)
            };
            if self.found.keys().any(|(other, fewer)| other == invariant && is_less(fewer)) {
                continue;
            }
            let (steps, by) = (found.steps, found.by.clone());
            let harm = Harm { steps, by, history: self.history(found) };
            frontier.insert((*invariant, *faults), harm);
        }
        frontier
    }

    fn history(&self, found: &Found) -> Vec<Event> {
        let mut events = Vec::from_iter(found.last);
        let mut at = found.after;
        while at != 0 {
            events.push(self.nodes[at].event);
            at = self.nodes[at].parent;
        }
        events.reverse();
        events
    }
}

/// The invariants that a replay breaks. One without a response, or with that of several workers,
/// may be anybody's.
fn judge_replay(state: &State, outcome: &Outcome) -> Vec<&'static str> {
    let mut broken = Vec::new();
    let mut is_of_failure = false;
    if let Some(authors) = outcome.brings {
        let is_shared = (authors.effect | authors.failure).count_ones() > 1;
        is_of_failure = authors.failure != 0 && authors.effect == 0;
        let is_true =
            if is_of_failure { state.effects == 0 } else { authors.effect & state.effects != 0 };
        if !is_shared && !is_true {
            broken.push("true-replay");
        }
    }
    if !is_of_failure && state.effects == 0 {
        broken.push("no-false-done");
    }
    broken
}

/// The keys after so much time.
fn later(keys: &Keys, passes: i64) -> Keys {
    let mut keys = keys.clone();
    keys.clock_ms += passes;
    for stored in &mut keys.stored {
        let Some(Stored { ttl: Some(ttl), .. }) = stored else { continue };
        *ttl -= passes;
        if *ttl <= 0 {
            *stored = None;
        }
    }
    keys
}

fn bit(worker: u8) -> u8 {
    1 << worker
}
