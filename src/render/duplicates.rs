//! Groups of duplicates: for people, as rows of fields, and as JSON.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::{Map, Value, json};
use strum::VariantArray as _;

use super::columns::{Separated, rfc3339};
use super::document::{self, base64_unless_text, text};
use super::history::second;
use super::style::View;
use super::table::{Column, of_columns};
use super::{escape, words};
use crate::domain::duplicates::{
    CompareCounts, ComparedName, ComparedRecord, DIGEST, DuplicateGroup, NotCompared, PointerTally,
    ResultCounts, TimeIs, UnknownBecause, UnknownRecords,
};
use crate::domain::duration;
use crate::domain::record::Evidence;

/// What `duplicates` found.
pub(crate) struct DuplicatesReport<'a> {
    /// The pointers of --same; empty if only the pointers are listed.
    pub(crate) pointers: &'a [String],
    pub(crate) within_ms: Option<u64>,
    pub(crate) groups: &'a [DuplicateGroup],
    pub(crate) counts: &'a CompareCounts,
    pub(crate) tally: &'a PointerTally,
    /// False if more groups may exist.
    pub(crate) is_complete: bool,
}

/// A group in JSON.
#[derive(Serialize)]
pub(crate) struct GroupJson<'a> {
    values: Vec<Value>,
    #[serde(flatten)]
    counts: ResultCounts,
    records: Vec<RecordJson<'a>>,
}

/// A record in JSON. A group may have hundreds of thousands, so that they are no `Value`s.
#[derive(Serialize)]
struct RecordJson<'a> {
    schema: &'a str,
    key: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    state: &'static str,
    status: Option<i64>,
    outcome: &'static str,
    owner: Option<Cow<'a, str>>,
    at: Option<String>,
    at_is: Option<&'static str>,
    at_evidence: Option<&'static str>,
    gap_ms: Option<u64>,
}

/// The most pointers that are listed.
const MAX_POINTERS: usize = 20;

/// The most characters of the values in a table; csv and JSON have the rest.
const MAX_VALUES: usize = 40;

/// How many rows of a group are laid out at a time. Below them, the heading is repeated.
const LAID_OUT: usize = 1_000;

