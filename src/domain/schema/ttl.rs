//! The TTLs of locks and results.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::duration::parse_duration;

/// Stands for the TTL of a Redis key on which the service sets none. It is the longest duration,
/// so that comparisons with other TTLs are right.
pub(crate) const NO_TTL: Duration = Duration::MAX;

/// The word for [`NO_TTL`] in a file or on the command line.
pub(crate) const NONE: &str = "none";

/// Parses `90s`, or `none` for a Redis key without a TTL.
pub(crate) fn parse_ttl_or_none(text: &str) -> Result<Duration, String> {
    if text == NONE {
        return Ok(NO_TTL);
    }
    match parse_duration(text).map_err(|why| format!("{why}, or {NONE} for no TTL"))? {
        // Redis rejects `EX 0`.
        Duration::ZERO => Err(format!("a TTL must be longer than zero; write {NONE} for no TTL")),
        ttl => Ok(ttl),
    }
}

/// The Redis key whose TTL is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TtlOf {
    Lock,
    Result,
}

as_str!(TtlOf);

impl TtlOf {
    /// The command-line option that sets this TTL.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Lock => "--lock-ttl",
            Self::Result => "--result-ttl",
        }
    }
}
