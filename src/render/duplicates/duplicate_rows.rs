//! Groups of duplicates as rows of fields for a spreadsheet: one row per record of a group.

use crate::domain::duplicates::{ComparedRecord, GroupBasis, RecordTime};
use crate::render::columns::{Separated, rfc3339};
use crate::render::duplicates::DuplicatesReport;
use crate::render::escape;

/// The names of the fields. A number and its unit are in the name.
const FIELDS: [&str; 16] = [
    "group",
    "evidence",
    "basis",
    "same",
    "values",
    "also",
    "key",
    "schema",
    "state",
    "outcome",
    "status",
    "owner",
    "at",
    "at_is",
    "at_evidence",
    "gap_ms",
];

/// The rows, below the names of the fields.
pub(crate) fn rows(report: &DuplicatesReport<'_>, separated: Separated) -> String {
    let mut text = separated.row(FIELDS.iter().map(|name| (*name).to_owned()));
    for (number, group) in report.grouped.groups.iter().enumerate() {
        let evidence = if group.basis.is_strong() { "strong" } else { "weak" };
        let names = report.names(group).join(" ");
        let values = values(&group.values, group.basis);
        let mut also = Vec::new();
        for (name, value) in report.rule.further_names().iter().zip(&group.further) {
            also.push(format!("{name} {}", escape::text(value)));
        }
        for (index, gap) in group.members.iter().zip(report.grouped.gaps(group)) {
            let mut cells = vec![
                (number + 1).to_string(),
                evidence.to_owned(),
                group.basis.as_str().to_owned(),
                escape::text(names.as_bytes()),
                escape::text(values.as_bytes()),
                also.join(" "),
            ];
            cells.extend(of_record(&report.grouped.records[*index]));
            cells.push(gap.map(|gap| gap.to_string()).unwrap_or_default());
            text.push_str(&separated.row(cells.into_iter()));
        }
    }
    text
}

/// What agrees in one cell: a text without quotes, so that it can be compared with other tables,
/// and several values as a JSON array.
fn values(values: &[String], basis: GroupBasis) -> String {
    match values {
        [value] if basis == GroupBasis::Values => {
            serde_json::from_str(value).unwrap_or_else(|_| value.clone())
        }
        [value] => value.clone(),
        values => format!("[{}]", values.join(",")),
    }
}

fn of_record(record: &ComparedRecord) -> [String; 9] {
    let (mut at, mut at_is, mut at_evidence) = Default::default();
    if let Some(RecordTime { at_ms, is, evidence }) = record.time {
        at = rfc3339(at_ms).unwrap_or_default();
        at_is = is.as_str().to_owned();
        at_evidence = evidence.as_str().to_owned();
    }
    [
        escape::text(&record.name.key),
        escape::text(record.name.schema.as_bytes()),
        record.state.map(|state| state.as_str().to_owned()).unwrap_or_default(),
        record.outcome.as_str().to_owned(),
        record.status.map(|status| status.to_string()).unwrap_or_default(),
        record.owner.as_deref().map(escape::text).unwrap_or_default(),
        at,
        at_is,
        at_evidence,
    ]
}
