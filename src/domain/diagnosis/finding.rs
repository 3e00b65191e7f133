//! The finding that a rule makes about a record.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;
use crate::domain::record::Evidence;
use crate::domain::schema::TtlOf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: FindingCode,
    pub(crate) severity: Severity,
    pub(crate) evidence: Evidence,
    pub(crate) message: String,
    pub(crate) advice: String,
}

impl Finding {
    /// True for a lock that rejects requests until somebody removes it.
    pub(crate) fn blocks_for_good(&self) -> bool {
        self.code == FindingCode::NoExpiry && self.severity == Severity::Error
    }
}

/// The stable codes of findings, in the order in which findings are shown.
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
    EnumString,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum FindingCode {
    NoExpiry,
    /// A lock that stays longer than the schema's lock TTL allows.
    ExcessTtl,
    /// A lock that is held longer than the operator expects an operation to take.
    Overdue,
    LeftoverLock,
    Unreadable,
    ForeignSchema,
    WrongType,
    ResultNoExpiry,
    /// A lock that may expire before its worker is done.
    ShortLockTtl,
    /// A result that expires before late retries may arrive.
    ShortResultTtl,
    Oversized,
}

as_str!(FindingCode);

impl FindingCode {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The findings by which records of a scan can be selected. A scan does not recognise a Redis
    /// key of another type, unless a lock of the schema is beside it.
    pub(crate) fn of_recognised_records() -> Vec<Self> {
        let mut codes = Self::ALL.to_vec();
        codes.retain(|code| *code != Self::WrongType);
        codes
    }

    /// What the code means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoExpiry => {
                "a lock that never expires, so retries are rejected indefinitely, or until one gives \
                it a TTL"
            }
            Self::ExcessTtl => {
                "a lock with more time left than its lock TTL allows (the deployment's TTL if \
                configured, otherwise the schema's default), unless an operator extended it"
            }
            Self::Overdue => "a lock older than the given --overdue",
            Self::LeftoverLock => {
                "a lock beside a result, left by a crash between the two steps or by a late worker"
            }
            Self::Unreadable => "a value that cannot be decoded",
            Self::ForeignSchema => {
                "a value of another schema that shares the key, such as an older release"
            }
            Self::WrongType => {
                "a Redis key with another type than the schema uses; scans show it only beside a lock"
            }
            Self::ResultNoExpiry => "a result whose Redis key never expires",
            Self::ShortLockTtl => {
                "a lock that was acquired with less than half of the configured lock TTL, according to \
                the time in its value"
            }
            Self::ShortResultTtl => {
                "a result that was stored with too short a TTL, according to the time in its value"
            }
            Self::Oversized => "a value larger than 64 KiB",
        }
    }

    /// The TTL that decides whether an estimated finding holds.
    pub(crate) fn depends_on(self) -> TtlOf {
        match self {
            Self::ShortResultTtl | Self::ResultNoExpiry | Self::Oversized => TtlOf::Result,
            Self::NoExpiry
            | Self::ExcessTtl
            | Self::Overdue
            | Self::LeftoverLock
            | Self::Unreadable
            | Self::ForeignSchema
            | Self::WrongType
            | Self::ShortLockTtl => TtlOf::Lock,
        }
    }

    /// True for a finding about a lock without a result beside it. A purge removes such locks only
    /// with `--state in-progress`.
    pub(crate) fn is_of_lock_without_result(self) -> bool {
        match self {
            Self::NoExpiry | Self::ExcessTtl | Self::Overdue | Self::ShortLockTtl => true,
            Self::LeftoverLock
            | Self::Unreadable
            | Self::ForeignSchema
            | Self::WrongType
            | Self::ResultNoExpiry
            | Self::ShortResultTtl
            | Self::Oversized => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Clients will be affected, or the record costs memory.
    Warning,
    /// Clients are affected now, or a double execution is likely.
    Error,
}

as_str!(Severity);
