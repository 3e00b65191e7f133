//! The schemas of which a single value may be a record.

use std::sync::Arc;

use super::schema_match::of_value;
use crate::domain::record::{Observation, decode};
use crate::domain::schema::Schema;

/// A format that any text fits, or a single short word, says nothing about the program that wrote
/// the value.
const LEAST: f64 = 2.0;

/// The names of the schemas besides `except` with a format that one of these values fits, the most
/// telling format first.
pub(crate) fn names(schemas: &[Arc<Schema>], seen: &Observation, except: &str) -> Vec<String> {
    let mut found = Vec::new();
    for schema in schemas {
        if schema.name == except {
            continue;
        }
        let points = points(schema, seen);
        if points >= LEAST {
            found.push((points, schema.name.clone()));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().map(|(_, name)| name).collect()
}

/// The points of the most telling format of a schema that one of the values fits.
fn points(schema: &Schema, seen: &Observation) -> f64 {
    let mut most = 0.0_f64;
    for key in &seen.keys {
        for key_index in 0..schema.keys.len() {
            let reading = decode::decode_value(schema, key_index, &key.content);
            if reading.conforms_or_absent()
                && let Some(value) = reading.decoded()
            {
                most = most.max(of_value(&schema.values[value.format]));
            }
        }
    }
    most
}
