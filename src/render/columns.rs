//! The columns of a list of records: their names, their text for people, and their values for
//! programs.

use std::time::{Duration, UNIX_EPOCH};

use super::{escape, words};
use crate::domain::record::{Evidence, Record, ValueField};

/// The text of a cell; `None` if the value is unknown.
type Cell = fn(&Record) -> Option<String>;

/// A column of a list of records.
#[derive(Debug)]
pub struct RecordColumn {
    /// The heading in files for programs, in which the names of numbers include their unit.
    pub name: &'static str,
    /// Another name that the operator may use. The heading for people is made of it.
    pub alias: &'static str,
    /// The field of the record's value that the column shows, if it shows one.
    pub field: Option<ValueField>,
    /// Its place by importance, from 0. A terminal shows the most important columns that fit.
    pub(super) rank: u8,
    /// True if a table omits it when no record has a value for it. In all other columns a `-` has a
    /// meaning: an unknown age, or no finding.
    pub(super) is_optional: bool,
    /// True if a table omits it unless all columns are wanted.
    is_wide: bool,
    /// True if it is left out unless it is named or sorted by, because it costs a command for each
    /// Redis key.
    is_on_request: bool,
    /// The cell for programs: milliseconds, bytes and RFC 3339.
    plain: Cell,
    /// The cell for people.
    shown: Cell,
    /// A usual cell. Columns are at least as wide, so that lists can be compared.
    usual: &'static str,
}

/// All columns, in the order of a table for people.
pub static COLUMNS: [RecordColumn; 15] = [
    column("key", "key", 0, |record| Some(escape::text(&record.key)))
        .shown_as("", |record| Some(escape::key(&record.key))),
    column("db", "db", 6, |record| Some(record.db?.to_string())),
    column("state", "state", 2, |record| Some(record.state.as_str().to_owned()))
        .shown_as("in-progress", |record| Some(record.state.as_str().to_owned())),
    column("schema", "schema", 3, |record| Some(record.schema.name.clone())),
    column("ttl_ms", "ttl", 4, |record| Some(record.time_left()?.millis()?.to_string()))
        .shown_as("23h 59m", |record| record.time_left().map(words::time_left)),
    column("age_ms", "age", 7, |record| Some(record.age?.millis.to_string()))
        .of(ValueField::Time)
        .shown_as("~23h 59m", |record| record.age.map(words::short_age)),
    column("idle_seconds", "idle", 14, |record| Some(record.idle()?.as_secs().to_string()))
        .shown_as("23h 59m", |record| record.idle().map(words::idle))
        .of(ValueField::Idle)
        .on_request(),
    column("size_bytes", "size", 8, |record| Some(record.size_bytes()?.to_string()))
        .shown_as("999.9 KiB", |record| record.size_bytes().map(words::bytes)),
    column("owner", "owner", 9, |record| record.owner().map(escape::text))
        .of(ValueField::Owner)
        .optional(),
    column("status", "status", 5, |record| Some(record.stored()?.status?.to_string()))
        .of(ValueField::Status)
        .optional(),
    column("fingerprint", "fingerprint", 12, |record| {
        Some(escape::text(record.fingerprint()?.as_bytes()))
    })
    .of(ValueField::Fingerprint)
    .optional()
    .wide(),
    column("created_at", "created-at", 11, created_at).of(ValueField::Time).optional().wide(),
    column("expires_at", "expires-at", 10, expires_at).optional().wide(),
    column("findings", "findings", 1, |record| Some(codes(record))).of(ValueField::Time),
    column("redis_keys", "redis-keys", 13, |record| {
        let keys = record.seen.keys.iter().map(|key| escape::text(&key.redis_key));
        Some(keys.collect::<Vec<_>>().join(" "))
    })
    .wide(),
];

const fn column(name: &'static str, alias: &'static str, rank: u8, plain: Cell) -> RecordColumn {
    RecordColumn {
        name,
        alias,
        rank,
        field: None,
        is_optional: false,
        is_wide: false,
        is_on_request: false,
        plain,
        shown: plain,
        usual: "",
    }
}

/// The columns of a table for people. It has the status if the status selected the records.
pub fn of_table(all_dbs: bool, by_status: bool, by_idle: bool) -> Vec<&'static RecordColumn> {
    let mut columns = all(all_dbs, by_idle);
    columns.retain(|column| !column.is_wide && (by_status || column.name != "status"));
    columns
}

/// All columns, with the database if the records of several are listed, and the idle time if they
/// are sorted by it.
pub fn all(all_dbs: bool, by_idle: bool) -> Vec<&'static RecordColumn> {
    let columns = COLUMNS.iter().filter(|column| by_idle || !column.is_on_request);
    columns.filter(|column| all_dbs || column.name != "db").collect()
}

impl RecordColumn {
    const fn of(self, field: ValueField) -> Self {
        Self { field: Some(field), ..self }
    }

    const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    const fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    const fn on_request(self) -> Self {
        Self { is_on_request: true, ..self }
    }

    const fn shown_as(self, usual: &'static str, shown: Cell) -> Self {
        Self { usual, shown, ..self }
    }

    /// The heading for people, without a unit, because the cells show units.
    pub fn heading(&self) -> String {
        self.alias.to_uppercase().replace('-', " ")
    }

    /// The least width for people.
    pub(super) fn usual_width(&self) -> usize {
        self.usual.len()
    }

    /// The cell for people: complete, in one line.
    pub fn shown(&self, record: &Record) -> String {
        let cell = (self.shown)(record).unwrap_or_default();
        if cell.is_empty() { "-".to_owned() } else { cell }
    }

    /// The cell for programs; empty if the value is unknown.
    pub fn plain(&self, record: &Record) -> String {
        (self.plain)(record).unwrap_or_default()
    }
}

