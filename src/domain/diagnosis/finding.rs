//! What a rule says of a record.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;
use crate::domain::record::Evidence;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: FindingCode,
    pub(crate) severity: Severity,
    pub(crate) evidence: Evidence,
    pub(crate) message: String,
    pub(crate) advice: String,
}

/// The stable codes of findings, in the order in which findings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum FindingCode {
    /// A lock without expiry.
    NoExpiry,
    /// A lock that stays longer than the schema's lock TTL allows.
    ExcessTtl,
    /// A lock that is held longer than the operator thinks an operation can take.
    Overdue,
    /// A lock beside a result.
    LeftoverLock,
    /// A value that the schema cannot decode.
    Unreadable,
    /// A value of another schema.
    ForeignSchema,
    /// A Redis key that holds no string.
    WrongType,
    /// A result without expiry.
    ResultNoExpiry,
    /// A result that goes sooner than retries may come.
    ShortResultTtl,
    /// A value larger than the limit.
    Oversized,
}

as_str!(FindingCode);

impl FindingCode {
    /// All codes.
    pub const ALL: &[Self] = Self::VARIANTS;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Clients will be hurt, or the record costs memory.
    Warning,
    /// Clients are hurt now, or a double execution is near.
    Error,
}

as_str!(Severity);
