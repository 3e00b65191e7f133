//! The states of the Redis keys, and the known effects of calls, time and faults in each of them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::lag::Lags;
use crate::domain::exploration::{
    Act, AttributedReply, ExecutedCall, KeysState, MetReplies, NextAction, ResponseAuthor,
    StateFacts, WorkerProgram, has_result,
};
use crate::domain::record::Reading;
use crate::domain::record::decode::Decoded;
use crate::domain::schema::{Meaning, Schema, State};

/// The time in milliseconds after which a rejected client retries, to find out whether retries
/// prolong the lock.
const RETRY_AFTER_MS: u64 = 1_000;

/// How long after a value's contained expiry the time stops, in milliseconds. A script may compare
/// with `<` or `<=`, and in whole seconds; in the moment of the expiry it may find the value
/// unexpired.
const LATE_MS: u64 = 1_000;

/// The number of requests after the workers: one more, and one more with another payload.
const LATER_REQUESTS: usize = 2;

/// Remembers what the server did, so that each call is executed once per state.
pub(super) struct ReplyTable {
    program: Rc<WorkerProgram>,
    workers: u8,
    callers: Callers,
    /// True if time passes to the expiry that a value holds. Begin may then take the value over
    /// with further Redis keys, and the state has only those of `[keys]`.
    passes_own_expiries: bool,
    states: Vec<KeysState>,
    numbers: HashMap<KeysState, u32>,
    /// For each state, the workers whose calls changed the keys on the first known way to it, a bit
    /// each. With other names for all other workers, the same way leads to the same state.
    traces: Vec<u8>,
    /// For each state, caller and call: the effect. This is a list, because the search reads it for
    /// every transition.
    replies: Vec<Option<KnownEffect>>,
    facts: Vec<Option<StateFacts>>,
    /// For each call of the program, the replies that the server gave.
    met: Vec<MetReplies>,
    /// What a failover can lose.
    pub(super) lags: Lags,
    /// The effects of faults that no worker causes, by state and act; `None` if nothing changes.
    fault_effects: HashMap<(u32, Act), Option<u32>, FixedState>,
    /// For two states whose results have different bytes, whether they are the same JSON. The
    /// search asks for the same two states very often, and parsing is slow.
    same_results: HashMap<(u32, u32), bool, FixedState>,
}

/// What the search knows about the workers, so that it recognises them in values and replies.
#[derive(Debug, Clone)]
pub struct Callers {
    /// The responses that workers give.
    pub responses: Vec<(Vec<u8>, ResponseAuthor)>,
    /// The owner ID of each worker.
    pub owners: Vec<Vec<u8>>,
    /// True if scripts read the clock.
    pub ticks: bool,
    /// True if the last worker requests another operation with the same key.
    pub has_other_payload: bool,
}

/// The known effect of a call, reduced to what the search distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownEffect {
    pub(super) reply: AttributedReply,
    /// The number of the state of the Redis keys afterwards.
    pub(super) keys: u32,
    /// True if the call wrote the lock's Redis key, even with the same value.
    pub(super) wrote_lock: bool,
    /// True if the call gave a Redis key another TTL than the schema states for its value.
    pub(super) sets_other_ttl: bool,
}

/// The outcome of a whole request.
pub(super) struct RequestOutcome {
    pub(super) reply: AttributedReply,
    /// The state of the Redis keys afterwards.
    pub(super) keys: u32,
}

impl ReplyTable {
    /// An empty table that knows only the state without any Redis key.
    pub(super) fn new(program: Rc<WorkerProgram>, workers: u8, callers: Callers) -> Self {
        // Two services of one exploration may use one and two Redis keys. The larger record counts.
        let mut keys = 1;
        for schema in &program.services {
            keys = keys.max(schema.keys.len());
        }
        let met = vec![MetReplies::default(); program.calls.len()];
        let mut services = program.services.iter();
        let passes_own_expiries = !services.any(|schema| schema.begins_with_other_keys());
        let mut table = Self {
            program,
            workers,
            callers,
            passes_own_expiries,
            states: Vec::new(),
            numbers: HashMap::new(),
            traces: Vec::new(),
            replies: Vec::new(),
            facts: Vec::new(),
            met,
            lags: Lags::new(),
            fault_effects: HashMap::default(),
            same_results: HashMap::default(),
        };
        // Number 0 is the state in which schedules begin.
        table.number(KeysState::absent(keys), 0);
        table
    }

    /// The state of the Redis keys with this number.
    pub(super) fn keys(&self, number: u32) -> &KeysState {
        &self.states[number as usize]
    }

