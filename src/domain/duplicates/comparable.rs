//! A part of a record that is compared, or why there is none.

use strum::{IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;

/// A part of a record that is compared, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Comparable<T> {
    Yes(T),
    /// The record certainly has no such part.
    No(NotCompared),
    /// The record may have such a part.
    Unknown(UnknownBecause),
}

impl<T> Comparable<T> {
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(value) => Some(value),
            Self::No(_) | Self::Unknown(_) => None,
        }
    }

    /// The same without the part.
    pub(super) fn as_unit(&self) -> Comparable<()> {
        match self {
            Self::Yes(_) => Comparable::Yes(()),
            Self::No(why) => Comparable::No(*why),
            Self::Unknown(why) => Comparable::Unknown(*why),
        }
    }
}

/// Why a record has nothing to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum NotCompared {
    /// No response is stored, because the operation still runs, or the service stores none.
    Response,
    /// The response has no value at one of the pointers.
    Value,
    Fingerprint,
    Owner,
    /// The key has no stem.
    Stem,
}

as_str!(NotCompared);

/// Why it is unknown whether a record belongs to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum UnknownBecause {
    /// The value cannot be decoded.
    Unreadable,
    /// The value is too large to be read completely.
    TooLarge,
    /// The response body is not JSON, or a value in it is nested too deeply.
    NotJson,
    /// The response is stored elsewhere, or in an encoding that idemctl does not decode.
    NotDecoded,
    /// The key does not have the part that --tenant-part names.
    TenantPart,
    /// The record agrees with others, and --within needs its time, which is unknown or estimated.
    Time,
    /// The record changed between the scan and the second read.
    Changed,
    /// The record expired or was removed between the scan and the second read.
    Gone,
    /// The record could not be read a second time.
    NotReread,
}

as_str!(UnknownBecause);
