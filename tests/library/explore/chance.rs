//! Schedules that chance makes, played on the server from beginning to end, by the test and then by
//! the workers of `sim`: what they harm, the exploration knows.

use serde_json::Value;

use super::alike::{explored, rules};
use super::performer::Performer;
use crate::support::BUILT_IN;
use crate::support::wire::ask;
use crate::support::{Runs, idemctl, program};
use idemctl::domain::exploration::{Act, Fault, FaultBudget, NextAction, ResponseAuthor};
use idemctl::domain::schema::Meaning;
use idemctl::domain::step::reply::{ReplyMatcher, StepReply};
use idemctl::explore::SearchLimits;

const WORKERS: u8 = 3;

/// How many schedules are played with all schemas.
const SCHEDULES: usize = 10_000;

const MOST: &str = "expiry=2,delay=0,crash=1,lost=1,resend=1,fail=1,late-fail=1,give-up=0,evict=1";

/// Of so many schedules workers play one: a schedule takes them sixty round trips. With
/// IDEMCTL_EVERY_SCHEDULE=1 they play all, for a minute and more.
const PLAYED_OF: usize = 10;

/// How many schedules one run of the binary plays.
const AT_ONCE: usize = 500;

/// TTLs less far apart than this were set at one moment, whatever the calls between them took, in
/// milliseconds.
const AT_ONE_MOMENT: u64 = 3_000;

/// One schedule under way.
struct Walk<'a> {
    performer: &'a mut Performer,
    points: Vec<u8>,
    acts: Vec<Act>,
    used: FaultBudget,
    effects: Vec<u8>,
    /// What it harmed, with the faults by then.
    harmed: Vec<(&'static str, FaultBudget)>,
}

impl<'a> Walk<'a> {
    fn new(performer: &'a mut Performer) -> Self {
        let points = vec![performer.program.starts[0]; usize::from(WORKERS)];
        let (acts, used) = (Vec::new(), FaultBudget::default());
        Self { performer, points, acts, used, effects: Vec::new(), harmed: Vec::new() }
    }

    /// Plays until nobody has anything to do.
    fn play(&mut self, chance: &mut fastrand::Rng) {
        for redis_key in self.performer.redis_keys.clone() {
            ask(&mut self.performer.connection, &[b"DEL", &redis_key[..]]);
        }
        loop {
            let at_work: Vec<_> =
                (0..WORKERS).filter(|worker| self.does(*worker) != NextAction::Nothing).collect();
            let Some(worker) = chance.choice(at_work) else { break };
            let fault = chance.choice([
                Fault::Expiry,
                Fault::Crash,
                Fault::Lost,
                Fault::Resend,
                Fault::Fail,
                Fault::LateFail,
                Fault::Evict,
            ]);
            match fault.filter(|_| chance.u8(..5) == 0) {
                Some(fault) => self.befalls(worker, fault, chance),
                None => {
                    let act = self.goes_on(worker);
                    self.acts.push(act);
                }
            }
        }
    }

    fn does(&self, worker: u8) -> NextAction {
        self.performer.program.positions[usize::from(self.points[usize::from(worker)])].action
    }

    fn befalls(&mut self, worker: u8, fault: Fault, chance: &mut fastrand::Rng) {
        let Some(used) = self.used.with(fault, MOST.parse().unwrap()) else { return };
        let point = self.performer.program.positions[usize::from(self.points[usize::from(worker)])];
        let role = chance.usize(..self.performer.redis_keys.len());
        let act = match (fault, point.action, point.fails_to) {
            (Fault::Expiry, ..) => {
                let Some(passes) = self.left(role) else { return };
                let ends = |role: &usize| {
                    self.left(*role).is_some_and(|left| left.abs_diff(passes) < AT_ONE_MOMENT)
                };
                let first = (0..role).find(ends).unwrap_or(role);
                self.passes(passes);
                Act::Expiry(number(first))
            }
            (Fault::Evict, ..) => {
                let redis_key = self.performer.redis_keys[role].clone();
                if ask(&mut self.performer.connection, &[b"DEL", &redis_key[..]])
                    == StepReply::Integer(0)
                {
                    return;
                }
                Act::Evict(number(role))
            }
            (Fault::Crash, ..) if !point.is_waiting => {
                self.points[usize::from(worker)] = 0;
                Act::Crash(worker)
            }
            (Fault::Lost, NextAction::Call { .. }, _) => {
                self.goes_on(worker);
                self.points[usize::from(worker)] = 0;
                Act::Lost(worker)
            }
            (Fault::Resend, NextAction::Call { .. }, _) => {
                self.goes_on(worker);
                self.points[usize::from(worker)] = point.resends_at.unwrap();
                Act::Resend(worker)
            }
            (Fault::LateFail, ..) if point.late_fails_to.is_some() => {
                self.points[usize::from(worker)] = point.late_fails_to.unwrap();
                Act::LateFail(worker)
            }
            (Fault::Fail, _, Some(to)) => {
                self.points[usize::from(worker)] = to;
                Act::Fail(worker)
            }
            _ => return,
        };
        self.acts.push(act);
        self.used = used;
    }

