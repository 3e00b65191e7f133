//! What the rounds of one race come to.

use std::time::Duration;

use crate::domain::race::event::{Answer, Event};
use crate::domain::race::latency::Latencies;
use crate::domain::race::strategy::Strategy;
use crate::domain::race::verdict::{Offence, Rule, Ttls, judge};

/// How a race goes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many workers, each on a connection of its own.
    pub concurrency: usize,
    /// How many rounds, each on a fresh idempotency key.
    pub rounds: usize,
    /// The longest pause between the calls of a step.
    pub think_time: Duration,
    /// True when a winner completes at once, without waiting for the others.
    pub overlap: bool,
    /// The handler fails in every n-th round; 0 is never.
    pub fail_every: usize,
}

/// One round as it was played.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// What the workers did.
    pub events: Vec<Event>,
    /// Steps answered in the phases that all workers, or all losers, are released into.
    pub raced: u64,
    /// The time from each such release to the last reply, added up.
    pub released: Duration,
}

/// One schema raced with one strategy.
#[derive(Debug, Clone)]
pub struct Run {
    /// The schema's name.
    pub schema: String,
    /// How the workers went about it.
    pub strategy: Strategy,
    /// How the race went, as played: a strategy can change what was asked.
    pub plan: Plan,
    /// Rounds played.
    pub rounds: usize,
    /// Fewest winners of a round.
    pub winners_min: usize,
    /// Most winners of a round.
    pub winners_max: usize,
    /// Rounds with more than one winner.
    pub rounds_with_many_winners: usize,
    /// Begin steps that found the lock held.
    pub conflicts: u64,
    /// Begin steps that got the stored response.
    pub replays: u64,
    /// Replies that no atomic service gives.
    pub wrong_replies: u64,
    /// Replies that did not come.
    pub lost_replies: u64,
    /// Steps that were answered.
    pub steps: u64,
    /// Steps answered in the phases that all workers, or all losers, are released into.
    pub raced: u64,
    /// The time from each such release to the last reply, added up.
    pub released: Duration,
    /// How long the steps took.
    pub latencies: Latencies,
    /// The first round that cannot have been atomic.
    pub offending: Option<Offending>,
    ttls: Ttls,
}

/// A round that cannot have been atomic.
#[derive(Debug, Clone)]
pub struct Offending {
    /// Which round, from 1.
    pub round: usize,
    /// What the workers did, in the order they started.
    pub events: Vec<Event>,
    /// The pair of events that does not go together.
    pub offence: Offence,
}

impl Run {
    /// A run of which nothing is played yet.
    pub fn new(schema: &str, strategy: Strategy, plan: Plan, ttls: Ttls) -> Self {
        Self {
            schema: schema.to_owned(),
            strategy,
            plan,
            rounds: 0,
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

    /// Judges a round and adds it.
    pub fn add(&mut self, mut round: Round) {
        round.events.sort_by_key(|event| event.start);
        let ruling = judge(&round.events, self.ttls);
        self.winners_min = if self.rounds == 0 { ruling.winners } else { self.winners_min.min(ruling.winners) };
        self.winners_max = self.winners_max.max(ruling.winners);
        self.rounds += 1;
        self.rounds_with_many_winners += usize::from(ruling.winners > 1);
        self.wrong_replies += ruling.offences.iter().filter(|offence| offence.rule != Rule::ManyWinners).count() as u64;
        for event in &round.events {
            self.count(event);
        }
        self.raced += round.raced;
        self.released += round.released;
        if let (None, Some(offence)) = (&self.offending, ruling.offences.first()) {
            self.offending = Some(Offending { round: self.rounds, events: round.events, offence: *offence });
        }
    }

    fn count(&mut self, event: &Event) {
        match event.answer {
            Answer::Conflict => self.conflicts += 1,
            Answer::Replay(_) => self.replays += 1,
            Answer::Lost(_) => {
                self.lost_replies += 1;
                return;
            }
            _ => {}
        }
        self.steps += 1;
        self.latencies.add(event.end - event.start);
    }

    /// True when everything seen can have been atomic.
    pub fn is_atomic(&self) -> bool {
        self.offending.is_none()
    }

    /// `atomic` or `not-atomic`.
    pub fn verdict(&self) -> &'static str {
        if self.is_atomic() { "atomic" } else { "not-atomic" }
    }

    /// Steps answered in a second of the time that all workers, or all losers, were released. A winner that finishes
    /// alone, while the others wait at the barrier, says nothing about throughput and does not count.
    pub fn steps_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let steps = self.raced as f64;
        if self.released.is_zero() { 0.0 } else { steps / self.released.as_secs_f64() }
    }
}
