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

/// Why a record has nothing to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum NotCompared {
    /// No response is stored, because the operation still runs, or the service stores none.
    Response,
    /// The record has no value at one of the pointers.
    Value,
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
    /// The record agrees with others, and --within needs its time, which is unknown or estimated.
    Time,
    /// The rest of a long value could not be read.
    NotReread,
    /// The records before it took all of the memory that a comparison may use.
    Memory,
}

as_str!(UnknownBecause);
