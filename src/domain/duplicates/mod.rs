//! Duplicates: records with different idempotency keys that are probably of one operation.
//!
//! The groups depend only on the records, never on the order in which a scan returns them:
//!
//! 1. A record is one idempotency key under one schema, in however many Redis keys it is stored.
//! 2. Records *agree* if they have equal values at all `--same` pointers. A missing value, null, and
//!    an empty text, array or object agree with nothing. A pointer goes into the response body, or
//!    after `value:` into the whole stored value.
//! 3. Records that agree are sorted by their times. With `--within`, they are cut wherever the time
//!    since the previous one is longer (single linkage), and a record whose time is unknown, or is
//!    estimated from a schema's default TTL, is in no group. Without it, they stay together
//!    whatever their times are.
//! 4. A part with at least two different idempotency keys is a group. One client key under two
//!    schemas is not different keys.

mod canonical;
mod comparable;
mod compare;
mod grouping;
mod pointer_tally;
mod record_time;
mod stored_value;

pub(crate) use canonical::DIGEST;
pub(crate) use comparable::{Comparable, NotCompared, UnknownBecause};
pub(crate) use compare::{
    CompareCounts, ComparedName, ComparedRecord, UnknownRecords, check_pointer, is_cut, values_at,
};
pub(crate) use grouping::{DuplicateGroup, KeptRecords, ResultCounts};
pub(crate) use pointer_tally::PointerTally;
pub(crate) use record_time::{RecordTime, TimeIs};
