//! Snapshots: the records that existed at one time, compared with another time.

mod difference;
mod list_scope;
mod listed_record;
mod print;
mod snapshot_index;
mod summary;

pub(crate) use difference::{DifferenceCounts, DifferenceKind, HowRecordEnded, how_it_went};
pub(crate) use list_scope::ListScope;
pub(crate) use listed_record::ListedRecord;
pub(crate) use print::{CRC, KeyPrint};
pub(crate) use snapshot_index::SnapshotIndex;
pub(crate) use summary::{Summary, SummaryRow};