/// The codes of a record's findings. An estimate has a mark: `~excess-ttl`.
fn codes(record: &Record) -> String {
    let mut codes = String::new();
    for finding in &record.findings {
        if !codes.is_empty() {
            codes.push(' ');
        }
        codes.push_str(finding.evidence.mark());
        codes.push_str(finding.code.as_str());
    }
    codes
}

/// The time at which the lock was acquired or the result stored, by the server's clock. `None` if
/// it would rest only on a schema's default TTL.
pub fn created_at(record: &Record) -> Option<String> {
    let age = record.age?;
    // An estimated time would look exact in a file for programs, which has no mark for estimates.
    if age.evidence <= Evidence::Estimated {
        return None;
    }
    rfc3339(record.seen.server_ms?.checked_sub(age.millis)?)
}

/// The time at which the record expires, by the server's clock.
pub fn expires_at(record: &Record) -> Option<String> {
    rfc3339(record.deadline()?)
}

/// Milliseconds since the epoch as RFC 3339; `None` after the year 9999.
pub(crate) fn rfc3339(millis: u64) -> Option<String> {
    // RFC 3339 has four digits for the year.
    if millis >= YEAR_10000 {
        return None;
    }
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis))?;
    Some(humantime::format_rfc3339_millis(time).to_string())
}

/// The beginning of the year 10000, in milliseconds since the epoch.
const YEAR_10000: u64 = 253_402_300_800_000;

/// The format of a row of fields for programs and spreadsheets.
#[derive(Debug, Clone, Copy)]
pub struct Separated {
    delimiter: char,
    /// True if cells stay unchanged, even those that a spreadsheet treats as formulas.
    is_raw: bool,
}

impl Separated {
    /// Comma-separated values, quoted as in RFC 4180.
    pub fn csv(is_raw: bool) -> Self {
        Self { delimiter: ',', is_raw }
    }

    /// Tab-separated values.
    pub fn tsv(is_raw: bool) -> Self {
        Self { delimiter: '\t', is_raw }
    }

    /// One row with its line end.
    pub fn row(self, fields: impl Iterator<Item = String>) -> String {
        // Most rows are shorter, so that the text grows at most once.
        let mut row = String::with_capacity(256);
        for (number, field) in fields.enumerate() {
            if number > 0 {
                row.push(self.delimiter);
            }
            self.push_cell(&mut row, &field);
        }
        row.push('\n');
        row
    }

    /// Appends a field. All characters that matter are ASCII, so that bytes are compared, which a
    /// list of a million records does for ten fields each.
    fn push_cell(self, row: &mut String, field: &str) {
        // Clients choose keys and owners, and a spreadsheet executes a cell that begins like a
        // formula. A cell that begins with a quote is text:
        // https://owasp.org/www-community/attacks/CSV_Injection
        let first = field.as_bytes().first();
        let is_formula = matches!(first, Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r'));
        let mark = if is_formula && !self.is_raw { "'" } else { "" };
        // Spreadsheets also split at a semicolon if the comma is the decimal point. Escaped text
        // contains no tab.
        let is_quoted = self.delimiter == ','
            && field.bytes().any(|byte| matches!(byte, b',' | b';' | b'"' | b'\n' | b'\r'));
        if is_quoted {
            row.push('"');
            row.push_str(mark);
            row.push_str(&field.replace('"', "\"\""));
            row.push('"');
        } else {
            row.push_str(mark);
            row.push_str(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    #[test]
    fn a_field_is_quoted_if_a_reader_would_split_it() {
        let fields = ["a", "b,c", "say \"x\"", "d;e", ""].map(str::to_owned);
        let row = |separated: Separated| separated.row(fields.clone().into_iter());
        assert_eq!(row(Separated::csv(false)), "a,\"b,c\",\"say \"\"x\"\"\",\"d;e\",\n");
        assert_eq!(row(Separated::tsv(false)), "a\tb,c\tsay \"x\"\td;e\t\n");
    }

    #[test]
    fn a_cell_that_begins_a_formula_is_text_unless_raw() {
        let fields = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "a=1"].map(str::to_owned);
        let row = |separated: Separated| separated.row(fields.clone().into_iter());
        assert_eq!(row(Separated::csv(false)), "'=1+1,'+1,'-1,'@x,'\tx,\"'\rx\",a=1\n");
        assert_eq!(row(Separated::csv(true)), "=1+1,+1,-1,@x,\tx,\"\rx\",a=1\n");
        assert!(row(Separated::tsv(false)).starts_with("'=1+1\t'+1\t"));
    }

    #[test]
    fn times_are_absolute_and_an_estimate_gives_no_time() {
        // Read at 1,000,000 ms.
        let timed =
            record("timed", &[(text(r#"{"done":false,"at":940000}"#), TimeLeft::Millis(30_000))]);
        assert_eq!(created_at(&timed).unwrap(), "1970-01-01T00:15:40.000Z");
        assert_eq!(expires_at(&timed).unwrap(), "1970-01-01T00:17:10.000Z");
        let estimated = chi(CHI_LOCK, TimeLeft::Millis(30_000));
        assert_eq!((estimated.age.is_some(), created_at(&estimated)), (true, None));
        assert_eq!(expires_at(&chi(CHI_LOCK, TimeLeft::NoExpiry)), None);
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn programs_read_numbers_and_people_words() {
        let lock = chi(CHI_LOCK, TimeLeft::Millis(30_000));
        for (name, plain, shown) in [("ttl_ms", "30000", "30s"), ("owner", "", "-")] {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            assert_eq!((&*column.plain(&lock), &*column.shown(&lock)), (plain, shown));
        }
    }
}
