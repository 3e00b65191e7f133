//! The exploration of one program: the search, and a server that is asked what calls do.

use std::time::{Duration, Instant};

use super::perform::{Perform, Question};
use super::places::Table;
use super::rules::Rules;
use super::search::{Needs, Search};
use crate::domain::exploration::{Act, Author, Budget, Covered, Invariant, Reached, invariants};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub most_states: usize,
    /// For tests: nothing that the server did is remembered beyond one state.
    pub forgets: bool,
}

/// A harm with a minimal set of faults that leads to it, and a shortest way.
#[derive(Debug, Clone)]
pub struct Found {
    pub invariant: &'static Invariant,
    pub faults: Budget,
    /// The point at which each worker begins.
    pub beginning: Vec<u8>,
    pub acts: Vec<Act>,
}

#[derive(Debug, Clone)]
pub struct Explored {
    pub found: Vec<Found>,
    pub covered: Covered,
    /// A step that did something else the second time.
    pub unsteady: Option<Question>,
    /// Each state of the Redis keys that was reached, with minimal faults and a shortest way.
    pub reached: Vec<Reached>,
}

/// Explores a program, where `responses` are those that workers give and scripts see the time pass when it `ticks`.
///
/// # Errors
/// The server's.
pub async fn explore<P: Perform>(
    rules: Rules,
    responses: Vec<(Vec<u8>, Author)>,
    ticks: bool,
    limits: Limits,
    server: &mut P,
) -> Result<Explored, P::Error> {
    let table = Table::new(std::rc::Rc::clone(&rules.program), rules.workers, responses, ticks);
    let mut search = Search::new(rules, table, limits.most_states);
    search.forgets = limits.forgets;
    let (mut server_calls, mut searched) = (0, Duration::ZERO);
    loop {
        let since = Instant::now();
        let needs = search.advance();
        searched += since.elapsed();
        match needs {
            Needs::End => break,
            Needs::Breath if server.is_over().await => break,
            Needs::Breath => {}
            Needs::Answer(question) => {
                let Question { store, caller, ask } = question;
                let performed = server.perform(search.table.keys(store), caller, ask).await?;
                search.learn(question, performed);
                server_calls += 1;
            }
        }
    }
    let unsteady = again(&mut search.table, server).await?;
    let covered = Covered {
        complete: search.is_complete(),
        states: search.states(),
        transitions: search.transitions(),
        schedules: search.is_complete().then(|| search.schedules()),
        depth: search.depth(),
        server_calls,
        bytes_a_state: search.bytes_a_state(),
        search_us: u64::try_from(searched.as_micros()).unwrap_or(u64::MAX),
    };
    Ok(Explored { found: frontier(&search), covered, unsteady, reached: search.reached() })
}

/// Asks the server everything again, in another order; the first question that has another answer now.
async fn again<P: Perform>(table: &mut Table, server: &mut P) -> Result<Option<Question>, P::Error> {
    let mut answered = table.answered();
    fastrand::shuffle(&mut answered);
    for question in answered {
        let performed = server.perform(table.keys(question.store), question.caller, question.ask).await?;
        if !table.agrees(question, performed) {
            return Ok(Some(question));
        }
    }
    Ok(None)
}

/// The harms for which fewer faults are not enough.
fn frontier(search: &Search) -> Vec<Found> {
    let harms: Vec<_> = search.harms().collect();
    let is_minimal = |number: usize, faults: Budget| {
        !harms.iter().any(|(other, fewer, ..)| *other == number && *fewer != faults && fewer.is_within(faults))
    };
    let mut found: Vec<_> = harms
        .iter()
        .filter(|(number, faults, ..)| is_minimal(*number, *faults))
        .map(|(number, faults, beginning, acts)| {
            let invariant = &invariants::ALL[*number];
            (*number, Found { invariant, faults: *faults, beginning: beginning.clone(), acts: acts.clone() })
        })
        .collect();
    found.sort_by_key(|(number, found)| (*number, found.faults.total(), found.acts.len()));
    found.into_iter().map(|(_, found)| found).collect()
}
