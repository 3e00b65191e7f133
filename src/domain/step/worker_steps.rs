//! What a worker of a service does with its lock: the steps before its effect, after it, and after
//! a failure. The workers of `explore` and of `simulate` follow this one definition.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::schema::{Call, Meaning, OnFailure, Schema, Step};

/// A step of a worker's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum StepKind {
    Begin,
    Renew,
    Complete,
    /// The lock is given up without a result.
    Release,
    /// The handler failed, and the failure is stored.
    StoreFailure,
}

as_str!(StepKind);

impl StepKind {
    /// The step of the schema that is called. A failure is stored by the complete step.
    pub(crate) fn described_step(self) -> Self {
        if self == Self::StoreFailure { Self::Complete } else { self }
    }

    /// The description of the step in a schema.
    pub fn described_in(self, schema: &Schema) -> Option<&Step> {
        match self {
            Self::Begin => schema.begin.as_ref(),
            Self::Renew => schema.renew.as_ref(),
            Self::Complete | Self::StoreFailure => schema.complete.as_ref(),
            Self::Release => schema.release.as_ref(),
        }
    }

    /// The calls of the step; empty if the schema does not describe the step.
    pub(crate) fn calls(self, schema: &Schema) -> &[Call] {
        match self.described_in(schema) {
            Some(step) => &step.calls,
            None => &[],
        }
    }

    /// The meaning of the reply after which the worker goes on. After any other reply that decides,
    /// the worker stops.
    pub(crate) fn wanted(self) -> Meaning {
        match self {
            Self::Begin => Meaning::Acquired,
            Self::Renew => Meaning::Renewed,
            Self::Complete | Self::StoreFailure => Meaning::Stored,
            Self::Release => Meaning::Released,
        }
    }
}

/// The step between begin and the effect: a service that can renew its lock does so once, right
/// before what cannot be taken back.
pub(crate) fn before_effect(schema: &Schema) -> Option<StepKind> {
    if schema.renew.is_some() { Some(StepKind::Renew) } else { None }
}

/// The step after a failure of the handler. The service cannot know whether a handler failed before
/// or after its effect.
pub(crate) fn after_failure(schema: &Schema) -> Option<StepKind> {
    match schema.on_failure() {
        OnFailure::Store => Some(StepKind::StoreFailure),
        OnFailure::Release if schema.release.is_some() => Some(StepKind::Release),
        OnFailure::Release | OnFailure::Keep => None,
    }
}

/// The step of a worker that gives its request up before its effect; `None` if no step does that,
/// or if a failure already has the same step.
pub(crate) fn after_giving_up(schema: &Schema) -> Option<StepKind> {
    let release = Some(StepKind::Release);
    if schema.release.is_some() && after_failure(schema) != release { release } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::from_toml;

    const SCHEMA: &str = r#"
format = 2
name = "orders"
keys = { record = "orders:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "held"
where = { "/st" = "held" }
state = "in-progress"

[[value]]
name = "done"
where = { "/st" = "done" }
state = "completed"

[service]
on_failure = "keep"
"#;

    const RELEASE: &str = r#"
[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released" }]
"#;

    /// The steps after a failure, and after giving up.
    fn ends(toml: &str) -> (Option<StepKind>, Option<StepKind>) {
        let schema = from_toml(toml);
        assert_eq!(before_effect(&schema), None);
        (after_failure(&schema), after_giving_up(&schema))
    }

    #[test]
    fn a_described_release_is_called_in_any_case() {
        let release = Some(StepKind::Release);
        let with = |does: &str| SCHEMA.replace("keep", does) + RELEASE;
        assert_eq!(ends(SCHEMA), (None, None));
        assert_eq!(ends(&with("keep")), (None, release));
        assert_eq!(ends(&with("store")), (Some(StepKind::StoreFailure), release));
        assert_eq!(ends(&with("release")), (release, None));
    }
}
