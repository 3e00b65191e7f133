//! What the rounds of one race come to.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::race::event::{RaceAct, RaceAnswer, RaceEvent};
use crate::domain::race::latency::Latencies;
use crate::domain::race::strategy::Strategy;
use crate::domain::race::verdict::{Offence, RaceRule, Ttls, judge};

#[derive(Debug, Clone)]
pub struct RacePlan {
    /// How many workers, each on a connection of its own.
    pub(crate) concurrency: usize,
    pub(crate) rounds: usize,
    /// The longest pause between the calls of a step.
    pub(crate) think_time: Duration,
    /// True when a winner completes at once, without waiting for the others.
    pub(crate) overlap: bool,
    /// The handler fails in every n-th round; 0 is never.
    pub(crate) fail_every: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    pub(crate) events: Vec<RaceEvent>,
    /// Steps that were answered after a release of all workers, or of all losers.
    pub(crate) raced: u64,
    /// The time from each such release to the last reply, added up.
    pub(crate) released: Duration,
    /// How long it took, by idemctl's clock.
    pub(crate) lasted: Duration,
    /// True when a lock that nobody raced for was still there afterwards.
    pub(crate) has_witness: bool,
}

impl Round {
    /// True when a lock or a result may have ended, or was removed by somebody, within the round: nothing that was seen
    /// then tells whether the steps are atomic.
    fn is_void(&self, ttls: Ttls) -> bool {
        !self.has_witness || self.lasted >= ttls.lock.min(ttls.result)
    }
}

#[derive(Debug, Clone)]
pub struct RaceRun {
    pub(crate) schema: String,
    pub(crate) strategy: Strategy,
    /// How the race went, as played: a strategy can change what was asked.
    pub(crate) plan: RacePlan,
    pub(crate) rounds: usize,
    /// Rounds among them in which a lock ended or vanished. They are judged by nobody, and count nowhere else.
    pub(crate) void_rounds: usize,
    /// Begin steps, those of retries aside, that were answered in the rounds that are judged.
    pub(crate) begins: u64,
    pub(crate) winners_min: usize,
    pub(crate) winners_max: usize,
    pub(crate) rounds_with_many_winners: usize,
    pub(crate) conflicts: u64,
    pub(crate) replays: u64,
    /// Replies that no atomic service gives.
    pub(crate) wrong_replies: u64,
    pub(crate) lost_replies: u64,
    pub(crate) steps: u64,
    /// Steps that were answered after a release of all workers, or of all losers.
    pub(crate) raced: u64,
    /// The time from each such release to the last reply, added up.
    pub(crate) released: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) offending: Option<Offending>,
    ttls: Ttls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceVerdict {
    /// Nothing was seen that an atomic service does not do, in as many begins as there were. A rarer flaw stays unseen.
    #[strum(serialize = "atomic")]
    NoneSeen,
    NotAtomic,
    Void,
}

as_str!(RaceVerdict);

#[derive(Debug, Clone)]
pub(crate) struct Offending {
    /// Which round, from 1.
    pub(crate) round: usize,
    pub(crate) events: Vec<RaceEvent>,
    pub(crate) offence: Offence,
    /// The most workers that acquired the lock before it ended.
    pub(crate) winners: usize,
}

impl RaceRun {
    pub(crate) fn new(schema: &str, strategy: Strategy, plan: RacePlan, ttls: Ttls) -> Self {
        Self {
            schema: schema.to_owned(),
            strategy,
            plan,
            rounds: 0,
            void_rounds: 0,
            begins: 0,
            winners_min: 0,
            winners_max: 0,
            rounds_with_many_winners: 0,
            conflicts: 0,
            replays: 0,
            wrong_replies: 0,
            lost_replies: 0,
            steps: 0,
            raced: 0,
            released: Duration::ZERO,
            latencies: Latencies::new(),
            offending: None,
            ttls,
        }
    }

