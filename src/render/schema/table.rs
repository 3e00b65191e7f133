//! The table of `schema list`.

use std::sync::Arc;

use super::words;
use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::schema::Schema;
use crate::render::style::Palette;
use crate::render::table;

/// From this width on there is room for where a schema came from.
const ROOMY: usize = 100;

/// From this width on there is room for the summary.
const WIDE: usize = 160;

/// Schemas, one a row.
pub fn table(schemas: &[Arc<Schema>], palette: Palette, width: Option<usize>) -> String {
    let at_least = |columns: usize| width.is_none_or(|width| width >= columns);
    let mut heading = vec!["SCHEMA", "REDIS KEYS", "LOCK", "RESULT", "OWNER", "BEGIN"];
    heading.extend(at_least(ROOMY).then_some("ORIGIN"));
    heading.extend(at_least(WIDE).then_some("SUMMARY"));
    let rows = schemas.iter().map(|schema| {
        let mut row = vec![
            words::safe(&schema.name),
            words::templates(schema).join(if width.is_some() { "\n" } else { "  " }),
            duration::short(millis(schema.lock_ttl)),
            duration::short(millis(schema.result_ttl)),
            if schema.complete.checks_owner { "checked" } else { "no" }.to_owned(),
            if schema.begins_with_a_script() { "script" } else { "commands" }.to_owned(),
        ];
        row.extend(at_least(ROOMY).then(|| words::origin(&schema.origin)));
        row.extend(at_least(WIDE).then(|| words::safe(&schema.summary)));
        row
    });
    table::grid(palette, width, 0, &heading, rows.collect())
}
