//! Duplicates: records with different idempotency keys that are probably of one operation.
//!
//! The groups depend only on the records, never on the order in which a scan returns them:
//!
//! 1. A record is one idempotency key under one schema, in however many Redis keys it is stored. A
//!    record that SCAN returned twice is one record.
//! 2. Records *agree* if they have equal values at all `--same` pointers (strong evidence), with
//!    `--also owner` the same schema, fingerprint and owner (strong evidence), or the same schema and
//!    fingerprint (weak evidence). Records with different values at the pointers are never in one
//!    strong group. `--also` and `--tenant-part` add further parts that have to be equal, and never
//!    make records agree by themselves. A missing value, null, and an empty text, array or object
//!    agree with nothing. A pointer goes into the response body, or after `value:` into the whole
//!    stored value.
//! 3. Records that agree are sorted by their times. With `--within`, they are cut wherever the time
//!    since the previous one is longer (single linkage), and a record whose time is unknown, or is
//!    estimated from a schema's default TTL, is in no group. Without it, they stay together
//!    whatever their times are.
//! 4. A part with at least two different idempotency keys is a group. One client key under two
//!    schemas is not different keys.
//! 5. Each kind of evidence makes its own groups, so weak evidence never joins strong groups. A
//!    group is left out if one group of stronger evidence has all of its records.

mod canonical;
mod comparable;
mod compare;
mod evidence_index;
mod file_line;
mod grouping;
mod key_stem;
mod pointer_tally;
pub(crate) mod record_time;
mod stored_value;

pub(crate) use canonical::DIGEST;
pub(crate) use comparable::{NotCompared, UnknownBecause};
pub(crate) use compare::{
    CompareCounts, CompareRule, ComparedName, ComparedRecord, UnknownRecords, check_pointer,
};
pub(crate) use evidence_index::{EvidenceEntry, EvidenceIndex, MilliSeconds, TooManyEntries};
pub(crate) use file_line::FileLine;
pub(crate) use grouping::{DuplicateGroup, GroupBasis, GroupedRecords, ResultCounts};
pub(crate) use pointer_tally::PointerTally;
pub(crate) use record_time::{RecordTime, TimeIs};
