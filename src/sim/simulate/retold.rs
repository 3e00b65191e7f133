//! Whether a history that was played went as it was explored.

use super::worker_calls::Met;
use crate::domain::exploration::{Author, Heard};
use crate::domain::schema::Meaning;
use crate::domain::simulation::History;

/// What is different between what a call was told in the exploration and what it came to; `None` where nothing is.
pub(super) fn same_answer(heard: Heard, met: Option<&Met>, history: &History, names: &[String]) -> Option<String> {
    let means = match met {
        None => Some(Meaning::Next),
        Some(met) => met.means(),
    };
    if means != heard.means {
        let word = |means: Option<Meaning>| means.map_or("an unknown reply", |means| means.as_str()).to_owned();
        return Some(format!("played, the reply means {}; explored, {}", word(means), word(heard.means)));
    }
    let (Author::Effect(worker), Some(Met::Said(said))) = (heard.author, met) else { return None };
    let name = names.get(usize::from(worker))?;
    let own = history.executions.iter().find(|execution| execution.worker == *name && execution.effect);
    let is_own = own.is_some_and(|execution| said.carried.as_ref() == Some(&execution.response));
    // A response that came before its effect is the harm itself: nothing tells whose it is when it is played.
    (own.is_some() && !is_own).then(|| format!("played, the response is not that of {name}"))
}
