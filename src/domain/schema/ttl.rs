//! How long locks and results live.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// The TTL of a Redis key that its service gives none.
pub(crate) const FOR_EVER: Duration = Duration::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TtlOf {
    Lock,
    Result,
}

as_str!(TtlOf);

impl TtlOf {
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Lock => "--lock-ttl",
            Self::Result => "--result-ttl",
        }
    }
}
