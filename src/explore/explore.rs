//! Explores one program: runs the search, and asks a server for the effects of calls.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::reply_table::{Callers, ReplyTable};
use super::search::{FoundViolation, Search, SearchLimits, SearchNeeds};
use super::successors::Rules;
use crate::domain::exploration::{MetReplies, ReachedGoals, ReachedState, SearchCoverage};
use crate::explore::reply_table::{StateServer, UnknownReply};

/// The results of exploring a program.
#[derive(Debug, Clone)]
pub struct ExploredProgram {
    /// The violations, each with a minimal set of faults.
    pub found: Vec<FoundViolation>,
    /// The extent of the search.
    pub covered: SearchCoverage,
    /// A call that had another effect when it was executed again.
    pub unsteady: Option<UnknownReply>,
    /// Each state of the Redis keys that was reached, with minimal faults and a shortest schedule.
    pub reached: Vec<ReachedState>,
    /// For each call of the program, the replies that the server gave.
    pub met: Vec<MetReplies>,
    /// The goals that schedules without a fault reached.
    pub goals: ReachedGoals,
}

/// Explores a program.
///
/// # Errors
/// The server fails to execute a call.
pub async fn explore<S: StateServer>(
    rules: Rules,
    callers: Callers,
    limits: SearchLimits,
    server: &mut S,
) -> Result<ExploredProgram, S::Error> {
    let replies = ReplyTable::new(Rc::clone(&rules.program), rules.workers, callers);
    let mut search = Search::new(rules, replies, limits);
    // The search itself never waits: it names the call that it needs, and later expands the same
    // state again.
    let mut server_calls = 0;
    let mut searched = Duration::ZERO;
    loop {
        let since = Instant::now();
        let needs = search.advance();
        searched += since.elapsed();
        match needs {
            SearchNeeds::Nothing => break,
            SearchNeeds::Pause => {
                if server.is_interrupted().await {
                    break;
                }
            }
            SearchNeeds::Reply(unknown) => {
                let before = search.replies.keys(unknown.keys);
                let effect = server.execute_in(before, unknown.caller, unknown.call).await?;
                search.replies.learn(unknown, effect);
                server_calls += 1;
            }
        }
    }
    // The check runs after the search, because an unsteady call is rare and the check takes as long
    // as all calls before.
    let unsteady = find_unsteady_call(&mut search.replies, server).await?;
    let is_complete = search.is_complete();
    // States that were not expanded lead to an unknown number of schedules.
    let schedules = if is_complete { Some(search.count_schedules()) } else { None };
    let covered = SearchCoverage {
        complete: is_complete,
        states: search.states(),
        transitions: search.transitions(),
        schedules,
        depth: search.depth(),
        server_calls,
        bytes_a_state: search.bytes_per_state(),
        search_us: u64::try_from(searched.as_micros()).unwrap_or(u64::MAX),
    };
    Ok(ExploredProgram {
        found: minimal_violations(&search),
        covered,
        unsteady,
        reached: search.reached(),
        met: search.replies.met().to_vec(),
        goals: search.goals,
    })
}

/// Executes every known call again, in another order, and returns the first one that has another
/// effect now.
///
/// The search assumes that a call in a given state always has the same effect. A step that depends
/// on chance, or on a clock that cannot be stopped, would invalidate all conclusions.
async fn find_unsteady_call<S: StateServer>(
    replies: &mut ReplyTable,
    server: &mut S,
) -> Result<Option<UnknownReply>, S::Error> {
    let mut known = replies.known();
    // In the original order, an effect that depends on the call before it would repeat.
    fastrand::shuffle(&mut known);
    for call in known {
        let effect = server.execute_in(replies.keys(call.keys), call.caller, call.call).await?;
        if !replies.agrees(call, effect) {
            return Ok(Some(call));
        }
    }
    Ok(None)
}

/// The violations that no subset of their faults already causes.
fn minimal_violations(search: &Search) -> Vec<FoundViolation> {
    let violations = search.violations();
    let mut minimal = Vec::new();
    for (number, found) in &violations {
        let mut is_minimal = true;
        for (other_number, other) in &violations {
            if other_number == number
                && other.faults != found.faults
                && other.faults.is_within(found.faults)
            {
                is_minimal = false;
            }
        }
        if is_minimal {
            minimal.push((*number, found.clone()));
        }
    }
    minimal.sort_by_key(|(number, found)| (*number, found.faults.total(), found.acts.len()));
    minimal.into_iter().map(|(_, found)| found).collect()
}
