//! Which operation a backup belongs to.

use serde::{Deserialize, Serialize};

/// The run of a command that wrote a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Maker {
    /// The operation, as the audit log names it.
    pub(crate) op: String,
    pub(crate) command: String,
    /// When it began, RFC 3339 in UTC.
    pub(crate) at: String,
}
