//! The verdict on a take, derived only from its events.
//!
//! A worker that removes or replaces the lock or result of another worker has overwritten it. An
//! operation with more than one effect is a duplicate. A client's answer is right if it is a
//! response that a handler gave for this operation. It is wrong if that handler's run had no effect
//! although another run had one by then. A client that is rejected while no worker is running is
//! blocked until a TTL expires, or permanently.

use crate::domain::schema::Meaning;
use crate::domain::simulation::history::{Answered, Block, ClientAnswer, Execution, History};
use crate::domain::simulation::verdict::{Excuse, ScenarioVerdict};

/// The verdict on a take, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: ScenarioVerdict,
    /// The number of effects of the operation with the most effects.
    pub(crate) effects: usize,
    /// How long a client waits at most, in milliseconds; `None` if no client waits, or if the wait
    /// never ends.
    pub(crate) blocked_ms: Option<u64>,
    pub(crate) why: String,
    /// Why the verdict is not a failure, although it is bad.
    pub(crate) excuse: Option<Excuse>,
}

impl Judgement {
    /// True if the schema harms a client.
    pub(crate) fn is_failure(&self) -> bool {
        self.verdict.is_bad() && self.excuse.is_none()
    }
}

/// Judges a take by the worst of its events.
pub(crate) fn judge(history: &History) -> Judgement {
    let effects = match history.effects().first() {
        Some((_, times)) => *times,
        None => 0,
    };
    // The order is that of the verdicts, from the worst to the mildest.
    let (verdict, mut why) = if let Some(what) = &history.overwritten {
        (ScenarioVerdict::Overwritten, what.clone())
    } else if let Some(found) = duplicate(history) {
        found
    } else if let Some(found) = wrong_answer(history) {
        found
    } else if let Some(found) = blocked(history) {
        found
    } else if let Some(found) = refused(history) {
        found
    } else {
        let done = if effects == 0 { "nothing was done" } else { "it was done once" };
        (ScenarioVerdict::Safe, format!("{done}, and no client was told otherwise"))
    };
    for note in &history.notes {
        why.push_str("; ");
        why.push_str(note);
    }
    let blocked_ms = history.block.as_ref().and_then(|block| block.ms);
    // A fenced step never overwrites, whatever happens around it.
    let is_excused = verdict.is_bad() && verdict != ScenarioVerdict::Overwritten;
    let excuse = if is_excused { history.excuse } else { None };
    Judgement { verdict, effects, blocked_ms, why, excuse }
}

fn duplicate(history: &History) -> Option<(ScenarioVerdict, String)> {
    let (operation, times) = history.effects().into_iter().find(|(_, times)| *times > 1)?;
    let mut workers = Vec::new();
    for execution in &history.executions {
        if execution.operation == operation && execution.effect {
            workers.push(execution.worker.as_str());
        }
    }
    let times = if times == 2 { "twice".to_owned() } else { format!("{times} times") };
    let why = format!("the {operation} was executed {times}, by {}", workers.join(" and "));
    Some((ScenarioVerdict::Duplicate, why))
}

fn wrong_answer(history: &History) -> Option<(ScenarioVerdict, String)> {
    for answered in &history.answers {
        let ClientAnswer::Done(response) = &answered.answer else { continue };
        let why = match response {
            Some(response) => wrong_response(history, answered, response),
            None => empty_promise(history, answered),
        };
        if let Some(why) = why {
            return Some((ScenarioVerdict::WrongAnswer, why));
        }
    }
    None
}

fn wrong_response(history: &History, answered: &Answered, response: &[u8]) -> Option<String> {
    let operation = answered.operation;
    // Only executions before the answer count: a later one cannot be its source.
    let before = &history.executions[..answered.after];
    let mut source: Option<&Execution> = None;
    let mut doer: Option<&Execution> = None;
    for execution in before {
        if execution.operation != operation {
            continue;
        }
        // Equal responses of several runs say the same. The one that had the effect explains it.
        let explains_better = source.is_none_or(|known| execution.effect && !known.effect);
        if explains_better && execution.response == response {
            source = Some(execution);
        }
        if doer.is_none() && execution.effect {
            doer = Some(execution);
        }
    }
    let Some(source) = source else {
        let other = before.iter().find(|execution| execution.response == response);
        return Some(match other {
            Some(other) => {
                format!(
                    "the client that asked for the {operation} got the response of the {}",
                    other.operation
                )
            }
            None => format!(
                "the client that asked for the {operation} got a response that no handler gave"
            ),
        });
    };
    // The handler's own answer was true for its run, but another run had the effect.
    if source.effect {
        return None;
    }
    let doer = doer?;
    Some(format!(
        "{} told the client that the {operation} was not done, although {} had done it",
        source.worker, doer.worker
    ))
}

fn empty_promise(history: &History, answered: &Answered) -> Option<String> {
    for execution in &history.executions[..answered.after] {
        if execution.operation == answered.operation {
            return None;
        }
    }
    Some(format!(
        "the client that asked for the {} was told that it is done, but it never was",
        answered.operation
    ))
}

fn blocked(history: &History) -> Option<(ScenarioVerdict, String)> {
    let Block { ms, by, reply } = history.block.as_ref()?;
    let what = match by {
        Meaning::Conflict => "is rejected".to_owned(),
        Meaning::Mismatch => "is told that its payload differs".to_owned(),
        _ => format!("gets an error ({reply})"),
    };
    Some(match ms {
        Some(_) => (
            ScenarioVerdict::Blocked,
            format!("no worker is running, but the client {what} until a TTL ends"),
        ),
        None => (
            ScenarioVerdict::Stuck,
            format!(
                "no worker is running, but the client {what} indefinitely, because no TTL ends the \
                lock"
            ),
        ),
    })
}