    /// The number of Redis keys of a record.
    pub(super) fn key_count(&self) -> u8 {
        u8::try_from(self.states[0].stored.len()).unwrap_or(u8::MAX)
    }

    /// The workers whose names may make a difference to a state of the Redis keys, or to what a
    /// failover can restore, a bit each.
    pub(super) fn trace(&self, keys: u32, lag: u32) -> u8 {
        let mut trace = self.traces[keys as usize];
        for before in self.lags.get(lag).into_iter().flatten() {
            trace |= self.traces[before as usize];
        }
        trace
    }

    /// The number of a state, which is added if it is new. `trace` has the workers whose calls led
    /// to it, a bit each.
    fn number(&mut self, keys: KeysState, trace: u8) -> u32 {
        if let Some(number) = self.numbers.get(&keys) {
            return *number;
        }
        let number = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        // Where no Redis key is left, no name is.
        let is_empty = keys.stored.iter().all(Option::is_none);
        self.traces.push(if is_empty { 0 } else { trace });
        self.states.push(keys.clone());
        self.numbers.insert(keys, number);
        self.facts.push(None);
        self.replies.resize(self.states.len() * self.calls_per_state(), None);
        number
    }

    fn calls_per_state(&self) -> usize {
        (usize::from(self.workers) + LATER_REQUESTS) * self.program.calls.len()
    }

    fn place(&self, of: UnknownReply) -> usize {
        let in_state = usize::from(of.caller) * self.program.calls.len() + usize::from(of.call);
        of.keys as usize * self.calls_per_state() + in_state
    }

    /// The effect of a call.
    ///
    /// # Errors
    /// [`UnknownReply`] if the server has not executed the call yet.
    pub(super) fn reply(&self, of: UnknownReply) -> Result<KnownEffect, UnknownReply> {
        self.replies[self.place(of)].ok_or(of)
    }

    /// Stores what the server did.
    pub(super) fn learn(&mut self, of: UnknownReply, effect: CallEffect) {
        self.note_reply(of.call, &effect.listed);
        let known = self.attribute(of, effect);
        let place = self.place(of);
        self.replies[place] = Some(known);
    }

    /// Records a reply of the server to a call, for the report on coverage.
    fn note_reply(&mut self, call: u8, listed: &Result<usize, String>) {
        let met = &mut self.met[usize::from(call)];
        match listed {
            Ok(index) => {
                if met.listed.len() <= *index {
                    met.listed.resize(*index + 1, false);
                }
                met.listed[*index] = true;
            }
            // The first example is enough to find the mistake.
            Err(words) => _ = met.unlisted.get_or_insert_with(|| words.clone()),
        }
    }

    /// For each call of the program, the replies that the server gave.
    pub(super) fn met(&self) -> &[MetReplies] {
        &self.met
    }

    /// True if the effect equals the stored one.
    pub(super) fn agrees(&mut self, of: UnknownReply, effect: CallEffect) -> bool {
        let known = self.attribute(of, effect);
        self.reply(of) == Ok(known)
    }

    /// Reduces an effect to what the search distinguishes.
    fn attribute(&mut self, of: UnknownReply, effect: CallEffect) -> KnownEffect {
        let call = self.program.calls[usize::from(of.call)];
        let schema = &self.program.services[call.service];
        let response = effect.response.as_deref();
        let mut reply =
            AttributedReply::new(schema, effect.meaning, response, &self.callers.responses);
        // The reply tells of a failure, whoever's it is. The client knows those of its operation.
        let is_replay = effect.meaning == Some(Meaning::Replay);
        if is_replay
            && reply.author == ResponseAuthor::Untold
            && self.keys(of.keys).has_failure(schema)
        {
            reply.author = ResponseAuthor::Failure(of.caller);
        }
        if is_replay && reply.author == ResponseAuthor::Untold && effect.hides_response {
            self.met[usize::from(of.call)].has_untold_replay = true;
        }
        let calls = match self.program.step(call) {
            Some(step) => &step.calls[..],
            None => &[],
        };
        let executed = ExecutedCall {
            schema,
            calls,
            index: call.index,
            meaning: effect.meaning,
            before: self.keys(of.keys),
            after: &effect.keys,
        };
        let sets_other_ttl = executed.sets_other_ttl();
        // The requests after the workers have names of their own.
        let caller = if of.caller < self.workers { 1 << of.caller } else { 0 };
        let keys = self.number(effect.keys, self.traces[of.keys as usize] | caller);
        KnownEffect { reply, keys, wrote_lock: effect.wrote_lock, sets_other_ttl }
    }

