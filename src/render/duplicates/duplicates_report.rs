//! What `duplicates` found, for every form of output.

use crate::domain::duplicates::{
    CompareCounts, CompareRule, DuplicateGroup, GroupBasis, GroupedRecords, PointerTally,
};

/// What `duplicates` found.
pub(crate) struct DuplicatesReport<'a> {
    pub(crate) rule: &'a CompareRule,
    pub(crate) within_ms: Option<u64>,
    pub(crate) grouped: &'a GroupedRecords,
    pub(crate) counts: &'a CompareCounts,
    /// The pointers that could be compared, if nothing was.
    pub(crate) candidates: Option<&'a PointerTally>,
    /// True if fingerprints were not compared, because too many of them are equal.
    pub(crate) leaves_fingerprints_out: bool,
}

impl DuplicatesReport<'_> {
    /// The names of what agrees in a group, in the order of its values.
    pub(super) fn names<'n>(&'n self, group: &DuplicateGroup) -> Vec<&'n str> {
        match group.basis {
            GroupBasis::Values => self.rule.pointers.iter().map(String::as_str).collect(),
            GroupBasis::FingerprintAndOwner | GroupBasis::Fingerprint => vec!["fingerprint"],
        }
    }
}
