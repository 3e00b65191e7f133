//! Schedules that chance makes, played on the server from beginning to end: what they harm, the exploration knows.

use super::alike::{BUILT_IN, explored, rules};
use super::performer::Performer;
use crate::support::wire::ask;
use idemctl::domain::exploration::{Author, Budget, Does, Fault, Program};
use idemctl::domain::schema::Meaning;
use idemctl::domain::step::reply::Listener;
use idemctl::explore::Limits;

const WORKERS: u8 = 3;

/// How many schedules are played with all schemas.
const SCHEDULES: usize = 10_000;

const MOST: &str = "expiry=2,crash=1,lost=1,fail=1,evict=1";

/// One schedule under way.
struct Walk<'a> {
    performer: &'a mut Performer,
    points: Vec<u8>,
    used: Budget,
    effects: Vec<u8>,
    /// What it harmed, with the faults by then.
    harmed: Vec<(&'static str, Budget)>,
}

impl Walk<'_> {
    /// Plays until nobody has anything to do.
    fn play(&mut self, chance: &mut fastrand::Rng) {
        for redis_key in self.performer.redis_keys.clone() {
            ask(&mut self.performer.connection, &[b"DEL", &redis_key[..]]);
        }
        loop {
            let at_work: Vec<_> = (0..WORKERS).filter(|worker| self.does(*worker) != Does::Nothing).collect();
            let Some(worker) = chance.choice(at_work) else { break };
            let fault = chance.choice([Fault::Expiry, Fault::Crash, Fault::Lost, Fault::Fail, Fault::Evict]);
            match fault.filter(|_| chance.u8(..5) == 0) {
                Some(fault) => self.befalls(worker, fault, chance),
                None => self.goes_on(worker),
            }
        }
    }

    fn does(&self, worker: u8) -> Does {
        self.performer.program.points[usize::from(self.points[usize::from(worker)])].does
    }

    fn befalls(&mut self, worker: u8, fault: Fault, chance: &mut fastrand::Rng) {
        let Some(used) = self.used.with(fault, MOST.parse().unwrap()) else { return };
        let point = self.performer.program.points[usize::from(self.points[usize::from(worker)])];
        let slot = chance.usize(..self.performer.redis_keys.len());
        match (fault, point.does, point.fails_to) {
            (Fault::Expiry, ..) => {
                let Ok(passes) = u64::try_from(self.performer.pttl(slot)) else { return };
                self.passes(passes);
            }
            (Fault::Evict, ..) => {
                let redis_key = self.performer.redis_keys[slot].clone();
                ask(&mut self.performer.connection, &[b"DEL", &redis_key[..]]);
            }
            (Fault::Crash, ..) if !point.waits => self.points[usize::from(worker)] = 0,
            (Fault::Lost, Does::Call { .. }, _) => {
                self.goes_on(worker);
                self.points[usize::from(worker)] = 0;
            }
            (Fault::Fail, _, Some(to)) => self.points[usize::from(worker)] = to,
            _ => return,
        }
        self.used = used;
    }

    /// Time passes on the server: every TTL is so much shorter.
    fn passes(&mut self, ms: u64) {
        for slot in 0..self.performer.redis_keys.len() {
            let Ok(left) = u64::try_from(self.performer.pttl(slot)) else { continue };
            // Two TTLs that were set at one moment end at one moment, whatever the calls between them took.
            let left = left.saturating_sub(ms);
            let left = if left < 3_000 { 0 } else { left }.to_string();
            let redis_key = self.performer.redis_keys[slot].clone();
            ask(&mut self.performer.connection, &[b"PEXPIRE", &redis_key[..], left.as_bytes()]);
        }
    }

    fn goes_on(&mut self, worker: u8) {
        let does = self.does(worker);
        self.points[usize::from(worker)] = match does {
            Does::Nothing => return,
            Does::Effect { then } => {
                self.effects.push(worker);
                if self.effects.len() == 2 {
                    self.harmed.push(("one-effect", self.used));
                }
                then
            }
            Does::Call { ask: number, .. } => Program::leads_to(does, self.hears(worker, number)),
        };
    }

    /// Sends a call, and looks at whose response comes back.
    fn hears(&mut self, worker: u8, number: u8) -> Option<Meaning> {
        let told = self.performer.send(worker, number);
        let asks = self.performer.program.asks[usize::from(number)];
        let call = &self.performer.program.step(asks).unwrap().calls[asks.index];
        let listener = Listener { schema: self.performer.schema(), fingerprint: "", now_ms: 0 };
        let means = listener.recognise(call, &told).map(|known| known.means);
        let whole = told.stored().filter(|_| means == Some(Meaning::Replay));
        if let Some(carried) = whole {
            let responses = self.performer.responses();
            let of = responses.iter().filter(|(response, _)| response == carried).map(|(_, author)| *author);
            let is_true = |author: Author| match author {
                Author::Effect(of) => self.effects.contains(&of),
                Author::Failure(_) => self.effects.is_empty(),
                _ => false,
            };
            if !of.into_iter().any(is_true) {
                self.harmed.push(("true-replay", self.used));
            }
        }
        means
    }
}

#[test]
fn schedules_of_chance_show_no_harm_that_is_excluded() {
    let mut chance = fastrand::Rng::with_seed(1);
    let mut harms = 0;
    for name in BUILT_IN {
        let mut performer = Performer::of(name, WORKERS);
        let rules = rules(&performer, WORKERS, MOST.parse().unwrap());
        let known = explored(&mut performer, rules, Limits { most_states: usize::MAX, forgets: false }).found;
        for schedule in 0..SCHEDULES.div_ceil(BUILT_IN.len()) {
            let points = vec![performer.program.starts[0]; usize::from(WORKERS)];
            let used = Budget::default();
            let mut walk = Walk { performer: &mut performer, points, used, effects: Vec::new(), harmed: Vec::new() };
            walk.play(&mut chance);
            for (harm, faults) in &walk.harmed {
                let is_known =
                    known.iter().any(|found| found.invariant.name == *harm && found.faults.is_within(*faults));
                assert!(is_known, "{name}, schedule {schedule}: {harm} with {faults}");
            }
            harms += walk.harmed.len();
        }
    }
    assert!(harms > 100, "chance finds {harms} harms, of which the exploration knows all");
}
