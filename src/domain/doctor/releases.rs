//! Who wrote the values under each template of Redis keys, in a sample.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::record::{Author, Record};
use crate::domain::schema::Schema;

/// The sampled values at the Redis keys of one template, e.g. `idempotency:*`.
#[derive(Debug, Clone)]
pub(crate) struct PlaceSample {
    /// The templates of the Redis keys, with a star for the key.
    pub(crate) pattern: String,
    /// The schemas that wrote the values, by name.
    pub(crate) writers: Vec<WriterSample>,
    /// Values that none of the schemas writes.
    pub(crate) unrecognised: u64,
}

/// The values of one schema in a sample.
#[derive(Debug, Clone)]
pub(crate) struct WriterSample {
    pub(crate) schema: Arc<Schema>,
    /// How many values have each format, by the format's name.
    pub(crate) formats: BTreeMap<String, u64>,
}

/// The name of a format that the description of another schema has.
const OF_ANOTHER: &str = "written by another schema";

/// Adds a record to the place of its Redis keys. `other` is the schema that wrote its value, if
/// that is not the record's schema.
pub(super) fn add(places: &mut Vec<PlaceSample>, record: &Record, other: Option<Arc<Schema>>) {
    let place = place_of(places, &record.schema);
    if let Some(other) = other {
        place.count(other, OF_ANOTHER.to_owned());
    } else if let Author::Unrecognised(_) = record.author {
        place.unrecognised += 1;
    } else if !record.author.is_foreign() {
        place.count(Arc::clone(&record.schema), format_of(record));
    }
}

fn place_of<'a>(places: &'a mut Vec<PlaceSample>, schema: &Schema) -> &'a mut PlaceSample {
    let mut patterns = Vec::new();
    for key in &schema.keys {
        patterns.push(key.template.pattern());
    }
    let pattern = patterns.join(" and ");
    let index = match places.iter().position(|place| place.pattern == pattern) {
        Some(index) => index,
        None => {
            places.push(PlaceSample { pattern, writers: Vec::new(), unrecognised: 0 });
            places.len() - 1
        }
    };
    &mut places[index]
}

impl PlaceSample {
    fn count(&mut self, schema: Arc<Schema>, format: String) {
        let index = match self.writers.iter().position(|writer| writer.schema.name == schema.name) {
            Some(index) => index,
            None => {
                let name = &schema.name;
                let index = self.writers.partition_point(|known| known.schema.name < *name);
                self.writers.insert(index, WriterSample { schema, formats: BTreeMap::new() });
                index
            }
        };
        *self.writers[index].formats.entry(format).or_default() += 1;
    }
}

/// The name of the format of the record's result, or else of its lock.
fn format_of(record: &Record) -> String {
    let schema = &record.schema;
    for key_index in [schema.result_key_index(), schema.lock_key_index()] {
        if let Some(decoded) = record.readings[key_index].decoded() {
            return schema.values[decoded.format].name.clone();
        }
    }
    record.state.as_str().to_owned()
}
