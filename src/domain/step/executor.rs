//! Executes a step of a service: sends its calls one after another, until a reply decides.
//!
//! A manual step, a race, a scenario, an exploration and the trial of a schema all execute the
//! service's own steps here. They differ in how they send a call: over a connection, in a
//! guarded transaction, or with requests that were packed ahead of time.

use super::inputs::StepInputs;
use super::reply::{ReplyMatch, StepReply};
use crate::domain::schema::{Action, Call, Meaning};

/// One call of a step that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepCall<'a> {
    pub(crate) inputs: &'a StepInputs<'a>,
    pub(crate) call: &'a Call,
    /// The index of the call among the executed calls, from 0.
    pub(crate) index: usize,
}

impl StepCall<'_> {
    /// The words that are sent: a command, or EVAL with the script's text, KEYS and ARGV.
    ///
    /// They are built on demand, because a race packs its requests before it starts the clock.
    pub(crate) fn words(&self) -> Vec<Vec<u8>> {
        self.inputs.words(self.call)
    }

    /// The record's Redis keys that the call names. A client of a cluster uses them to find the
    /// node.
    pub(crate) fn redis_keys(&self) -> Vec<Vec<u8>> {
        match &self.call.action {
            Action::Script { keys, .. } => {
                keys.iter().map(|template| self.inputs.word(template)).collect()
            }
            Action::Command(command) => {
                let record = self.inputs.schema.redis_keys(self.inputs.key);
                let words = command.iter().map(|template| self.inputs.word(template));
                words.filter(|word| record.contains(word)).collect()
            }
        }
    }
}

/// Sends the calls of a step.
pub(crate) trait CallSender {
    /// An error that ends the step before a reply decides, such as a lost connection.
    type Error;

    /// Sends a call and returns its reply.
    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, Self::Error>;

    /// Records a reply and its meaning before the next call is sent; `None` if the schema does
    /// not list the reply.
    fn note(&mut self, _call: StepCall<'_>, _reply: &StepReply, _matched: Option<ReplyMatch<'_>>) {}
}

/// The outcome of a step whose calls were sent until one decided.
#[derive(Debug)]
pub(crate) enum ExecutedStep<'c> {
    /// The reply to the call with this index decided.
    Decided { reply: StepReply, matched: ReplyMatch<'c>, index: usize },
    /// The schema does not list the reply to the call with this index.
    Unlisted { reply: StepReply, index: usize },
    /// Every reply left the decision to the next call, and no call remains.
    Undecided,
}

impl ExecutedStep<'_> {
    /// The meaning of the last reply; `None` if the schema does not list it.
    pub(crate) fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Decided { matched, .. } => Some(matched.meaning()),
            Self::Unlisted { .. } => None,
            Self::Undecided => Some(Meaning::Next),
        }
    }
}

/// Executes a step's calls, or some of them, for a request.
///
/// # Errors
/// The first error of the sender. The later calls are not sent.
pub(crate) async fn execute<'c, P: CallSender>(
    inputs: &StepInputs<'_>,
    calls: &'c [Call],
    sender: &mut P,
) -> Result<ExecutedStep<'c>, P::Error> {
    let matcher = inputs.matcher();
    for (index, call) in calls.iter().enumerate() {
        let step_call = StepCall { inputs, call, index };
        // Never continue after an error: it may be unknown whether this call was executed.
        let reply = sender.send_call(step_call).await?;
        let matched = matcher.match_reply(call, &reply);
        sender.note(step_call, &reply, matched);
        match matched {
            // The service would fail here. Continuing would execute calls that it never sends in
            // this state.
            None => return Ok(ExecutedStep::Unlisted { reply, index }),
            Some(matched) if matched.leaves_it_to_next_call() => {}
            Some(matched) => return Ok(ExecutedStep::Decided { reply, matched, index }),
        }
    }
    Ok(ExecutedStep::Undecided)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::domain::record::Response;
    use crate::domain::samples::from_toml;
    use crate::domain::schema::Schema;

    const TOML: &str = r#"
format = 2
name = "orders"
keys = { record = "orders:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "running"
equals = "running"
state = "in-progress"

[[begin.call]]
command = ["SET", "{record}", "running", "NX"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [{ word = "running", means = "conflict", when = { record = "running" } }]
"#;

    /// Replies that were recorded, in order; after the last one, an error.
    struct Recorded {
        replies: Vec<StepReply>,
        sent: Vec<Vec<Vec<u8>>>,
        noted: Vec<Option<Meaning>>,
    }

    impl CallSender for Recorded {
        type Error = &'static str;

        async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, &'static str> {
            self.sent.push(call.words());
            self.replies.get(call.index).cloned().ok_or("the connection is lost")
        }

        fn note(&mut self, _: StepCall<'_>, _: &StepReply, matched: Option<ReplyMatch<'_>>) {
            self.noted.push(matched.map(|matched| matched.meaning()));
        }
    }

    fn schema() -> Schema {
        from_toml(TOML)
    }

    fn text(word: &str) -> StepReply {
        StepReply::Text(word.into())
    }

    /// Executes begin with these replies, and returns the meaning of the last reply, and the
    /// sender.
    fn begin(replies: Vec<StepReply>) -> (Result<Option<Meaning>, &'static str>, Recorded) {
        let schema = schema();
        let response = Response::default();
        let inputs = StepInputs::new(&schema, b"1", "owner", &response);
        let mut recorded = Recorded { replies, sent: Vec::new(), noted: Vec::new() };
        let executed = execute(&inputs, schema.begin_calls(), &mut recorded);
        let executed = executed.now_or_never().expect("recorded replies are there at once");
        (executed.map(|executed| executed.meaning()), recorded)
    }

    #[test]
    fn the_first_reply_that_decides_ends_the_step() {
        let (executed, recorded) = begin(vec![text("OK"), text("running")]);
        assert_eq!(executed, Ok(Some(Meaning::Acquired)));
        assert_eq!(recorded.sent.len(), 1, "the second call is not sent");
    }

    #[test]
    fn a_reply_that_leaves_the_decision_to_the_next_call_is_followed() {
        let (executed, recorded) = begin(vec![StepReply::Nil, text("running")]);
        assert_eq!(executed, Ok(Some(Meaning::Conflict)));
        assert_eq!(recorded.noted, [Some(Meaning::Next), Some(Meaning::Conflict)]);
        assert_eq!(recorded.sent[1], [b"GET".to_vec(), b"orders:1".to_vec()]);
    }

    #[test]
    fn an_unlisted_reply_and_an_error_end_the_step() {
        let (unlisted, recorded) = begin(vec![StepReply::Integer(7), text("running")]);
        assert_eq!((unlisted, recorded.sent.len()), (Ok(None), 1));
        assert_eq!(begin(vec![StepReply::Nil]).0, Err("the connection is lost"));
    }

    #[test]
    fn calls_that_all_leave_it_to_the_next_one_decide_nothing() {
        let schema = schema();
        let response = Response::default();
        let inputs = StepInputs::new(&schema, b"1", "owner", &response);
        let replies = vec![StepReply::Nil];
        let mut recorded = Recorded { replies, sent: Vec::new(), noted: Vec::new() };
        let executed = execute(&inputs, &schema.begin_calls()[..1], &mut recorded).now_or_never();
        assert!(matches!(executed, Some(Ok(ExecutedStep::Undecided))));
    }
}
