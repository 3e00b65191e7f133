//! The verdicts on a scenario.

use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;

/// The effect of a scenario on its clients, ordered from the mildest verdict to the worst.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    IntoStaticStr,
    VariantArray,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ScenarioVerdict {
    #[serde(rename = "n/a")]
    #[strum(serialize = "n/a")]
    NotApplicable,
    Safe,
    Refused,
    Blocked,
    Stuck,
    WrongAnswer,
    Duplicate,
    Overwritten,
}

as_str!(ScenarioVerdict);

/// Why a bad verdict is not a failure of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Excuse {
    Environment,
    NotCompared,
}

as_str!(Excuse);

impl Excuse {
    /// What the excuse means, for the legend of the matrix.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Environment => "not counted, because the environment fails, not the script alone",
            Self::NotCompared => "payloads are not compared",
        }
    }
}

impl ScenarioVerdict {
    /// What the verdict means, for the legend of the matrix.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::NotApplicable => {
                "the scenario does not apply to this schema, for the given reason"
            }
            Self::Safe => {
                "the operation ran once, or not at all if it failed, and no client was told \
                otherwise"
            }
            Self::Refused => "a request got an error; nothing was done, and a retry can execute",
            Self::Blocked => "a client is rejected or gets errors for at most that long",
            Self::Stuck => "the client is rejected indefinitely",
            Self::WrongAnswer => "a client got the response of another operation",
            Self::Duplicate => "the operation ran more than once",
            Self::Overwritten => "overwrote another worker's record",
        }
    }

    /// True if a client is harmed, and does not only wait.
    pub(crate) fn is_bad(self) -> bool {
        self > Self::Blocked
    }
}
