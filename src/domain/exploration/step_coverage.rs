//! Which calls, replies and formats an exploration met, and which goals it reached without a fault.
//!
//! An exploration in which no request can execute breaks no invariant. What it met shows how much a
//! result without violations is worth.

use strum::{IntoStaticStr, VariantArray};

use super::keys_state::KeysState;
use super::program::{ProgramCall, WorkerProgram};
use crate::domain::as_str::as_str;
use crate::domain::record::{Reading, decode};
use crate::domain::schema::{First, Meaning, Reply, ReplyPattern, Schema, Step};
use crate::domain::step::StepKind;

/// Something that must happen in a schedule without any fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Goal {
    /// A worker gets the lock, and has its effect.
    Effect,
    /// A worker stores its result.
    StoredResult,
    /// A request gets the stored result.
    Replay,
    /// A worker releases a lock without a result.
    ReleasedLock,
}

as_str!(Goal);

impl Goal {
    /// The goal as a noun with its article.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Effect => "an effect",
            Self::StoredResult => "a stored result",
            Self::Replay => "a replay",
            Self::ReleasedLock => "a released lock",
        }
    }
}

/// The goals that schedules without a fault reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReachedGoals {
    pub effect: bool,
    pub stored_result: bool,
    pub replay: bool,
    pub released_lock: bool,
}

impl ReachedGoals {
    fn has(self, goal: Goal) -> bool {
        match goal {
            Goal::Effect => self.effect,
            Goal::StoredResult => self.stored_result,
            Goal::Replay => self.replay,
            Goal::ReleasedLock => self.released_lock,
        }
    }
}

/// The replies to one call of the program that the server gave.
#[derive(Debug, Clone, Default)]
pub struct MetReplies {
    /// For each reply that the schema lists: true if the server gave it.
    pub listed: Vec<bool>,
    /// The first reply that the schema does not list, in words.
    pub unlisted: Option<String>,
    /// True if a replay did not show whose response it is, although the service stores responses.
    pub has_untold_replay: bool,
}

/// What an exploration met of the described steps.
#[derive(Debug, Clone)]
pub(crate) struct StepCoverage {
    pub(crate) calls: Vec<CoveredCall>,
    pub(crate) formats: Vec<CoveredFormat>,
    /// The goals that the described steps can reach.
    pub(crate) goals: Vec<Goal>,
    /// The goals that no schedule without a fault reached; empty if the exploration is incomplete.
    pub(crate) unreached: Vec<UnreachedGoal>,
}

/// One call of a described step.
#[derive(Debug, Clone)]
pub(crate) struct CoveredCall {
    pub(crate) schema: String,
    pub(crate) step: &'static str,
    /// The name of its script or command.
    pub(crate) name: String,
    /// The call as messages name it: its step, and its name if the step has several calls.
    pub(crate) title: String,
    pub(crate) is_sent: bool,
    pub(crate) replies: Vec<CoveredReply>,
    /// A reply that the schema does not list, in words.
    pub(crate) unlisted: Option<String>,
}

/// One reply that the schema lists.
#[derive(Debug, Clone)]
pub(crate) struct CoveredReply {
    pub(crate) reply: String,
    pub(crate) means: Meaning,
    pub(crate) is_met: bool,
}

/// One value format of a schema.
#[derive(Debug, Clone)]
pub(crate) struct CoveredFormat {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) is_met: bool,
}

/// A goal that was not reached, and the reason if one is known.
#[derive(Debug, Clone)]
pub(crate) struct UnreachedGoal {
    pub(crate) goal: Goal,
    pub(crate) why: Option<String>,
}

impl StepCoverage {
    /// Collects what was met. `met` has one entry for each call of the program. Goals are judged
    /// only if the search is complete, because a longer schedule may still reach them.
    pub(crate) fn new(
        program: &WorkerProgram,
        met: &[MetReplies],
        reached: &[&KeysState],
        goals: ReachedGoals,
        is_complete: bool,
    ) -> Self {
        let mut coverage = Self {
            calls: Vec::new(),
            formats: Vec::new(),
            goals: Vec::new(),
            unreached: Vec::new(),
        };
        for (service, schema) in program.services.iter().enumerate() {
            for kind in [StepKind::Begin, StepKind::Renew, StepKind::Complete, StepKind::Release] {
                let Some(step) = kind.described_in(schema) else { continue };
                for index in 0..step.calls.len() {
                    let mut covered = CoveredCall::new(schema, kind, step, index);
                    covered.add_met(program, met, ProgramCall { service, step: kind, index });
                    coverage.calls.push(covered);
                }
            }
            coverage.add_formats(schema, reached);
        }
        coverage.goals = coverage.described_goals(program);
        if is_complete {
            coverage.judge(goals);
        }
        coverage
    }

    fn add_formats(&mut self, schema: &Schema, reached: &[&KeysState]) {
        let mut met = vec![false; schema.values.len()];
        for keys in reached {
            for key_index in 0..schema.keys.len() {
                let content = keys.content(key_index);
                if let Reading::Value(value) = decode::decode_value(schema, key_index, &content) {
                    met[value.format] = true;
                }
            }
        }
        for (format, is_met) in schema.values.iter().zip(met) {
            let (schema, name) = (schema.name.clone(), format.name.clone());
            self.formats.push(CoveredFormat { schema, name, is_met });
        }
    }

