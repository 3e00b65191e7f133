//! `simulate` and `explore` agree. A scenario counts the effects and the overwritten records of real workers; `explore` judges
//! the same schedule, which this test reads from the timeline, by its invariants.

use std::collections::BTreeMap;

use serde_json::Value;

use super::variant::{home, matrix, run};

/// The verbs of the steps in a timeline.
const STEPS: [&str; 4] = ["begins (", "renews its lock (", "completes (", "releases ("];

/// The replies after which a request has ended.
const REJECTED: [&str; 3] = ["(conflict)", "(mismatch)", "(fail)"];

/// What explore does not know: a handler without effect, an older release, and a client that hangs up before its lock is
/// released.
const UNKNOWN: [&str; 2] = ["which has no effect", "sets its result"];

/// A schedule of explore, while it is read from the events of one take.
#[derive(Default)]
struct Schedule {
    acts: Vec<String>,
    /// The schema of each worker.
    workers: Vec<String>,
    /// The number of each actor, and whether it has been rejected.
    actors: BTreeMap<String, (usize, bool)>,
}

/// The Redis key of the result, by its number; the lock has number 0, as in all built-in schemas.
fn result_key(schema: &str) -> usize {
    usize::from(schema.starts_with("event-"))
}

impl Schedule {
    /// The act of a worker, which is new if the actor is.
    fn act(&mut self, letter: char, actor: &str, schema: &str, take: &str) {
        if !self.actors.contains_key(actor) {
            let other = take.strip_prefix("a lock of ").or(take.strip_prefix("a result of "));
            let is_others = actor == "worker 1" && other.is_some();
            let service = if is_others { other.unwrap_or_default() } else { schema };
            self.actors.insert(actor.to_owned(), (self.workers.len(), false));
            self.workers.push(service.to_owned());
        }
        let (number, _) = self.actors[actor];
        self.acts.push(format!("{letter}{number}"));
    }

    /// Adds an event; `None` if explore does not know it.
    fn add(&mut self, event: &Value, schema: &str) -> Option<()> {
        let [actor, step, take] = ["actor", "step", "take"].map(|field| event[field].as_str());
        let (actor, step, take) = (actor?, step?, take?);
        let reply = event["reply"].as_str().unwrap_or_default();
        if UNKNOWN.iter().any(|unknown| step.contains(unknown)) {
            return None;
        }
        let is_call = STEPS.iter().any(|verb| step.starts_with(verb));
        if is_call && self.acts.last().is_some_and(|act| act == "hangs up") {
            // The next request comes after a release, or from a retry.
            self.acts.pop();
            if step.starts_with("releases") {
                return None;
            }
        }
        if actor == "another client" {
            if self.acts.last().is_none_or(|act| act != "m0") {
                self.acts.push("m0".to_owned());
            }
        } else if is_call && reply != "Redis cannot be reached" {
            // A client asks again when the lock has expired.
            if self.actors.get(actor).is_some_and(|(_, rejected)| *rejected) {
                self.actors.remove(actor);
                self.acts.push("x0".to_owned());
            }
            self.act('s', actor, schema, take);
            if let Some((_, rejected)) = self.actors.get_mut(actor) {
                *rejected = REJECTED.iter().any(|meaning| reply.ends_with(meaning));
            }
        } else if let Some(cut_off) = step.strip_suffix(" is cut off from Redis") {
            self.act('c', cut_off, schema, take);
        } else {
            let letters = [("executes", 'e'), ("fails", 'f'), ("gives up", 'g'), ("crashes", 'c')];
            for (verb, letter) in letters {
                if step.starts_with(verb) {
                    self.act(letter, actor, schema, take);
                }
            }
            let result = format!("x{}", result_key(schema));
            let worlds = [
                ("the lock's TTL ends", "x0"),
                ("the result's TTL ends", &result),
                ("the lock loses its TTL", "p0"),
                ("memory is full: the lock is evicted", "v0"),
                ("the master dies, and the replica is promoted", "o0"),
                ("hangs up", "hangs up"),
            ];
            self.acts.extend(
                worlds.iter().filter(|(what, _)| step == *what).map(|(_, act)| (*act).to_owned()),
            );
        }
        Some(())
    }