    /// Every call that the server has executed.
    pub(super) fn known(&self) -> Vec<UnknownReply> {
        let calls = self.program.calls.len();
        let mut known = Vec::new();
        for (place, reply) in self.replies.iter().enumerate() {
            if reply.is_none() {
                continue;
            }
            let keys = u32::try_from(place / self.calls_per_state());
            let in_state = place % self.calls_per_state();
            let caller = u8::try_from(in_state / calls);
            let call = u8::try_from(in_state % calls);
            if let (Ok(keys), Ok(caller), Ok(call)) = (keys, caller, call) {
                known.push(UnknownReply { keys, caller, call });
            }
        }
        known
    }

    /// Forgets the effects of calls, for tests that measure the value of the table.
    pub(super) fn forget(&mut self) {
        self.replies.fill(None);
        self.facts.fill(None);
    }

    /// The state after a fault that no worker causes; `None` if the fault changes nothing.
    pub(super) fn apply_fault(&mut self, keys: u32, act: Act) -> Option<u32> {
        if let Some(known) = self.fault_effects.get(&(keys, act)) {
            return *known;
        }
        let trace = self.traces[keys as usize];
        let after = self.state_after_fault(keys, act).map(|after| self.number(after, trace));
        self.fault_effects.insert((keys, act), after);
        after
    }

    fn state_after_fault(&self, keys: u32, act: Act) -> Option<KeysState> {
        let keys = self.keys(keys);
        match act {
            Act::Expiry(key_index) => {
                let ttl = keys.ttl_ms(usize::from(key_index))?;
                Some(keys.after(ttl, self.callers.ticks))
            }
            Act::Lapse(key_index) => {
                let passes = self.until_lapse_ms(keys, usize::from(key_index))?;
                Some(keys.after(passes, self.callers.ticks))
            }
            Act::Delay => Some(keys.after(self.delay_ms(keys)?, self.callers.ticks)),
            Act::Evict(key_index) => {
                keys.stored[usize::from(key_index)].as_ref()?;
                Some(keys.without(usize::from(key_index)))
            }
            Act::Restart => {
                keys.stored.iter().find(|stored| stored.is_some())?;
                Some(KeysState { stored: vec![None; keys.stored.len()], ..*keys })
            }
            Act::Persist(key_index) => {
                keys.ttl_ms(usize::from(key_index))?;
                Some(keys.without_ttl(usize::from(key_index)))
            }
            _ => None,
        }
    }

    /// The time in milliseconds until the value of this Redis key expires by its own time, before
    /// its TTL ends.
    fn own_ttl_ms(&self, keys: &KeysState, key_index: usize) -> Option<u64> {
        if !self.passes_own_expiries {
            return None;
        }
        let mut services = self.program.services.iter();
        let own = services.find_map(|schema| keys.own_ttl_ms(schema, key_index))?;
        match keys.ttl_ms(key_index) {
            Some(ttl) if ttl <= own => None,
            _ => Some(own),
        }
    }

    /// The time in milliseconds that passes until every script finds the value of this Redis key
    /// expired by its own time.
    fn until_lapse_ms(&self, keys: &KeysState, key_index: usize) -> Option<u64> {
        Some(self.own_ttl_ms(keys, key_index)? + LATE_MS)
    }

    /// Half of the time in milliseconds until a Redis key, or the value in it, expires next; `None`
    /// if none expires, or if the time is too short.
    fn delay_ms(&self, keys: &KeysState) -> Option<u64> {
        let mut first: Option<u64> = None;
        for key_index in 0..keys.stored.len() {
            let ends = [keys.ttl_ms(key_index), self.own_ttl_ms(keys, key_index)];
            for end in ends.into_iter().flatten() {
                first = Some(first.map_or(end, |first| first.min(end)));
            }
        }
        // Whole seconds, because many services measure time in seconds.
        let seconds = first? / 2 / 1_000;
        if seconds == 0 { None } else { Some(seconds * 1_000) }
    }

    /// A lag after the time that an expiry or a delay takes in the state `keys`.
    pub(super) fn later_lag(&mut self, lag: u32, keys: u32, act: Act) -> u32 {
        let before = self.keys(keys);
        let passes = match act {
            Act::Lapse(key_index) => self.until_lapse_ms(before, usize::from(key_index)),
            Act::Expiry(key_index) => before.ttl_ms(usize::from(key_index)),
            Act::Delay => self.delay_ms(before),
            _ => None,
        };
        let passes = passes.unwrap_or(0);
        let mut lag = self.lags.get(lag);
        for before in lag.iter_mut().flatten() {
            let later = self.keys(*before).after(passes, self.callers.ticks);
            *before = self.number(later, self.traces[*before as usize]);
        }
        self.lags.number(lag)
    }

