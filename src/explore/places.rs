//! The states of the Redis keys, and what is known of them: what each call does there, what time and mishaps do.

use std::collections::HashMap;
use std::rc::Rc;

use super::perform::{Performed, Question};
use crate::domain::exploration::{Act, Author, Does, Facts, Heard, Keys, Program};
use crate::domain::record::{Reading, decode};
use crate::domain::schema::{Meaning, Schema, State};
use crate::domain::step::Listener;

/// How long a client waits that asks again, to learn whether its asking prolongs the lock.
const PATIENCE_MS: u64 = 1_000;

/// What the requests are that come after the workers.
const LATER: usize = 2;

pub(super) struct Table {
    program: Rc<Program>,
    workers: u8,
    /// The responses that workers give.
    responses: Vec<(Vec<u8>, Author)>,
    /// True when scripts see the time pass.
    ticks: bool,
    stores: Vec<Keys>,
    numbers: HashMap<Keys, u32>,
    /// For each state, caller and call what was heard, and the number of the state it led to.
    known: Vec<Option<(Heard, u32)>>,
    facts: Vec<Option<Facts>>,
    /// What the acts of nobody lead to, by state and act; `None` where nothing changes.
    worldly: HashMap<(u32, Act), Option<u32>>,
}

/// What a request comes to in the end.
pub(super) struct Ended {
    pub(super) heard: Heard,
    pub(super) store: u32,
}

impl Table {
    pub(super) fn new(program: Rc<Program>, workers: u8, responses: Vec<(Vec<u8>, Author)>, ticks: bool) -> Self {
        let roles = program.services.iter().map(|schema| schema.keys.len()).max().unwrap_or(1);
        let mut table = Self {
            program,
            workers,
            responses,
            ticks,
            stores: Vec::new(),
            numbers: HashMap::new(),
            known: Vec::new(),
            facts: Vec::new(),
            worldly: HashMap::new(),
        };
        table.number(Keys::absent(roles));
        table
    }

    pub(super) fn keys(&self, store: u32) -> &Keys {
        &self.stores[store as usize]
    }

    pub(super) fn roles(&self) -> u8 {
        u8::try_from(self.stores[0].held.len()).unwrap_or(u8::MAX)
    }

    fn number(&mut self, keys: Keys) -> u32 {
        if let Some(number) = self.numbers.get(&keys) {
            return *number;
        }
        let number = u32::try_from(self.stores.len()).unwrap_or(u32::MAX);
        self.stores.push(keys.clone());
        self.numbers.insert(keys, number);
        self.facts.push(None);
        self.known.resize(self.stores.len() * self.stride(), None);
        number
    }

    /// How many calls may be made in one state.
    fn stride(&self) -> usize {
        (usize::from(self.workers) + LATER) * self.program.asks.len()
    }

    fn place(&self, question: Question) -> usize {
        let call = usize::from(question.caller) * self.program.asks.len() + usize::from(question.ask);
        question.store as usize * self.stride() + call
    }

    /// What a call hears, and the state it leads to.
    ///
    /// # Errors
    /// The question, where nobody knows yet.
    pub(super) fn call(&self, question: Question) -> Result<(Heard, u32), Question> {
        self.known[self.place(question)].ok_or(question)
    }

    /// Takes in what the server did.
    pub(super) fn learn(&mut self, question: Question, performed: Performed) {
        let known = self.read(question, performed);
        let place = self.place(question);
        self.known[place] = Some(known);
    }

    /// True when the server did what it did before.
    pub(super) fn agrees(&mut self, question: Question, performed: Performed) -> bool {
        let known = self.read(question, performed);
        self.call(question) == Ok(known)
    }

    fn read(&mut self, question: Question, performed: Performed) -> (Heard, u32) {
        let asks = self.program.asks[usize::from(question.ask)];
        let call = self.program.step(asks).and_then(|step| step.calls.get(asks.index));
        let listener = Listener {
            schema: &self.program.services[asks.service],
            fingerprint: performed.fingerprint,
            now_ms: performed.now_ms,
        };
        let heard = call.map_or(Heard { means: None, author: Author::Untold }, |call| {
            Heard::read(listener, call, &performed.reply, &self.responses)
        });
        (heard, self.number(performed.keys))
    }

    /// Every question that was answered.
    pub(super) fn answered(&self) -> Vec<Question> {
        let calls = self.program.asks.len();
        let known = self.known.iter().enumerate().filter(|(_, known)| known.is_some());
        let question = |place: usize| {
            let (store, call) = (place / self.stride(), place % self.stride());
            Some(Question {
                store: u32::try_from(store).ok()?,
                caller: u8::try_from(call / calls).ok()?,
                ask: u8::try_from(call % calls).ok()?,
            })
        };
        known.filter_map(|(place, _)| question(place)).collect()
    }

    /// Forgets what calls do, for tests of what remembering is worth.
    pub(super) fn forget(&mut self) {
        self.known.fill(None);
        self.facts.fill(None);
    }

