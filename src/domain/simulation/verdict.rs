//! How a scenario ends for the clients.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// The verdicts, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The scenario says nothing of this schema.
    #[strum(serialize = "n/a")]
    NotApplicable,
    /// The operation ran once, and nobody was told anything else.
    Safe,
    /// A request got an error and nothing was done; another try is free to go.
    Refused,
    /// Nobody is hurt, but a client waits.
    Blocked,
    /// A client is turned away for ever.
    Stuck,
    /// A client got a response that is not its operation's.
    WrongAnswer,
    /// The operation ran more than once.
    Duplicate,
}

as_str!(Verdict);

impl Verdict {
    /// Every verdict, the mildest first.
    pub(crate) const ALL: [Self; 7] = [
        Self::NotApplicable,
        Self::Safe,
        Self::Refused,
        Self::Blocked,
        Self::Stuck,
        Self::WrongAnswer,
        Self::Duplicate,
    ];

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::NotApplicable => "the scenario says nothing of this schema; the reason is given",
            Self::Safe => "the operation ran once, or not at all where it failed, and nobody was told otherwise",
            Self::Refused => "a request got an error; nothing was done, and another try is free to go",
            Self::Blocked => "nobody is hurt, but the client waits at most that long",
            Self::Stuck => "the client is turned away for ever",
            Self::WrongAnswer => "a client got a response that is not its operation's",
            Self::Duplicate => "the operation ran more than once",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == word)
    }

    /// True when somebody is hurt: worse than waiting.
    pub(crate) fn is_bad(self) -> bool {
        self > Self::Blocked
    }
}