    /// The consequences of a state for requests.
    ///
    /// # Errors
    /// [`UnknownReply`] if the server must execute a call first.
    pub(super) fn facts(&mut self, keys: u32) -> Result<StateFacts, UnknownReply> {
        if let Some(facts) = self.facts[keys as usize] {
            return Ok(facts);
        }
        let program = Rc::clone(&self.program);
        let mut lock = false;
        let mut owner = None;
        for schema in &program.services {
            // The lock of either service counts, because the other one must respect it.
            let Some(held) = held_lock(schema, self.keys(keys)) else { continue };
            lock = true;
            let mut owners = self.callers.owners.iter();
            let worker = owners.position(|known| held.owner.as_ref() == Some(known));
            owner = owner.or(worker.and_then(|worker| u8::try_from(worker).ok()));
        }
        let result = program.services.iter().any(|schema| has_result(schema, self.keys(keys)));
        let mut facts = StateFacts {
            lock,
            owner,
            result,
            replays: None,
            fails: None,
            stuck: None,
            mistaken: None,
        };
        for (number, schema) in program.services.iter().enumerate() {
            let service = u8::try_from(number).unwrap_or(u8::MAX);
            let next = self.request(keys, service, self.workers)?;
            match next.reply.meaning {
                Some(Meaning::Replay) => facts.replays = facts.replays.or(Some(service)),
                Some(Meaning::Conflict) => {
                    if self.is_stuck(keys, service, &next)? {
                        facts.stuck = facts.stuck.or(Some(service));
                    }
                }
                Some(Meaning::Acquired) => {}
                // The key may belong to the other operation.
                Some(Meaning::Mismatch) if self.callers.has_other_payload => {}
                // Every other reply of begin, including an unlisted one, is an error for the
                // client.
                _ => facts.fails = facts.fails.or(Some(service)),
            }
            if schema.tells_payloads_apart() && self.serves_other_payload(keys, service)? {
                facts.mistaken = facts.mistaken.or(Some(service));
            }
        }
        self.facts[keys as usize] = Some(facts);
        Ok(facts)
    }

    /// True if a request with another payload is served as if its payload were the stored one.
    fn serves_other_payload(&self, keys: u32, service: u8) -> Result<bool, UnknownReply> {
        let meaning = self.request(keys, service, self.workers + 1)?.reply.meaning;
        // Acquiring the lock of an unused key is correct with any payload.
        let is_in_use = self.keys(keys).is_in_use(&self.program.services[usize::from(service)]);
        Ok(meaning == Some(Meaning::Replay) || (meaning == Some(Meaning::Acquired) && is_in_use))
    }

    /// The outcome of one more request of a service: begin's calls until a reply decides.
    pub(super) fn request(
        &self,
        keys: u32,
        service: u8,
        caller: u8,
    ) -> Result<RequestOutcome, UnknownReply> {
        let mut keys = keys;
        let mut position = self.program.starts[usize::from(service)];
        loop {
            let action = self.program.positions[usize::from(position)].action;
            let NextAction::Call { number, .. } = action else {
                return Ok(RequestOutcome { reply: AttributedReply::UNLISTED, keys });
            };
            let effect = self.reply(UnknownReply { keys, caller, call: number })?;
            keys = effect.keys;
            let reply = effect.reply;
            if reply.meaning != Some(Meaning::Next) {
                return Ok(RequestOutcome { reply, keys });
            }
            position = action.follow(reply.meaning);
        }
    }