    fn described_goals(&self, program: &WorkerProgram) -> Vec<Goal> {
        let mut described = Vec::new();
        for goal in Goal::VARIANTS {
            let is_described = match goal {
                Goal::Effect => true,
                Goal::StoredResult => {
                    program.services.iter().any(|schema| schema.complete.is_some())
                }
                Goal::Replay => {
                    self.replies_of(StepKind::Begin).any(|reply| reply.means == Meaning::Replay)
                }
                Goal::ReleasedLock => program.is_lock_alone,
            };
            if is_described {
                described.push(*goal);
            }
        }
        described
    }

    fn judge(&mut self, goals: ReachedGoals) {
        for goal in self.goals.clone() {
            if goals.has(goal) {
                continue;
            }
            // An unreached goal makes the later ones impossible, so only the first has a reason.
            let why = if self.unreached.is_empty() { Some(self.reason(goal)) } else { None };
            self.unreached.push(UnreachedGoal { goal, why });
        }
    }

    /// Why no schedule reaches the goal: what the step that must lead there replied.
    fn reason(&self, goal: Goal) -> String {
        let (step, wanted) = match goal {
            Goal::Effect
                if self
                    .replies_of(StepKind::Begin)
                    .any(|reply| reply.means == Meaning::Acquired && reply.is_met) =>
            {
                (StepKind::Renew, Meaning::Renewed)
            }
            Goal::Effect => (StepKind::Begin, Meaning::Acquired),
            Goal::StoredResult => (StepKind::Complete, Meaning::Stored),
            Goal::Replay => (StepKind::Begin, Meaning::Replay),
            Goal::ReleasedLock => (StepKind::Release, Meaning::Released),
        };
        let mut replies = Vec::new();
        for call in self.calls_of(step) {
            if let Some(unlisted) = &call.unlisted {
                return format!(
                    "{} replied {unlisted}, which matches no reply that the schema lists; correct \
                    the call, or list the reply",
                    call.title
                );
            }
            for reply in &call.replies {
                if reply.is_met && reply.means != Meaning::Next {
                    replies.push(format!("{} ({})", reply.reply, reply.means.as_str()));
                }
            }
        }
        let (step, wanted) = (step.as_str(), wanted.as_str());
        if replies.is_empty() {
            return format!("{step} gave no reply that decides");
        }
        format!(
            "{step} replied only {}, and without a fault never what means {wanted}; correct its \
            script, or its replies in the schema",
            replies.join(" and ")
        )
    }

    fn replies_of(&self, step: StepKind) -> impl Iterator<Item = &CoveredReply> {
        self.calls_of(step).flat_map(|call| &call.replies)
    }

    fn calls_of(&self, step: StepKind) -> impl Iterator<Item = &CoveredCall> {
        self.calls.iter().filter(move |call| call.step == step.as_str())
    }
}

impl CoveredCall {
    fn new(schema: &Schema, kind: StepKind, step: &Step, index: usize) -> Self {
        let call = &step.calls[index];
        let patterns: Vec<_> = call.replies.iter().map(|reply| pattern(schema, reply)).collect();
        let mut replies = Vec::new();
        for (reply, pattern) in call.replies.iter().zip(&patterns) {
            let mut words = pattern.clone();
            // Replies that look the same differ in their conditions, and so in their meanings.
            if patterns.iter().filter(|other| *other == pattern).count() > 1 {
                words = format!("{pattern} ({})", reply.means.as_str());
            }
            replies.push(CoveredReply { reply: words, means: reply.means, is_met: false });
        }
        let name = call.name();
        let same_name = step.calls.iter().filter(|other| other.name() == name).count();
        let title = if step.calls.len() == 1 {
            kind.as_str().to_owned()
        } else if same_name == 1 {
            format!("{} ({name})", kind.as_str())
        } else {
            format!("{} ({name}, call {})", kind.as_str(), index + 1)
        };
        Self {
            schema: schema.name.clone(),
            step: kind.as_str(),
            name,
            title,
            is_sent: false,
            replies,
            unlisted: None,
        }
    }

    /// Adds what was met at the program's calls that send this call.
    fn add_met(&mut self, program: &WorkerProgram, met: &[MetReplies], described: ProgramCall) {
        for (call, met) in program.calls.iter().zip(met) {
            if (ProgramCall { step: call.step.described_step(), ..*call }) != described {
                continue;
            }
            for (reply, is_met) in self.replies.iter_mut().zip(&met.listed) {
                reply.is_met |= *is_met;
                self.is_sent |= *is_met;
            }
            if met.unlisted.is_some() {
                self.is_sent = true;
                self.unlisted.clone_from(&met.unlisted);
            }
        }
    }
}

/// A listed reply in words.
fn pattern(schema: &Schema, reply: &Reply) -> String {
    if let Some(format) = reply.value {
        return schema.values[format].name.clone();
    }
    match &reply.pattern {
        ReplyPattern::Word(word) if word.is_empty() => "an empty text".to_owned(),
        ReplyPattern::Word(word) | ReplyPattern::Array(First::Word(word)) => word.clone(),
        ReplyPattern::Integer(number) | ReplyPattern::Array(First::Integer(number)) => {
            number.to_string()
        }
        ReplyPattern::Nil => "nil".to_owned(),
        ReplyPattern::Error(code) if code == "*" => "any error".to_owned(),
        ReplyPattern::Error(code) => format!("error {code}"),
        ReplyPattern::Text => "any text".to_owned(),
        ReplyPattern::Value => "any value".to_owned(),
    }
}
