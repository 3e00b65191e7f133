//! Coverage: what a scan left out, and which of the assumptions about a deployment do not hold.

use std::collections::BTreeMap;

use super::contradiction::Contradictions;
use super::named_keys::NamedKeys;
use super::selection::Selected;
use super::unproven::Unproven;
use crate::domain::record::{Claim, Record};

/// What a scan left out, counted; its memory depends on the number of schemas alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Records that bear a schema's Redis keys and are not the schema's, by schema.
    pub(crate) foreign: BTreeMap<String, u64>,
    /// Records that would be a schema's locks, were they not another's results, by that other schema.
    pub(crate) spared: BTreeMap<String, u64>,
    /// Records that were left out, because nothing proves what was asked of them.
    pub(crate) unproven: Unproven,
    pub(crate) contradictions: Contradictions,
    pub(crate) named: NamedKeys,
    /// True to keep records whose values the schema does not recognise. They are counted either way.
    pub(crate) keeps_unrecognised: bool,
}

impl Coverage {
    /// True for a record that is its schema's; one that is not is counted.
    pub(crate) fn claims(&mut self, record: &Record) -> bool {
        let is_foreign = record.claim.is_unrecognised();
        if is_foreign {
            *self.foreign.entry(record.schema.name.clone()).or_default() += 1;
        }
        if let Claim::ResultOf(other) = &record.claim {
            *self.spared.entry(other.clone()).or_default() += 1;
        }
        !is_foreign || self.keeps_unrecognised
    }

    /// What a command that selected nothing says of that. Records of which too little is known may be meant all the same.
    pub(crate) fn none_selected(&self) -> &'static str {
        if self.unproven.is_empty() { "no such records" } else { "no records were selected" }
    }

    /// What the command plans for a record, if `selected` says that it is selected. A record of which too little is known is
    /// counted as left out.
    pub(crate) fn take<T>(&mut self, record: &Record, selected: Selected<T>) -> Option<T> {
        match selected {
            Selected::Yes(planned) => Some(planned),
            Selected::No => None,
            Selected::Unproven(missing) => {
                self.unproven.add(record, missing);
                None
            }
        }
    }
}
