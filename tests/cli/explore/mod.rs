//! `idemctl explore`: what it finds is there, what it shows was played, and each invariant has a mutant that breaks it.

mod accepted;
mod advice;
mod causes;
mod command;
mod coverage;
mod document;
mod earlier;
mod frontiers;
mod hashes;
mod histories;
mod judgement;
mod mutants;
mod payloads;
mod planted;
mod real_faults;
mod stories;
mod ttls;
mod two_commands;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::simulate::variant::{home, run};
use crate::support::Run;

/// One of the usual numbers of faults. With it, explore explores once, without assumptions.
pub const USUAL: &str = "expiry=2";

/// The harms of one exploration: for each broken invariant the minimal faults, each with the number of steps.
pub type Frontier = BTreeMap<String, Vec<(String, u64)>>;

/// The usual faults but for those that `real_faults` is about.
pub const EARLIER_FAULTS: &str = "late-fail=0,resend=0,delay=0";

/// Explores on a throw-away server.
pub fn explore(words: &[&str]) -> Run {
    run(home().path(), &[&["explore"], words, &["--sandbox"]].concat())
}

/// The one exploration of a JSON document.
pub fn only(run: &Run) -> Value {
    let schemas = run.json()["schemas"].as_array().unwrap().clone();
    assert_eq!(schemas.len(), 1);
    schemas[0].clone()
}

pub fn frontier(exploration: &Value) -> Frontier {
    let mut frontier = Frontier::new();
    for harm in exploration["harms"].as_array().unwrap() {
        let faults = harm["minimal_faults"].as_object().unwrap().iter();
        let faults: Vec<_> = faults.map(|(fault, count)| format!("{fault}={count}")).collect();
        let harms = frontier.entry(harm["invariant"].as_str().unwrap().to_owned()).or_default();
        harms.push((faults.join(" "), harm["steps"].as_u64().unwrap()));
        assert_eq!(harm["played_as_explored"], true, "{harm:#}");
    }
    frontier
}

/// What one schema comes to.
pub fn explored(words: &[&str]) -> Frontier {
    frontier(&only(&explore(&[words, &["-o", "json"]].concat())))
}

/// A frontier as it is written in a test.
pub fn ways(ways: &[(&str, &[(&str, u64)])]) -> Frontier {
    let owned = |way: &(&str, u64)| (way.0.to_owned(), way.1);
    ways.iter().map(|(harm, ways)| ((*harm).to_owned(), ways.iter().map(owned).collect())).collect()
}

/// The size of an exploration and its frontier, one violation per line.
pub fn explored_as_text(exploration: &Value) -> String {
    let count = |name: &str| exploration[name].as_f64().unwrap();
    let mut text = format!(
        "{}: {} states, {} transitions, {} schedules",
        exploration["schema"].as_str().unwrap(),
        count("states"),
        count("transitions"),
        count("schedules"),
    );
    for harm in exploration["harms"].as_array().unwrap() {
        text += &format!("\n  {} by {}", harm["invariant"], harm["minimal_faults"]);
        text += &format!(": {}", harm["token"].as_str().unwrap());
    }
    text
}