/// The names of the fields. A number and its unit are in the name.
const FIELDS: [&str; 13] = [
    "group",
    "same",
    "values",
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

impl DuplicatesReport<'_> {
    /// The table, part by part, because a group may have hundreds of thousands of records. Without
    /// groups, a sentence or the pointers that could be compared.
    pub(crate) fn table(
        &self,
        view: View,
        mut print: impl FnMut(String) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.pointers.is_empty() {
            return print(candidates_text(self.tally));
        }
        if self.groups.is_empty() {
            return print(format!("{}\n", self.no_groups()));
        }
        for group in self.groups {
            let values = cut(&escape::text(group.values.join(", ").as_bytes()));
            let pointers = escape::text(self.pointers.join(" ").as_bytes());
            let title = view.palette.bold(&format!("{pointers} {values}"));
            let completed = words::counted(group.counts.completed as u64, "completed result");
            print(format!("{title}  {completed}\n"))?;
            let indexes: Vec<usize> = (0..group.records.len()).collect();
            for some in indexes.chunks(LAID_OUT) {
                let rows: Vec<_> =
                    some.iter().map(|index| GroupedRow::new(group, *index)).collect();
                print(of_columns(view, &columns(), &rows) + "\n")?;
            }
        }
        Ok(())
    }

    /// The line in place of groups.
    fn no_groups(&self) -> String {
        let compared = self.compared();
        if self.counts.compared == 0 {
            return format!("Nothing was compared: {compared}.");
        }
        let so_far = if self.is_complete { "" } else { " so far" };
        format!("No groups{so_far}: {compared}.")
    }

    /// `7 records with values at /order/id`.
    fn compared(&self) -> String {
        let records = words::counted(self.counts.compared, "record");
        let pointers = escape::text(self.pointers.join(" and ").as_bytes());
        format!("{records} with values at {pointers}")
    }

    /// What was found, and what is unknown, in sentences.
    pub(crate) fn summary(&self) -> Vec<String> {
        let counts = self.counts;
        if self.pointers.is_empty() {
            return vec!["Nothing was grouped; --same groups by one of these.".to_owned()];
        }
        let mut lines = Vec::new();
        if !self.groups.is_empty() {
            let repeated = self.groups.iter().filter(|group| group.counts.completed > 1).count();
            let (all, compared) = (self.groups.len(), self.compared());
            lines.push(format!(
                "In {repeated} of {all} groups, two or more operations completed. {compared}."
            ));
        }
        for (why, unknown) in &counts.unknown {
            lines.push(unknown_line(*why, unknown));
        }
        lines
    }

    /// Why records were not compared, although nothing of them is unknown.
    pub(crate) fn not_compared(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (why, count) in &self.counts.not_compared {
            let records = words::counted(*count, "record");
            let what = match why {
                NotCompared::Response => "response",
                NotCompared::Value => "value at the pointer",
            };
            lines.push(format!("Not compared, because they have no {what}: {records}."));
        }
        lines
    }

    /// The names of the fields of [`DuplicatesReport::rows`].
    pub(crate) fn names(separated: Separated) -> String {
        separated.row(FIELDS.iter().map(|name| (*name).to_owned()))
    }

    /// One row per record of a group, of which the first is number 1.
    pub(crate) fn rows(
        &self,
        number: usize,
        group: &DuplicateGroup,
        separated: Separated,
    ) -> String {
        let same = escape::text(self.pointers.join(" ").as_bytes());
        // A single text has no quotes, so that it can be compared with other tables.
        let values = match group.values.as_slice() {
            [value] => serde_json::from_str(value).unwrap_or_else(|_| value.clone()),
            values => format!("[{}]", values.join(",")),
        };
        let values = escape::text(values.as_bytes());
        let mut text = String::new();
        for (index, record) in group.records.iter().enumerate() {
            let time = record.time;
            let cells = [
                number.to_string(),
                same.clone(),
                values.clone(),
                escape::text(&record.key),
                record.schema.name.clone(),
                record.state.as_str().to_owned(),
                record.outcome.as_str().to_owned(),
                record.status.map(|status| status.to_string()).unwrap_or_default(),
                record.owner.as_deref().map(escape::text).unwrap_or_default(),
                time.and_then(|time| rfc3339(time.at_ms)).unwrap_or_default(),
                time.map(|time| time.is.as_str().to_owned()).unwrap_or_default(),
                time.map(|time| time.evidence.as_str().to_owned()).unwrap_or_default(),
                group.gap_ms(index).map(|gap| gap.to_string()).unwrap_or_default(),
            ];
            text.push_str(&separated.row(cells.into_iter()));
        }
        text
    }

    /// A group as JSON.
    pub(crate) fn group<'a>(&'a self, group: &'a DuplicateGroup) -> GroupJson<'a> {
        let mut values = Vec::new();
        for (name, value) in self.pointers.iter().zip(&group.values) {
            // A canonical text is JSON, unless it is too long.
            let value = if value.starts_with(DIGEST) {
                Value::from(value.as_str())
            } else {
                serde_json::from_str(value).unwrap_or_default()
            };
            values.push(json!({ "name": name, "value": value }));
        }
        let mut records = Vec::with_capacity(group.records.len());
        for (index, record) in group.records.iter().enumerate() {
            let time = record.time;
            records.push(RecordJson {
                schema: &record.schema.name,
                key: text(&record.key),
                key_base64: base64_unless_text(&record.key),
                state: record.state.as_str(),
                status: record.status,
                outcome: record.outcome.as_str(),
                owner: record.owner.as_deref().map(text),
                at: time.and_then(|time| rfc3339(time.at_ms)),
                at_is: time.map(|time| time.is.as_str()),
                at_evidence: time.map(|time| time.evidence.as_str()),
                gap_ms: group.gap_ms(index),
            });
        }
        GroupJson { values, counts: group.counts, records }
    }

    /// The fields about all groups.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut candidates = Vec::new();
        for count in self.tally.counts() {
            candidates.push(json!({
                "pointer": count.pointer,
                "values": count.values,
                "repeated": count.repeated,
                "estimated": count.is_estimate,
            }));
        }
        let mut not_compared = Map::new();
        for why in NotCompared::VARIANTS {
            let count = self.counts.not_compared.get(why).copied().unwrap_or_default();
            not_compared.insert(why.as_str().to_owned(), count.into());
        }
        let mut unknown = Map::new();
        for why in UnknownBecause::VARIANTS {
            let records = self.counts.unknown.get(why).cloned().unwrap_or_default();
            let mut examples = Vec::new();
            for name in &records.names {
                examples.push(json!({ "schema": name.schema, "key": text(&name.key) }));
            }
            let shown = json!({ "records": records.count, "examples": examples });
            unknown.insert(why.as_str().to_owned(), shown);
        }
        document::fields(json!({
            "same": self.pointers,
            "within_ms": self.within_ms,
            "records": self.counts.records,
            "compared": self.counts.compared,
            "not_compared": not_compared,
            "unknown": unknown,
            "candidates": candidates,
            "pointers_left_out": self.tally.leaves_out,
            "complete": self.is_complete,
        }))
    }
}

