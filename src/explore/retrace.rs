//! One history again, step by step.

use super::here::{self, Step};
use super::perform::{Perform, Question};
use super::places::Table;
use super::rules::Rules;
use super::state::State;
use crate::domain::exploration::{Act, Author, Does, Heard, Invariant, Keys, Moment, invariants};

/// One step of a history.
#[derive(Debug, Clone)]
pub(crate) struct Traced {
    pub(crate) act: Act,
    /// What the acting worker does where it stood; [`Does::Nothing`] for what no worker does.
    pub(crate) does: Does,
    pub(crate) heard: Option<Heard>,
    /// What stands at the Redis keys before and after it.
    pub(crate) before: Keys,
    pub(crate) keys: Keys,
    /// Whose lock stands after it.
    pub(crate) holder: Option<u8>,
    /// What this step breaks.
    pub(crate) broken: Vec<&'static Invariant>,
}

/// Goes through a history; an error in words where it cannot happen.
///
/// # Errors
/// The server's.
pub(crate) async fn retrace<P: Perform>(
    rules: &Rules,
    responses: Vec<(Vec<u8>, Author)>,
    ticks: bool,
    beginning: &[u8],
    acts: &[Act],
    server: &mut P,
) -> Result<Result<Vec<Traced>, String>, P::Error> {
    let table = Table::new(std::rc::Rc::clone(&rules.program), rules.workers, responses, ticks);
    let mut way = Way { rules, table, state: State::new(beginning), last: None, traced: Vec::new() };
    for (number, act) in acts.iter().enumerate() {
        loop {
            match way.go(*act) {
                Ok(true) => break,
                Ok(false) => return Ok(Err(format!("step {} ({}) cannot happen there", number + 1, act.word()))),
                Err(question) => {
                    let Question { store, caller, ask } = question;
                    let performed = server.perform(way.table.keys(store), caller, ask).await?;
                    way.table.learn(question, performed);
                }
            }
        }
    }
    Ok(Ok(way.traced))
}

struct Way<'a> {
    rules: &'a Rules,
    table: Table,
    state: State,
    last: Option<Moment>,
    traced: Vec<Traced>,
}

impl Way<'_> {
    /// Goes one step; false where the step cannot happen.
    fn go(&mut self, act: Act) -> Result<bool, Question> {
        match act {
            Act::Next(service) | Act::Other(service) => self.request(act, service),
            _ => self.step(act),
        }
    }

    fn step(&mut self, act: Act) -> Result<bool, Question> {
        let mut steps = Vec::new();
        here::steps(self.rules, &mut self.table, &self.state, &mut steps)?;
        let Some(Step { state, moment, .. }) = steps.into_iter().find(|step| step.act == act) else {
            return Ok(false);
        };
        let does = act.worker().map_or(Does::Nothing, |worker| self.rules.point(&self.state, worker).does);
        // What the next request shows is broken when the next request shows it.
        let is_broken = |invariant: &&Invariant| (invariant.broken)(&moment) && (invariant.shown_by)(&moment).is_none();
        let broken = invariants::ALL.iter().filter(is_broken).collect();
        self.traced.push(Traced {
            act,
            does,
            heard: moment.heard,
            before: self.table.keys(self.state.store).clone(),
            keys: self.table.keys(state.store).clone(),
            holder: state.holder(),
            broken,
        });
        (self.state, self.last) = (state, Some(moment));
        Ok(true)
    }

    /// One more request, which the state does not count.
    fn request(&mut self, act: Act, service: u8) -> Result<bool, Question> {
        if usize::from(service) >= self.rules.program.services.len() {
            return Ok(false);
        }
        let caller = self.rules.workers + u8::from(act == Act::Other(service));
        let ended = self.table.request(self.state.store, service, caller)?;
        let shows = |invariant: &&Invariant| {
            self.last.is_some_and(|moment| (invariant.broken)(&moment) && (invariant.shown_by)(&moment) == Some(act))
        };
        self.traced.push(Traced {
            act,
            does: Does::Nothing,
            heard: Some(ended.heard),
            before: self.table.keys(self.state.store).clone(),
            keys: self.table.keys(ended.store).clone(),
            holder: self.state.holder(),
            broken: invariants::ALL.iter().filter(shows).collect(),
        });
        self.state.store = ended.store;
        Ok(true)
    }
}