    /// Judges a round, unless it is void, and adds it.
    pub(crate) fn add(&mut self, mut round: Round) {
        self.rounds += 1;
        if round.is_void(self.ttls) {
            self.void_rounds += 1;
            return;
        }
        // The rules compare the events in the order of their starts, and the timeline shows them so.
        round.events.sort_by_key(|event| event.start);
        let ruling = judge(&round.events, self.ttls);
        self.winners_min =
            if self.judged() == 1 { ruling.winners } else { self.winners_min.min(ruling.winners) };
        self.winners_max = self.winners_max.max(ruling.winners);
        self.rounds_with_many_winners += usize::from(ruling.winners > 1);
        self.wrong_replies +=
            ruling.offences.iter().filter(|offence| offence.rule != RaceRule::ManyWinners).count()
                as u64;
        for event in &round.events {
            self.count(event);
        }
        self.raced += round.raced;
        self.released += round.released;
        if let (None, Some(offence)) = (&self.offending, ruling.offences.first()) {
            let winners = ruling.winners;
            self.offending = Some(Offending {
                round: self.rounds,
                events: round.events,
                offence: *offence,
                winners,
            });
        }
    }

    fn count(&mut self, event: &RaceEvent) {
        match event.answer {
            RaceAnswer::Conflict => self.conflicts += 1,
            RaceAnswer::Replay(_) => self.replays += 1,
            RaceAnswer::Lost(_) => {
                self.lost_replies += 1;
                return;
            }
            _ => {}
        }
        self.steps += 1;
        self.begins += u64::from(event.act == RaceAct::Begin);
        self.latencies.add(event.end - event.start);
    }

    pub(crate) fn judged(&self) -> usize {
        self.rounds - self.void_rounds
    }

    pub(crate) fn verdict(&self) -> RaceVerdict {
        match self.offending {
            Some(_) => RaceVerdict::NotAtomic,
            None if self.judged() == 0 => RaceVerdict::Void,
            None => RaceVerdict::NoneSeen,
        }
    }

    /// Steps answered in a second of the time that all workers, or all losers, were released. A winner that finishes
    /// alone, while the others wait at the barrier, says nothing about throughput and does not count.
    pub(crate) fn steps_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let steps = self.raced as f64;
        if self.released.is_zero() { 0.0 } else { steps / self.released.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTLS: Ttls = Ttls { lock: Duration::from_secs(30), result: Duration::from_secs(60) };

    /// Two workers get the lock of one key: what no atomic service lets happen.
    fn two_winners() -> Round {
        let acquired = |worker| RaceEvent {
            worker,
            act: RaceAct::Begin,
            answer: RaceAnswer::Acquired,
            start: 0,
            end: 10,
        };
        Round { events: vec![acquired(1), acquired(2)], has_witness: true, ..Round::default() }
    }

    fn run(rounds: impl IntoIterator<Item = Round>) -> RaceRun {
        let plan = RacePlan {
            concurrency: 2,
            rounds: 9,
            think_time: Duration::ZERO,
            overlap: false,
            fail_every: 0,
        };
        let mut run = RaceRun::new("own", Strategy::Schema, plan, TTLS);
        rounds.into_iter().for_each(|round| run.add(round));
        run
    }

    #[test]
    fn a_round_in_which_a_lock_may_have_ended_accuses_nobody() {
        let stopped = |lasted| Round { lasted, ..two_winners() };
        let robbed = Round { has_witness: false, ..two_winners() };
        for (round, verdict) in [
            (two_winners(), RaceVerdict::NotAtomic),
            (stopped(Duration::from_millis(29_999)), RaceVerdict::NotAtomic),
            (stopped(Duration::from_secs(30)), RaceVerdict::Void),
            (robbed, RaceVerdict::Void),
        ] {
            assert_eq!(run([round]).verdict(), verdict);
        }
    }

    #[test]
    fn void_rounds_are_counted_and_nothing_in_them_is() {
        let begun = RaceEvent {
            worker: 1,
            act: RaceAct::Begin,
            answer: RaceAnswer::Acquired,
            start: 0,
            end: 10,
        };
        let clean = Round { events: vec![begun], has_witness: true, ..Round::default() };
        let run = run([Round { has_witness: false, ..two_winners() }, clean.clone(), clean]);
        assert_eq!((run.rounds, run.void_rounds, run.judged()), (3, 1, 2));
        assert_eq!((run.begins, run.steps, run.winners_min, run.winners_max), (2, 2, 1, 1));
        assert_eq!(run.verdict(), RaceVerdict::NoneSeen);
    }
}
