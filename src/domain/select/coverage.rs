//! Coverage: what a scan left out, and which assumptions about a deployment are wrong.

use std::collections::BTreeMap;

use super::contradiction::Contradictions;
use super::named_keys::NamedKeys;
use super::selection::Selected;
use super::unproven::{Missing, Unproven};
use crate::domain::record::{Author, Record};

/// What a scan did not cover: counts of the records that it left out, not of those that it covered.
/// The memory use depends only on the number of schemas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Records at Redis keys of a schema whose values the schema does not recognise, by schema.
    pub(crate) unrecognised: BTreeMap<String, u64>,
    /// Records that would count as a schema's locks, but are another schema's results, by that
    /// other schema.
    pub(crate) spared: BTreeMap<String, u64>,
    /// Records that were left out because the evidence for a filter is missing.
    pub(crate) unproven: Unproven,
    pub(crate) contradictions: Contradictions,
    pub(crate) named: NamedKeys,
    /// True to keep records whose values the schema does not recognise. They are counted either
    /// way.
    pub(crate) keeps_unrecognised: bool,
}

impl Coverage {
    /// True if the record is kept. A record that does not belong to its schema is counted, and kept
    /// only with `keeps_unrecognised`.
    pub(crate) fn keeps(&mut self, record: &Record) -> bool {
        // The unread rest decides whose value this is. Under a fixed prefix it is shown
        // as unreadable.
        if record.is_undecided() && !record.schema.has_fixed_prefix() {
            self.unproven.add(record, Missing::Format);
            return self.keeps_unrecognised;
        }
        let is_foreign = record.author.is_foreign();
        if is_foreign {
            *self.unrecognised.entry(record.schema.name.clone()).or_default() += 1;
        }
        if let Author::ResultOf(other) = &record.author {
            *self.spared.entry(other.clone()).or_default() += 1;
        }
        !is_foreign || self.keeps_unrecognised
    }

    /// The message of a command that selected nothing. If evidence was missing, matching records
    /// may exist all the same.
    pub(crate) fn none_selected(&self) -> &'static str {
        if self.unproven.is_empty() { "no such records" } else { "no records were selected" }
    }

    /// The command's plan for a record, if `selected` is yes. A record with missing evidence is
    /// counted as left out.
    pub(crate) fn plan_or_count<T>(&mut self, record: &Record, selected: Selected<T>) -> Option<T> {
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