    /// The state that an act of nobody leads to; `None` where the act changes nothing.
    pub(super) fn world(&mut self, store: u32, act: Act) -> Option<u32> {
        if let Some(known) = self.worldly.get(&(store, act)) {
            return *known;
        }
        let keys = self.keys(store);
        let changed = match act {
            Act::Expiry(role) => keys.ttl_ms(usize::from(role)).map(|ttl| keys.after(ttl, self.ticks)),
            Act::Evict(role) => keys.held[usize::from(role)].is_some().then(|| keys.without(usize::from(role))),
            Act::Persist(role) => keys.ttl_ms(usize::from(role)).map(|_| keys.for_ever(usize::from(role))),
            _ => None,
        };
        let led = changed.map(|keys| self.number(keys));
        self.worldly.insert((store, act), led);
        led
    }

    /// The state so much later as the TTL of a role's Redis key says in another state.
    pub(super) fn as_much_later(&mut self, store: u32, other: u32, role: u8) -> u32 {
        let passes = self.keys(other).ttl_ms(usize::from(role)).unwrap_or(0);
        let later = self.keys(store).after(passes, self.ticks);
        self.number(later)
    }

    /// What a state means for requests.
    ///
    /// # Errors
    /// A question whose answer is needed first.
    pub(super) fn facts(&mut self, store: u32) -> Result<Facts, Question> {
        if let Some(facts) = self.facts[store as usize] {
            return Ok(facts);
        }
        let program = Rc::clone(&self.program);
        let lock = program.services.iter().any(|schema| is_locked(schema, self.keys(store)));
        let mut facts = Facts { lock, result: None, fails: None, stuck: None, mistaken: None };
        for (number, schema) in program.services.iter().enumerate() {
            let service = u8::try_from(number).unwrap_or(u8::MAX);
            let next = self.request(store, service, self.workers)?;
            match next.heard.means {
                Some(Meaning::Replay) => facts.result = facts.result.or(Some(next.heard.author)),
                Some(Meaning::Conflict) if self.is_stuck(store, service, &next)? => {
                    facts.stuck = facts.stuck.or(Some(service));
                }
                Some(Meaning::Acquired | Meaning::Conflict) => {}
                _ => facts.fails = facts.fails.or(Some(service)),
            }
            if schema.compares_payloads() {
                let other = self.request(store, service, self.workers + 1)?.heard.means;
                let in_use = self.keys(store).held.iter().any(Option::is_some);
                let is_served = other == Some(Meaning::Replay) || (other == Some(Meaning::Acquired) && in_use);
                facts.mistaken = facts.mistaken.or(is_served.then_some(service));
            }
        }
        self.facts[store as usize] = Some(facts);
        Ok(facts)
    }

    /// One more request of a service, until a reply decides.
    pub(super) fn request(&self, store: u32, service: u8, caller: u8) -> Result<Ended, Question> {
        let mut point = self.program.starts[usize::from(service)];
        let mut store = store;
        loop {
            let does = self.program.points[usize::from(point)].does;
            let Does::Call { ask, .. } = does else { break };
            let (heard, led) = self.call(Question { store, caller, ask })?;
            store = led;
            if heard.means != Some(Meaning::Next) {
                return Ok(Ended { heard, store });
            }
            point = Program::leads_to(does, heard.means);
        }
        Ok(Ended { heard: Heard { means: None, author: Author::Untold }, store })
    }

    /// True when a request that was turned away will be for ever: nothing ends, or its asking prolongs what would end.
    fn is_stuck(&mut self, store: u32, service: u8, turned_away: &Ended) -> Result<bool, Question> {
        let role = self.program.services[usize::from(service)].lock_role();
        let conflict = Some(Meaning::Conflict);
        let Some(left) = self.keys(turned_away.store).ttl_ms(role) else {
            return Ok(self.request(turned_away.store, service, self.workers)?.heard.means == conflict);
        };
        if left <= PATIENCE_MS || self.keys(store).ttl_ms(role) != Some(left) {
            return Ok(self.keys(store).ttl_ms(role).is_some_and(|before| left > before));
        }
        let later = self.keys(store).after(PATIENCE_MS, self.ticks);
        let later = self.number(later);
        let again = self.request(later, service, self.workers)?;
        let prolongs = self.keys(again.store).ttl_ms(role).is_none_or(|ttl| ttl > left - PATIENCE_MS);
        Ok(again.heard.means == conflict && prolongs)
    }

    /// True when the lock's Redis key has the same value in both states.
    pub(super) fn same_lock(&self, one: u32, other: u32) -> bool {
        self.same(one, other, self.program.services[0].lock_role())
    }

    /// True when the result's Redis key has the same value in both states.
    pub(super) fn same_result(&self, one: u32, other: u32) -> bool {
        self.same(one, other, self.program.services[0].result_role())
    }

    fn same(&self, one: u32, other: u32, role: usize) -> bool {
        let dump = |store: u32| self.keys(store).held[role].as_ref().map(|held| &held.dump);
        dump(one) == dump(other)
    }
}

fn is_locked(schema: &Schema, keys: &Keys) -> bool {
    match decode::read(schema, schema.lock_role(), &keys.content(schema.lock_role())) {
        Reading::Value(decoded) => schema.values[decoded.case].state == State::InProgress,
        _ => false,
    }
}