    /// The TTL of a role's Redis key; `None` where the key has none, or is not there.
    fn left(&mut self, role: usize) -> Option<u64> {
        u64::try_from(self.performer.pttl(role)).ok()
    }
    /// Time passes on the server: every TTL is so much shorter.
    fn passes(&mut self, ms: u64) {
        for role in 0..self.performer.redis_keys.len() {
            let Some(left) = self.left(role) else { continue };
            let left = left.saturating_sub(ms);
            let left = if left < AT_ONE_MOMENT { 0 } else { left }.to_string();
            let redis_key = self.performer.redis_keys[role].clone();
            ask(&mut self.performer.connection, &[b"PEXPIRE", &redis_key[..], left.as_bytes()]);
        }
    }

    fn goes_on(&mut self, worker: u8) -> Act {
        let does = self.does(worker);
        let (to, act) = match does {
            NextAction::Nothing => unreachable!("whoever is at work has something to do"),
            NextAction::Effect { then } => {
                self.effects.push(worker);
                if self.effects.len() == 2 {
                    self.harmed.push(("one-effect", self.used));
                }
                (then, Act::Effect(worker))
            }
            NextAction::Call { number, .. } => {
                (does.follow(self.hears(worker, number)), Act::Call(worker))
            }
        };
        self.points[usize::from(worker)] = to;
        act
    }

    /// The schedule as a token, which the binary plays again.
    fn token(&self) -> String {
        let name = &self.performer.schema().name;
        let acts: Vec<_> = self.acts.iter().map(|act| act.word()).collect();
        format!("1:{}:{}", [&name[..]; WORKERS as usize].join(","), acts.join("."))
    }

    /// Sends a call, and looks at whose response comes back.
    fn hears(&mut self, worker: u8, number: u8) -> Option<Meaning> {
        let told = self.performer.send(worker, number);
        let asks = self.performer.program.calls[usize::from(number)];
        let call = &self.performer.program.step(asks).unwrap().calls[asks.index];
        let matcher = ReplyMatcher {
            schema: self.performer.schema(),
            fingerprint: "",
            owner: b"",
            now_ms: 0,
        };
        let means = matcher.match_reply(call, &told).map(|matched| matched.meaning());
        let whole = told.stored().filter(|_| means == Some(Meaning::Replay));
        if let Some(carried) = whole {
            let responses = self.performer.responses();
            let of = responses
                .iter()
                .filter(|(response, _)| response == carried)
                .map(|(_, author)| *author);
            let is_true = |author: ResponseAuthor| match author {
                ResponseAuthor::Effect(of) => self.effects.contains(&of),
                ResponseAuthor::Failure(_) => self.effects.is_empty(),
                _ => false,
            };
            if !of.into_iter().any(is_true) {
                self.harmed.push(("true-replay", self.used));
            }
        }
        means
    }
}

fn number(role: usize) -> u8 {
    u8::try_from(role).unwrap()
}

/// Lets the workers of `sim` play schedules; gives what the binary says of each.
fn played_by_workers(tokens: &[&str]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let mut command = idemctl(home.path());
    command.env("PATH", program().parent().unwrap()).args(["explore", "--sandbox", "-o", "json"]);
    tokens.iter().for_each(|token| _ = command.args(["--replay", token]));
    let run = command.run();
    assert!(matches!(run.code, 0 | 1), "{}", run.all());
    run.json()["schemas"].as_array().unwrap().clone()
}

#[test]
#[ignore = "long: 10,000 random schedules"]
fn schedules_of_chance_show_no_harm_that_is_excluded() {
    let mut chance = fastrand::Rng::with_seed(1);
    let (mut harms, mut told) = (0, 0);
    for name in BUILT_IN {
        let mut performer = Performer::of(name, WORKERS);
        let rules = rules(&performer, WORKERS, MOST.parse().unwrap());
        let known = explored(
            &mut performer,
            rules,
            SearchLimits { max_states: usize::MAX, forgets: false },
        )
        .found;
        let is_known = |harm: &str, faults: FaultBudget| {
            known.iter().any(|found| found.invariant.name == harm && found.faults.is_within(faults))
        };
        let mut schedules = Vec::new();
        for schedule in 0..SCHEDULES.div_ceil(BUILT_IN.len()) {
            let mut walk = Walk::new(&mut performer);
            walk.play(&mut chance);
            for (harm, faults) in &walk.harmed {
                assert!(
                    is_known(harm, *faults),
                    "{name}, schedule {schedule}: {harm} with {faults}"
                );
            }
            harms += walk.harmed.len();
            schedules.push((walk.token(), walk.used));
        }
        let plays_all = std::env::var_os("IDEMCTL_EVERY_SCHEDULE").is_some();
        let schedules: Vec<_> =
            schedules.iter().step_by(if plays_all { 1 } else { PLAYED_OF }).collect();
        for some in schedules.chunks(AT_ONCE) {
            let tokens: Vec<_> = some.iter().map(|(token, _)| token.as_str()).collect();
            let played = played_by_workers(&tokens);
            assert_eq!(played.len(), some.len());
            for (played, (token, used)) in played.iter().zip(some) {
                assert_eq!(played["replay"]["deviates"], Value::Null, "{token}");
                for harm in played["harms"].as_array().unwrap() {
                    let harm = harm["invariant"].as_str().unwrap();
                    assert!(is_known(harm, *used), "{harm} by {token}");
                    told += 1;
                }
            }
        }
    }
    assert!(
        harms > 100 && told > 10,
        "chance finds {harms} harms, and workers {told}: the exploration knows all"
    );
}
