//! The result of all rounds of a race.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::race::event::{RaceAct, RaceAnswer, RaceEvent};
use crate::domain::race::latency::Latencies;
use crate::domain::race::strategy::Strategy;
use crate::domain::race::verdict::{Offence, RaceRule, Ttls, judge};

/// How a race is executed.
#[derive(Debug, Clone)]
pub struct RacePlan {
    /// The number of workers, each with its own connection.
    pub(crate) concurrency: usize,
    pub(crate) rounds: usize,
    /// The longest pause between the calls of a step.
    pub(crate) think_time: Duration,
    /// True if a winner completes at once, without waiting for the other workers.
    pub(crate) overlap: bool,
    /// The handler fails in every n-th round; 0 means never.
    pub(crate) fail_every: usize,
}

/// The events of one round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    pub(crate) events: Vec<RaceEvent>,
    /// Steps that were answered after all workers, or all losers, were released at the same time.
    pub(crate) raced: u64,
    /// The sum of the times from each such release to the last reply.
    pub(crate) released: Duration,
    /// The duration of the round by idemctl's clock.
    pub(crate) lasted: Duration,
    /// True if the witness lock, for which no worker races, still existed after the round.
    pub(crate) has_witness: bool,
}

impl Round {
    /// True if a lock or a result may have expired or been removed within the round. Its events
    /// then do not show whether the steps are atomic.
    fn is_void(&self, ttls: Ttls) -> bool {
        !self.has_witness || self.lasted >= ttls.lock.min(ttls.result)
    }
}

/// The judged rounds of a race.
#[derive(Debug, Clone)]
pub struct RaceRun {
    pub(crate) schema: String,
    pub(crate) strategy: Strategy,
    /// How the race was executed. A strategy can change the requested plan.
    pub(crate) plan: RacePlan,
    /// All rounds, including void ones.
    pub(crate) rounds: usize,
    /// Rounds in which a lock expired or disappeared. They are not judged, and no other counter
    /// includes them.
    pub(crate) void_rounds: usize,
    /// Begin steps, except retries, that were answered in the judged rounds.
    pub(crate) begins: u64,
    pub(crate) winners_min: usize,
    pub(crate) winners_max: usize,
    pub(crate) rounds_with_many_winners: usize,
    pub(crate) conflicts: u64,
    pub(crate) replays: u64,
    /// Replies that an atomic service never gives.
    pub(crate) wrong_replies: u64,
    pub(crate) lost_replies: u64,
    pub(crate) steps: u64,
    /// Steps that were answered after all workers, or all losers, were released at the same time.
    pub(crate) raced: u64,
    /// The sum of the times from each such release to the last reply.
    pub(crate) released: Duration,
    pub(crate) latencies: Latencies,
    /// The first offence of the race.
    pub(crate) offending: Option<Offending>,
    ttls: Ttls,
    /// True if begin takes the lock before it looks for the result.
    locks_first: bool,
}

/// The verdict on a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceVerdict {
    /// No event contradicts an atomic service, among this number of begins. A rarer flaw may remain
    /// undetected.
    #[strum(serialize = "atomic")]
    NoneSeen,
    NotAtomic,
    /// No round could be judged.
    Void,
}

as_str!(RaceVerdict);

/// The first round that cannot have been atomic.
#[derive(Debug, Clone)]
pub(crate) struct Offending {
    /// The number of the round, from 1.
    pub(crate) round: usize,
    pub(crate) events: Vec<RaceEvent>,
    pub(crate) offence: Offence,
    /// The largest number of workers that acquired the lock before it ended.
    pub(crate) winners: usize,
}

impl RaceRun {
    pub(crate) fn new(
        schema: &str,
        strategy: Strategy,
        plan: RacePlan,
        ttls: Ttls,
        locks_first: bool,
    ) -> Self {
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
            locks_first,
        }
    }

    /// Judges a round, unless it is void, and adds it.
    pub(crate) fn add(&mut self, mut round: Round) {
        self.rounds += 1;
        if round.is_void(self.ttls) {
            self.void_rounds += 1;
            return;
        }
        // The rules compare events in the order of their starts, and the timeline shows this order.
        round.events.sort_by_key(|event| event.start);
        let ruling = judge(&round.events, self.ttls, self.locks_first);
        // The first judged round sets the minimum, which is 0 before it.
        self.winners_min =
            if self.judged() == 1 { ruling.winners } else { self.winners_min.min(ruling.winners) };
        self.winners_max = self.winners_max.max(ruling.winners);
        self.rounds_with_many_winners += usize::from(ruling.winners > 1);
        for offence in &ruling.offences {
            // `ManyWinners` is counted per round, not per reply.
            self.wrong_replies += u64::from(offence.rule != RaceRule::ManyWinners);
        }
        for event in &round.events {
            self.count(event);
        }
        self.raced += round.raced;
        self.released += round.released;
        // The first example is enough to show the flaw.
        if self.offending.is_none()
            && let Some(offence) = ruling.offences.first()
        {
            self.offending = Some(Offending {
                round: self.rounds,
                events: round.events,
                offence: *offence,
                winners: ruling.winners,
            });
        }
    }

    fn count(&mut self, event: &RaceEvent) {
        match event.answer {
            RaceAnswer::Conflict => self.conflicts += 1,
            RaceAnswer::Replay(_) => self.replays += 1,
            RaceAnswer::Lost(_) => {
                // A lost reply has no latency, and it is unknown whether the step was executed.
                self.lost_replies += 1;
                return;
            }
            _ => {}
        }
        self.steps += 1;
        self.begins += u64::from(event.act == RaceAct::Begin);
        self.latencies.add(event.end - event.start);
    }

    /// The number of judged rounds.
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

    /// Answered steps per second, during the time in which all workers or all losers were released.
    /// A winner that finishes alone while the others wait does not count, because it does not show
    /// throughput.
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

    /// Two workers acquire the lock of one key, which no atomic service allows.
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
        let mut run = RaceRun::new("own", Strategy::Schema, plan, TTLS, false);
        rounds.into_iter().for_each(|round| run.add(round));
        run
    }

    #[test]
    fn a_round_in_which_a_lock_may_have_ended_is_void() {
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
    fn void_rounds_are_counted_but_their_events_are_not() {
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
