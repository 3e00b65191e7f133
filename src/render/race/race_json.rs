//! A race as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::timeline::excerpt;
use crate::domain::race::{Offending, RaceEvent, RaceRun};
use crate::domain::record::age::millis;

/// The run of one schema with one strategy.
pub fn run(run: &RaceRun) -> Value {
    json!({
        "schema": run.schema,
        "strategy": run.strategy.as_str(),
        "concurrency": run.plan.concurrency,
        "rounds": run.rounds,
        "void_rounds": run.void_rounds,
        "begins": run.begins,
        "overlap": run.plan.overlap,
        "think_time_ms": millis(run.plan.think_time),
        "fail_every": run.plan.fail_every,
        "verdict": run.verdict().as_str(),
        "winners_min": run.winners_min,
        "winners_max": run.winners_max,
        "rounds_with_many_winners": run.rounds_with_many_winners,
        "conflicts": run.conflicts,
        "replays": run.replays,
        "wrong_replies": run.wrong_replies,
        "lost_replies": run.lost_replies,
        "operations": run.steps,
        "ops_per_second": run.steps_per_second().round(),
        "latency_us": {
            "p50": micros(run.latencies.quantile(0.5)),
            "p95": micros(run.latencies.quantile(0.95)),
            "p99": micros(run.latencies.quantile(0.99)),
            "max": micros(run.latencies.max()),
        },
        "first_offence": run.offending.as_ref().map(offence),
    })
}

/// The two events that contradict atomicity, the later one first, and the events around them.
fn offence(offending: &Offending) -> Value {
    let mut pair = vec![event(&offending.events[offending.offence.event])];
    if let Some(against) = offending.offence.against {
        pair.push(event(&offending.events[against]));
    }
    let mut timeline = Vec::new();
    for index in excerpt(offending) {
        timeline.push(event(&offending.events[index]));
    }
    json!({
        "round": offending.round,
        "rule": offending.offence.rule.as_str(),
        "pair": pair,
        "timeline": timeline,
    })
}

fn event(event: &RaceEvent) -> Value {
    json!({
        "worker": event.worker,
        "step": event.act.as_str(),
        "reply": event.answer.as_str(),
        "detail": event.answer.detail(),
        "start_us": event.start / 1000,
        "end_us": event.end / 1000,
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