    /// True if a rejected request will always be rejected: nothing expires, or each retry prolongs
    /// the lock.
    fn is_stuck(
        &mut self,
        keys: u32,
        service: u8,
        rejected: &RequestOutcome,
    ) -> Result<bool, UnknownReply> {
        let key_index = self.program.services[usize::from(service)].lock_key_index();
        let conflict = Some(Meaning::Conflict);
        let schema = Arc::clone(&self.program.services[usize::from(service)]);
        if self.passes_own_expiries
            && let Some(own) = self.keys(rejected.keys).own_ttl_ms(&schema, key_index)
        {
            // The value expires by its own time, unless the rejected request moved that time.
            let later = self.keys(rejected.keys).after(own + LATE_MS, self.callers.ticks);
            let later = self.number(later, self.traces[rejected.keys as usize]);
            let again = self.request(later, service, self.workers)?;
            if again.reply.meaning != conflict {
                return Ok(false);
            }
            // Begin does not compare that time with the clock as described, so only the TTL of the
            // Redis key can end the lock.
        }
        let Some(left) = self.keys(rejected.keys).ttl_ms(key_index) else {
            // The lock never expires, but begin may repair it, so only a second rejection is final.
            let again = self.request(rejected.keys, service, self.workers)?;
            return Ok(again.reply.meaning == conflict);
        };
        let left_before = self.keys(keys).ttl_ms(key_index);
        // If the lock expires before the client retries, or if the rejected request changed its
        // TTL, that request alone shows whether requests prolong the lock.
        if left <= RETRY_AFTER_MS || left_before != Some(left) {
            return Ok(match left_before {
                Some(before) => left > before,
                None => false,
            });
        }
        // Begin may set the TTL to its full length on each request. That is visible only after time
        // has passed.
        let later = self.keys(keys).after(RETRY_AFTER_MS, self.callers.ticks);
        let later = self.number(later, self.traces[keys as usize]);
        let again = self.request(later, service, self.workers)?;
        let left_after = self.keys(again.keys).ttl_ms(key_index);
        let is_prolonged = match left_after {
            Some(left_after) => left_after > left - RETRY_AFTER_MS,
            // Without a TTL the lock never expires.
            None => true,
        };
        Ok(again.reply.meaning == conflict && is_prolonged)
    }

    /// True if the lock's Redis key has the same value in both states.
    pub(super) fn is_same_lock(&self, one: u32, other: u32) -> bool {
        self.is_same(one, other, self.program.services[0].lock_key_index())
    }

    /// True if the result's Redis key has the same value in both states, or the same JSON: a script
    /// that encodes a result again may change the order of its members.
    pub(super) fn is_same_result(&mut self, one: u32, other: u32) -> bool {
        let key_index = self.program.services[0].result_key_index();
        if self.is_same(one, other, key_index) {
            return true;
        }
        if let Some(known) = self.same_results.get(&(one, other)) {
            return *known;
        }
        let is_same = match (&self.keys(one).stored[key_index], &self.keys(other).stored[key_index])
        {
            (Some(one), Some(other)) => one.is_same_json(other),
            _ => false,
        };
        self.same_results.insert((one, other), is_same);
        is_same
    }

    fn is_same(&self, one: u32, other: u32, key_index: usize) -> bool {
        let one = &self.keys(one).stored[key_index];
        let other = &self.keys(other).stored[key_index];
        match (one, other) {
            (Some(one), Some(other)) => one.is_same_value(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

/// The lock that is held; `None` if there is none.
fn held_lock(schema: &Schema, keys: &KeysState) -> Option<Box<Decoded>> {
    let key_index = schema.lock_key_index();
    match keys.reading(schema, key_index) {
        Reading::Value(decoded)
            if schema.values[decoded.format].state == State::InProgress
                && decoded.past_expiry.is_none() =>
        {
            Some(decoded)
        }
        _ => None,
    }
}

/// A call whose effect is unknown: this caller sends this call in this state of the Redis keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownReply {
    /// The number of the state of the Redis keys.
    pub keys: u32,
    /// The worker's number. The numbers after the workers are one more request, and one more with
    /// another payload.
    pub caller: u8,
    /// The index in the program's list of calls.
    pub call: u8,
}

/// The effect of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEffect {
    /// The meaning of the reply; `None` if the schema does not list the reply.
    pub meaning: Option<Meaning>,
    /// The index of the reply among those that the schema lists for the call, or the reply in words
    /// if it is not listed.
    pub listed: Result<usize, String>,
    /// The stored response that the reply carries.
    pub response: Option<Vec<u8>>,
    /// True if the reply has texts that may be the response, and none of them was recognised.
    pub hides_response: bool,
    /// The state of the Redis keys afterwards.
    pub keys: KeysState,
    /// True if the call wrote the lock's Redis key, even with the same value. It matters only if
    /// the reply means acquired.
    pub wrote_lock: bool,
}

/// A server that executes calls in any state of the Redis keys.
#[expect(async_fn_in_trait, reason = "the search and its server run on one thread")]
pub trait StateServer {
    type Error;

    /// Restores a state of the Redis keys, executes a call of the program, and reads the keys.
    async fn execute_in(
        &mut self,
        before: &KeysState,
        caller: u8,
        call: u8,
    ) -> Result<CallEffect, Self::Error>;

    /// True if the exploration must end early. The search calls this between slices of work.
    async fn is_interrupted(&mut self) -> bool;
}