fn refused(history: &History) -> Option<(ScenarioVerdict, String)> {
    for answered in &history.answers {
        if let ClientAnswer::Error(why) = &answered.answer {
            let why = format!("a request gets an error and leaves nothing behind: {why}");
            return Some((ScenarioVerdict::Refused, why));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAY: &str = "payment of 10";
    const OTHER: &str = "payment of 99";

    fn ran(worker: &str, operation: &'static str, effect: bool) -> Execution {
        Execution {
            worker: worker.to_owned(),
            operation,
            effect,
            response: format!("{worker} {operation}").into_bytes(),
        }
    }

    fn history(executions: Vec<Execution>) -> History {
        History { executions, ..History::default() }
    }

    fn told(mut history: History, operation: &'static str, response: Option<&str>) -> Judgement {
        history
            .answer(operation, ClientAnswer::Done(response.map(|text| text.as_bytes().to_vec())));
        judge(&history)
    }

    #[test]
    fn one_effect_and_its_own_response_are_safe() {
        let once = history(vec![ran("a", PAY, true)]);
        assert_eq!(told(once.clone(), PAY, Some("a payment of 10")).verdict, ScenarioVerdict::Safe);
        assert_eq!(told(once, PAY, None).verdict, ScenarioVerdict::Safe);
        assert_eq!(judge(&History::default()).effects, 0);
    }

    #[test]
    fn a_failed_handler_has_no_effect_and_its_error_is_its_response() {
        let failed = history(vec![ran("a", PAY, false)]);
        assert_eq!(
            told(failed.clone(), PAY, Some("a payment of 10")).verdict,
            ScenarioVerdict::Safe
        );
        let again = history(vec![ran("a", PAY, false), ran("b", PAY, true)]);
        assert_eq!(judge(&again).effects, 1);
        let wrong = told(again, PAY, Some("a payment of 10"));
        assert_eq!(wrong.verdict, ScenarioVerdict::WrongAnswer);
        assert!(wrong.why.contains("was not done, although b"), "{}", wrong.why);
    }

    #[test]
    fn the_same_operation_twice_is_a_duplicate_and_two_operations_are_not() {
        let twice = judge(&history(vec![ran("a", PAY, true), ran("b", PAY, true)]));
        assert_eq!((twice.verdict, twice.effects), (ScenarioVerdict::Duplicate, 2));
        assert!(twice.why.contains("by a and b"), "{}", twice.why);
        assert_eq!(
            judge(&history(vec![ran("a", PAY, true), ran("b", OTHER, true)])).verdict,
            ScenarioVerdict::Safe
        );
    }

    #[test]
    fn the_response_of_another_operation_is_wrong_and_so_is_an_unknown_one() {
        let once = history(vec![ran("a", PAY, true)]);
        for (response, why) in [
            (Some("a payment of 10"), "of the payment of 10"),
            (Some("x"), "no handler gave"),
            (None, "it never was"),
        ] {
            let judged = told(once.clone(), OTHER, response);
            assert_eq!(judged.verdict, ScenarioVerdict::WrongAnswer);
            assert!(judged.why.contains(why), "{}", judged.why);
        }
    }

    #[test]
    fn an_excuse_is_for_what_is_bad_and_not_overwritten() {
        let excuse = Some(Excuse::Environment);
        let once = History { excuse, ..history(vec![ran("a", PAY, true)]) };
        assert_eq!(judge(&once).excuse, None);
        let twice = History { excuse, ..history(vec![ran("a", PAY, true), ran("b", PAY, true)]) };
        assert!(judge(&twice).excuse == excuse && !judge(&twice).is_failure());
        let overwritten = History { overwritten: Some("a replaced".to_owned()), ..twice };
        let judged = judge(&overwritten);
        assert_eq!((judged.verdict, judged.effects), (ScenarioVerdict::Overwritten, 2));
        assert!(judged.is_failure());
    }

    #[test]
    fn a_later_execution_does_not_justify_an_earlier_answer() {
        let mut early = history(vec![]);
        early.answer(PAY, ClientAnswer::Done(None));
        early.executions.push(ran("a", PAY, true));
        assert_eq!(judge(&early).verdict, ScenarioVerdict::WrongAnswer);
    }

    #[test]
    fn a_block_ends_or_does_not() {
        let block = |ms| History {
            block: Some(Block { ms, by: Meaning::Conflict, reply: "CONFLICT".into() }),
            notes: vec!["and more".into()],
            ..history(vec![ran("a", PAY, true)])
        };
        let blocked = judge(&block(Some(30_000)));
        assert_eq!((blocked.verdict, blocked.blocked_ms), (ScenarioVerdict::Blocked, Some(30_000)));
        assert!(blocked.why.ends_with("; and more"), "{}", blocked.why);
        assert_eq!(
            (judge(&block(None)).verdict, judge(&block(None)).blocked_ms),
            (ScenarioVerdict::Stuck, None)
        );
    }

    #[test]
    fn an_error_alone_is_refused_and_hides_nothing_worse() {
        let mut failed = history(vec![ran("a", PAY, true)]);
        failed.answer(PAY, ClientAnswer::Error("ERR".into()));
        assert_eq!(judge(&failed).verdict, ScenarioVerdict::Refused);
        failed.executions.push(ran("b", PAY, true));
        assert_eq!(judge(&failed).verdict, ScenarioVerdict::Duplicate);
    }
}
