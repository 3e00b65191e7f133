//! Evidence: how a statement is known.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// How a statement is known, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Evidence {
    /// From a schema's default, which this deployment may not keep to. An estimate selects nothing for a change.
    #[default]
    Estimated,
    /// From what this deployment says of itself: an option, or the context.
    Stated,
    /// From the value itself, or true under any setting.
    Known,
}

as_str!(Evidence);

impl Evidence {
    /// What stands before a value: `~23h` is an estimate.
    pub(crate) fn mark(self) -> &'static str {
        if self == Self::Estimated { "~" } else { "" }
    }
}
