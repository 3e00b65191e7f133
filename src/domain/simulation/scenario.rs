//! The scenarios: the rows of `scenarios.toml`, which build.rs compiles in. One file has all of
//! them, in the order in which they are reported.

use std::sync::LazyLock;

use serde::Deserialize;
use strum::EnumString;

use crate::domain::schema::{PayloadUse, Schema};
use crate::domain::simulation::verdict::Excuse;
use crate::domain::step::worker_steps;

/// All scenarios.
pub static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let rows = include_str!(concat!(env!("OUT_DIR"), "/scenarios.json"));
    // A test reads the rows, too.
    serde_json::from_str::<Rows>(rows).map_or_else(|_| Vec::new(), |rows| rows.scenario)
});

#[derive(Debug, Deserialize)]
struct Rows {
    scenario: Vec<Scenario>,
}

/// One way in which idempotency can fail. It can be played with any schema.
#[derive(Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub(crate) name: String,
    /// What happens.
    pub(crate) summary: String,
    /// What the service should do.
    pub(crate) remedy: String,
    #[serde(default)]
    pub(crate) place: Place,
    /// Why it does not apply to a schema that meets the needs of no take.
    #[serde(default)]
    pub(crate) otherwise: String,
    #[serde(rename = "take")]
    pub(crate) takes: Vec<Take>,
}

/// The server on which a scenario is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    /// The operator's server.
    #[default]
    Given,
    /// A temporary local Redis, because the scenario would harm a server that others use.
    Local,
    /// A node of a cluster.
    Cluster,
    /// A master whose replica has lost its link.
    Replicated,
}

/// One schedule of a scenario.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    /// Distinguishes the takes of a scenario; `{}` stands for what differs in each repetition.
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) acts: Vec<ScenarioAct>,
    /// Why a harm is not a failure of the schema.
    #[serde(default)]
    pub(crate) excuse: Option<Excuse>,
    #[serde(default)]
    pub(crate) needs: Option<Need>,
    #[serde(default)]
    pub(crate) each: Each,
    /// The text that the first worker sends as lock TTL; `None` for a usual one.
    #[serde(default)]
    pub(crate) lock_ttl: Option<String>,
}

/// How often a take is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Each {
    #[default]
    Once,
    /// As often as the operator wants, each time in another order.
    Round,
    /// For each place between two calls of begin.
    BeginCall,
    /// For each place between two calls of complete.
    CompleteCall,
    /// For each other schema on the same Redis keys, whose service has the first worker.
    OtherSchema,
    /// For each `maxmemory-policy`.
    Policy,
}

/// What a schema must have, so that a take can be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    Renew,
    GiveUp,
    /// An older release may leave a lock beside its result.
    LockBesideResult,
    HangUp,
    /// Requests with different payloads have the same Redis key.
    PayloadsShareKey,
    WithoutRedis,
    Scripts,
    LockTtl,
}

impl Need {
    pub(crate) fn is_met(self, schema: &Schema) -> bool {
        match self {
            Self::Renew => schema.renew.is_some(),
            Self::GiveUp => worker_steps::after_giving_up(schema).is_some(),
            Self::LockBesideResult => {
                schema.complete_calls().len() < 2 && schema.has_separate_result()
            }
            Self::HangUp => schema.service.on_hang_up.is_some(),
            Self::PayloadsShareKey => schema.service.payload != Some(PayloadUse::InKey),
            Self::WithoutRedis => schema.service.without_redis.is_some(),
            Self::Scripts => !schema.scripts.is_empty(),
            Self::LockTtl => schema.sends_lock_ttl(),
        }
    }
}

/// One act, and the number of the worker that it is about, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ScenarioAct {
    pub(crate) kind: ActKind,
    pub(crate) number: usize,
}

impl TryFrom<String> for ScenarioAct {
    type Error = String;

    fn try_from(act: String) -> Result<Self, String> {
        let (kind, number) = act.split_once(' ').unwrap_or((&act, "0"));
        let (Ok(kind), Ok(number)) = (kind.parse(), number.parse()) else {
            return Err(format!("`{act}` is not an act"));
        };
        Ok(Self { kind, number })
    }
}

/// The acts of explore, with a whole step for each call, and the events that explore does not know.
/// `scenarios.toml` explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ActKind {
    Step,
    Begin,
    Part,
    Ready,
    Effect,
    Rush,
    NoEffect,
    Fail,
    GiveUp,
    Crash,
    CutOff,
    HangUp,
    OldResult,
    Expiry,
    ResultExpiry,
    Delay,
    Persist,
    Evict,
    Failover,
    Flush,
    Crowd,
    Next,
    Other,
    Retry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read() {
        let rows = include_str!(concat!(env!("OUT_DIR"), "/scenarios.json"));
        let rows: Rows = serde_json::from_str(rows).unwrap();
        assert_eq!(rows.scenario.len(), SCENARIOS.len());
        let mut names: Vec<_> = rows.scenario.iter().map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len(), "each name is there once");
        for row in &rows.scenario {
            let always = row.takes.iter().any(|take| {
                take.needs.is_none() && matches!(take.each, Each::Once | Each::Round | Each::Policy)
            });
            assert_eq!(row.otherwise.is_empty(), always, "{}", row.name);
        }
    }

    #[test]
    fn an_act_that_is_not_known_is_refused() {
        for wrong in ["", "leap 0", "step x", "step 0 next"] {
            assert!(ScenarioAct::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