fn candidates_text(tally: &PointerTally) -> String {
    let mut lines = String::new();
    for count in tally.counts().into_iter().take(MAX_POINTERS) {
        let about = if count.is_estimate { "~" } else { "" };
        let (values, repeated) = (words::counted(count.values, "value"), count.repeated);
        let pointer = escape::text(count.pointer.as_bytes());
        lines.push_str(&format!(
            "{pointer}: {about}{values}, {about}{repeated} with several keys\n"
        ));
    }
    lines
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_VALUES {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MAX_VALUES - 1).collect();
    short.push('…');
    short
}

/// A record of a group.
struct GroupedRow<'a> {
    record: &'a ComparedRecord,
    gap: String,
}

impl<'a> GroupedRow<'a> {
    fn new(group: &'a DuplicateGroup, index: usize) -> Self {
        let record = &group.records[index];
        let mut gap = "-".to_owned();
        if let Some(time) = record.time
            && let Some(gap_ms) = group.gap_ms(index)
            && let Some(before) = group.records[index - 1].time
        {
            // Between an arrival and a result, the gap contains the duration of the operation.
            let is_known = before.evidence == Evidence::Known
                && time.evidence == Evidence::Known
                && before.is == time.is;
            gap = format!("{}{}", if is_known { "" } else { "~" }, duration::short(gap_ms));
        }
        Self { record, gap }
    }

    fn time(&self) -> Option<String> {
        let time = self.record.time?;
        let at = rfc3339(time.at_ms)?;
        // Also a stated TTL does not prove when a record was written.
        Some(match time.evidence {
            Evidence::Known => at,
            _ => format!("~{}", second(&at)),
        })
    }
}

fn columns<'a>() -> [Column<GroupedRow<'a>>; 7] {
    [
        Column::shortened("  KEY", 0, |row: &GroupedRow<'_>| {
            format!("  {}", escape::key(&row.record.key))
        }),
        Column::text("SCHEMA", 3, |row| row.record.schema.name.clone()),
        Column::text("STATE", 4, |row| row.record.state.as_str().to_owned()),
        Column::text("STATUS", 2, |row| match row.record.status {
            Some(status) => status.to_string(),
            None => "-".to_owned(),
        }),
        Column::text("TIME", 0, |row| row.time().unwrap_or_else(|| "-".to_owned())),
        Column::text("OF", 5, |row| match row.record.time.map(|time| time.is) {
            Some(TimeIs::Created) => "arrival".to_owned(),
            Some(TimeIs::Completed) => "result".to_owned(),
            None => "-".to_owned(),
        }),
        Column::text("GAP", 0, |row| row.gap.clone()),
    ]
}

fn unknown_line(why: UnknownBecause, unknown: &UnknownRecords) -> String {
    let what = match why {
        UnknownBecause::Unreadable => "the value cannot be decoded",
        UnknownBecause::TooLarge | UnknownBecause::NotReread => {
            "the value could not be read completely"
        }
        UnknownBecause::NotJson => "the response is not JSON",
        UnknownBecause::NotDecoded => "idemctl does not decode the response",
        UnknownBecause::Time => "--within needs a time, which is unknown or only estimated",
        UnknownBecause::Memory => "1 GiB of memory is full; select fewer records",
    };
    let records = words::counted(unknown.count, "record");
    let names: Vec<_> = unknown.names.iter().map(shown).collect();
    let more = unknown.count - names.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Unknown for {records} ({}{more}), because {what}.", names.join(", "))
}

fn shown(name: &ComparedName) -> String {
    format!("{}/{}", name.schema, escape::key(&name.key))
}
