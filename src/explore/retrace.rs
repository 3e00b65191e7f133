//! Replays one schedule step by step.

use std::rc::Rc;

use super::names::Names;
use super::reply_table::{Callers, ReplyTable};
use super::states::SearchState;
use super::successors::{Rules, find_successors};
use crate::domain::exploration::{
    Act, AttributedReply, Invariant, KeysState, NextAction, Transition,
};
use crate::explore::reply_table::{StateServer, UnknownReply};

/// One step of a schedule.
#[derive(Debug, Clone)]
pub(crate) struct TracedStep {
    pub(crate) act: Act,
    /// The action of the worker at its position; [`NextAction::Nothing`] if no worker acts.
    pub(crate) action: NextAction,
    pub(crate) reply: Option<AttributedReply>,
    /// The state of the Redis keys before the step, and after it.
    pub(crate) before: KeysState,
    pub(crate) after: KeysState,
    /// The worker that holds the lock after the step.
    pub(crate) holder: Option<u8>,
    /// The invariants that this step violates.
    pub(crate) violated: Vec<&'static Invariant>,
}

/// Replays a schedule. The inner result is an error message if the schedule is impossible.
///
/// # Errors
/// The server fails to execute a call.
pub(crate) async fn retrace<S: StateServer>(
    rules: &Rules,
    callers: Callers,
    beginning: &[u8],
    acts: &[Act],
    server: &mut S,
) -> Result<Result<Vec<TracedStep>, String>, S::Error> {
    let replies = ReplyTable::new(Rc::clone(&rules.program), rules.workers, callers);
    let state = SearchState::new(beginning);
    let mut trace = ScheduleTrace { rules, replies, state, last: None, steps: Vec::new() };
    for (number, act) in acts.iter().enumerate() {
        // The step is tried again after each call that the server must execute first.
        loop {
            match trace.apply(*act) {
                Ok(true) => break,
                Ok(false) => {
                    return Ok(Err(format!(
                        "step {} ({}) cannot happen there",
                        number + 1,
                        act.word()
                    )));
                }
                Err(unknown) => {
                    let before = trace.replies.keys(unknown.keys);
                    let effect = server.execute_in(before, unknown.caller, unknown.call).await?;
                    trace.replies.learn(unknown, effect);
                }
            }
        }
    }
    Ok(Ok(trace.steps))
}

struct ScheduleTrace<'a> {
    rules: &'a Rules,
    replies: ReplyTable,
    state: SearchState,
    last: Option<Transition>,
    steps: Vec<TracedStep>,
}

impl ScheduleTrace<'_> {
    /// Applies one step; false if the step is impossible.
    fn apply(&mut self, act: Act) -> Result<bool, UnknownReply> {
        match act {
            Act::Next(service) | Act::Other(service) => self.add_request(act, service),
            _ => self.add_step(act),
        }
    }

    fn add_step(&mut self, act: Act) -> Result<bool, UnknownReply> {
        let mut successors = Vec::new();
        let names = Names::IN_ORDER;
        find_successors(self.rules, &mut self.replies, self.state, names, &mut successors)?;
        // An act determines the successor: no act leads from one state to two.
        let Some(successor) = successors.into_iter().find(|successor| successor.act == act) else {
            return Ok(false);
        };
        let transition = successor.transition;
        let action = match act.worker() {
            Some(worker) => self.rules.position(&self.state, worker).action,
            None => NextAction::Nothing,
        };
        let mut violated = Vec::new();
        for invariant in self.rules.program.invariants.iter().copied() {
            // A violation that only a later request shows is reported with that request.
            if (invariant.is_violated)(&transition) && (invariant.shown_by)(&transition).is_none() {
                violated.push(invariant);
            }
        }
        self.steps.push(TracedStep {
            act,
            action,
            reply: transition.reply,
            before: self.replies.keys(self.state.keys).clone(),
            after: self.replies.keys(successor.state.keys).clone(),
            holder: successor.state.holder(),
            violated,
        });
        self.state = successor.state;
        self.last = Some(transition);
        Ok(true)
    }

    /// Adds one more request, which no worker sends.
    fn add_request(&mut self, act: Act, service: u8) -> Result<bool, UnknownReply> {
        if usize::from(service) >= self.rules.program.services.len() {
            return Ok(false);
        }
        let caller = self.rules.workers + u8::from(act == Act::Other(service));
        let outcome = self.replies.request(self.state.keys, service, caller)?;
        let mut violated = Vec::new();
        if let Some(last) = &self.last {
            for invariant in self.rules.program.invariants.iter().copied() {
                if (invariant.is_violated)(last) && (invariant.shown_by)(last) == Some(act) {
                    violated.push(invariant);
                }
            }
        }
        self.steps.push(TracedStep {
            act,
            action: NextAction::Nothing,
            reply: Some(outcome.reply),
            before: self.replies.keys(self.state.keys).clone(),
            after: self.replies.keys(outcome.keys).clone(),
            holder: self.state.holder(),
            violated,
        });
        self.state.keys = outcome.keys;
        Ok(true)
    }
}
