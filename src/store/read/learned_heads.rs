//! How many bytes of a schema's values a scan reads at first, learned from its first pages.
//!
//! Some schemas write the status or the fingerprint behind the part of a value that decides its
//! state. Reading more of every value would slow down all other scans, and reading each such value
//! twice would slow down this one. So a scan that had to read many values of a schema again
//! computes how many bytes would have been enough, and reads as many in the following pages.

use std::sync::Arc;

use crate::domain::record::{Candidate, Content, Observation, Record, locate};
use crate::domain::schema::Schema;

/// The lengths that are tried, the shortest first.
const LENGTHS: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];

/// Records of a page that are decoded again to find the length. A few are enough, because every
/// page adds its own and a head never becomes shorter.
const MAX_SAMPLES: u32 = 8;

/// The share of a schema's records in a page that must have been read again: one of this many. For
/// fewer, longer heads cost more than the second read.
const SHARE: u64 = 8;

/// The bytes that a page reads of the values of some schemas.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct LearnedHeads {
    bytes: Arc<Vec<(Arc<Schema>, usize)>>,
}

impl LearnedHeads {
    /// Adds what a page showed. A head never becomes shorter.
    pub(super) fn learn(&mut self, more: Vec<(Arc<Schema>, usize)>) {
        let bytes = Arc::make_mut(&mut self.bytes);
        for (schema, needed) in more {
            match bytes.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &schema)) {
                Some((_, known)) => *known = needed.max(*known),
                None => bytes.push((schema, needed)),
            }
        }
    }

    /// The bytes to read of a candidate's values, of which at most `most` were learned.
    pub(super) fn of(&self, candidate: &Candidate, most: usize) -> usize {
        let mut bytes = candidate.head_bytes();
        for (schema, learned) in self.bytes.iter() {
            if candidate.schemas.iter().any(|own| Arc::ptr_eq(own, schema)) {
                bytes = bytes.max(most.min(*learned));
            }
        }
        bytes
    }
}

/// What a page shows about the lengths that would have been enough.
#[derive(Default)]
pub(super) struct HeadSamples {
    schemas: Vec<HeadSample>,
}

struct HeadSample {
    schema: Arc<Schema>,
    records: u64,
    read_again: u64,
    /// How many of these were decoded again, and the most bytes that one of them needs; `None` if
    /// more than the longest head.
    samples: u32,
    needed: Option<usize>,
}

impl HeadSamples {
    /// Adds a record, and whether it was read again. `is_enough` says whether a part of its values
    /// has all that the scan needs.
    pub(super) fn add(
        &mut self,
        record: &Record,
        is_read_again: bool,
        is_enough: impl Fn(&Record) -> bool,
    ) {
        let sample = self.sample_of(&record.schema);
        sample.records += 1;
        if !is_read_again {
            return;
        }
        sample.read_again += 1;
        if sample.samples < MAX_SAMPLES {
            sample.samples += 1;
            let needed = bytes_needed(record, is_enough);
            sample.needed = match (sample.needed, needed) {
                (Some(known), Some(needed)) => Some(known.max(needed)),
                _ => None,
            };
        }
    }

    fn sample_of(&mut self, schema: &Arc<Schema>) -> &mut HeadSample {
        let known = self.schemas.iter().position(|sample| Arc::ptr_eq(&sample.schema, schema));
        let index = known.unwrap_or_else(|| {
            let schema = Arc::clone(schema);
            let new = HeadSample { schema, records: 0, read_again: 0, samples: 0, needed: Some(0) };
            self.schemas.push(new);
            self.schemas.len() - 1
        });
        &mut self.schemas[index]
    }

    /// The schemas of which many records were read again, each with the bytes that would have been
    /// enough.
    pub(super) fn longer_heads(self) -> Vec<(Arc<Schema>, usize)> {
        let mut heads = Vec::new();
        for sample in self.schemas {
            let is_frequent = sample.read_again * SHARE > sample.records;
            if let Some(needed) = sample.needed
                && is_frequent
            {
                heads.push((sample.schema, needed));
            }
        }
        heads
    }
}

/// The shortest of [`LENGTHS`] that is enough for a record; `None` if none is.
fn bytes_needed(record: &Record, is_enough: impl Fn(&Record) -> bool) -> Option<usize> {
    for length in LENGTHS {
        let part = cut(&record.seen, length);
        if is_enough(&locate::undiagnosed_record(&record.schema, &record.key, part)) {
            return Some(length);
        }
    }
    None
}

/// The same read with at most this many bytes of each string.
fn cut(seen: &Observation, most: usize) -> Observation {
    let mut seen = seen.clone();
    for key in &mut seen.keys {
        if let Content::Text { head, length } = &mut key.content
            && head.len() > most
        {
            head.truncate(most);
            *length = None;
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{FieldSet, TimeLeft, ValueField};
    use crate::domain::samples::{record, text};

    fn padded(bytes: usize) -> Record {
        let value = format!(r#"{{"done":false,"pad":"{}","at":940000}}"#, "x".repeat(bytes));
        record("timed", &[(text(&value), TimeLeft::Millis(30_000))])
    }

    fn has_time(record: &Record) -> bool {
        let needed = FieldSet::of(&[ValueField::Time]);
        record.unread_fields().intersection(needed).is_empty()
    }

    #[test]
    fn a_head_reaches_as_far_as_the_field_that_is_needed() {
        assert_eq!(bytes_needed(&padded(10), has_time), Some(128));
        assert_eq!(bytes_needed(&padded(900), has_time), Some(1024));
        assert_eq!(bytes_needed(&padded(9_000), has_time), None);
    }

    #[test]
    fn only_a_schema_of_which_many_records_were_read_again_gets_longer_heads() {
        let far = padded(300);
        let mut few = HeadSamples::default();
        let mut many = HeadSamples::default();
        for number in 0..16 {
            few.add(&far, number == 0, has_time);
            many.add(&far, number < 3, has_time);
        }
        assert!(few.longer_heads().is_empty());
        let heads = many.longer_heads();
        assert_eq!(heads.len(), 1);
        assert_eq!(heads[0].1, 512);
    }
}