    /// As `explore --replay` takes it, with one more request in the end, which shows what is wrong by then.
    fn token(&self, schema: &str) -> String {
        // Services are numbered in the order of the workers.
        let last = usize::from(self.workers.first().is_some_and(|first| first != schema));
        format!("1:{}:{}.n{last}", self.workers.join(","), self.acts.join("."))
    }
}

/// The schedules of a cell that explore can play.
fn tokens(cell: &Value) -> Vec<String> {
    let schema = cell["schema"].as_str().unwrap();
    let mut takes: Vec<(&Value, Option<Schedule>)> = Vec::new();
    for event in cell["timeline"].as_array().unwrap() {
        if takes.last().is_none_or(|(take, _)| **take != event["take"]) {
            takes.push((&event["take"], Some(Schedule::default())));
        }
        let (_, schedule) = takes.last_mut().unwrap();
        if schedule.as_mut().is_some_and(|schedule| schedule.add(event, schema).is_none()) {
            *schedule = None;
        }
    }
    takes.iter().filter_map(|(_, schedule)| Some(schedule.as_ref()?.token(schema))).collect()
}

/// The invariants that explore finds violated in each of these schedules.
fn violated(tokens: &[String]) -> Vec<Vec<String>> {
    let mut words = vec!["explore", "--sandbox", "-o", "json"];
    for token in tokens {
        words.extend(["--replay", token]);
    }
    let explored = run(home().path(), &words);
    assert!(explored.code < 2, "{}", explored.all());
    let names = |harms: &Value| {
        let harms = harms.as_array().unwrap().iter();
        harms.map(|harm| harm["invariant"].as_str().unwrap().to_owned()).collect()
    };
    let schedules = explored.json()["schemas"].as_array().unwrap().clone();
    assert_eq!(schedules.len(), tokens.len());
    schedules.iter().map(|schedule| names(&schedule["harms"])).collect()
}

/// Odd TTLs, slots, and a service that executes without Redis are not explored.
const NOT_EXPLORED: [&str; 3] = ["clock-of-ttl", "cluster-slots", "store-down"];

#[test]
fn explore_says_of_each_played_schedule_what_simulate_counted() {
    let mut all = Vec::new();
    let mut cells = Vec::new();
    for cell in matrix() {
        let tokens = tokens(&cell.0);
        if !tokens.is_empty() && !NOT_EXPLORED.contains(&cell.0["scenario"].as_str().unwrap()) {
            cells.push((cell, all.len()..all.len() + tokens.len()));
            all.extend(tokens);
        }
    }
    assert!(cells.len() > 100, "only {} cells are compared", cells.len());
    let violated = violated(&all);
    for (cell, range) in cells {
        let found = violated[range.clone()].concat();
        let is = |invariants: &[&str]| found.iter().any(|name| invariants.contains(&&**name));
        let verdict = cell.0["verdict"].as_str().unwrap();
        let place = format!("{found:?} by {:#?}: {cell}", &all[range]);
        assert_eq!(is(&["one-effect"]), cell.0["effects"].as_u64().unwrap() > 1, "{place}");
        let overwrites = is(&["owner-only", "result-kept", "result-not-replaced"]);
        assert_eq!(overwrites, verdict == "overwritten", "{place}");
        assert_eq!(is(&["lock-ends"]), verdict == "stuck", "{place}");
        // Explore asks nothing about payloads of a schema that does not compare them.
        if cell.0["excuse"] != "not-compared" {
            let is_wrong = is(&["true-replay", "no-false-done", "payloads-apart"]);
            assert_eq!(is_wrong, verdict == "wrong-answer", "{place}");
        }
    }
}
