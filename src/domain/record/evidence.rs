//! Evidence: how a fact about a record is known.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// How a fact is known, the weakest evidence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Evidence {
    /// From a schema's default, which this deployment may not use. A change never selects a record
    /// because of an estimate.
    #[default]
    Estimated,
    /// From a TTL that this deployment states, in an option or in the context.
    Stated,
    /// From the value itself, or true under any configuration.
    Known,
}

as_str!(Evidence);

impl Evidence {
    /// The mark before a value: `~23h` is an estimate.
    pub(crate) fn mark(self) -> &'static str {
        if self == Self::Estimated { "~" } else { "" }
    }
}
