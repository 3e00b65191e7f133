//! The columns of a list of records: their names, their text for people, and their values for
//! programs.

use std::time::{Duration, UNIX_EPOCH};

use strum::{IntoStaticStr, VariantArray};

use super::{escape, words};
use crate::domain::as_str::as_str;
use crate::domain::record::{Evidence, Record, ValueField};

/// A column. Its name is the heading in files for programs, in which the names of numbers include
/// their unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Column {
    Key,
    Schema,
    State,
    Owner,
    #[strum(to_string = "ttl_ms")]
    Ttl,
    #[strum(to_string = "age_ms")]
    Age,
    #[strum(to_string = "size_bytes")]
    Size,
    CreatedAt,
    ExpiresAt,
    Status,
    Fingerprint,
    Findings,
    RedisKeys,
    Db,
}

as_str!(Column);

/// All columns of a record.
pub const ALL: [Column; 13] = [
    Column::State,
    Column::Schema,
    Column::Ttl,
    Column::Age,
    Column::Size,
    Column::Owner,
    Column::Status,
    Column::Fingerprint,
    Column::CreatedAt,
    Column::ExpiresAt,
    Column::Findings,
    Column::RedisKeys,
    Column::Key,
];

impl Column {
    /// The heading for people, without a unit, because the cells show units.
    pub fn heading(self) -> String {
        match self {
            Self::Ttl => "TTL".to_owned(),
            Self::Age => "AGE".to_owned(),
            Self::Size => "SIZE".to_owned(),
            Self::Findings => "FINDINGS (~ estimated)".to_owned(),
            other => other.as_str().to_uppercase().replace('_', " "),
        }
    }

    /// The field of the record's value that the column shows, if it shows one.
    pub fn field(self) -> Option<ValueField> {
        match self {
            Self::Owner => Some(ValueField::Owner),
            Self::Status => Some(ValueField::Status),
            Self::Fingerprint => Some(ValueField::Fingerprint),
            Self::Age | Self::CreatedAt | Self::Findings => Some(ValueField::Time),
            Self::Key
            | Self::Schema
            | Self::State
            | Self::Ttl
            | Self::Size
            | Self::ExpiresAt
            | Self::RedisKeys
            | Self::Db => None,
        }
    }

    /// Other names that the operator may use for the column.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Ttl => &["ttl"],
            Self::Age => &["age"],
            Self::Size => &["size"],
            Self::CreatedAt => &["created-at"],
            Self::ExpiresAt => &["expires-at"],
            Self::RedisKeys => &["redis-keys"],
            _ => &[],
        }
    }

    /// The cell for people: complete, in one line.
    pub fn shown(self, record: &Record) -> String {
        let cell = match self {
            Self::Key => return escape::key(&record.key),
            Self::Ttl => record.time_left().map(words::time_left).unwrap_or_default(),
            Self::Age => record.age.map(words::short_age).unwrap_or_default(),
            Self::Size => record.size_bytes().map(words::bytes).unwrap_or_default(),
            other => other.plain(record),
        };
        if cell.is_empty() { "-".to_owned() } else { cell }
    }

    /// The cell for programs: milliseconds, bytes and RFC 3339; empty if the value is unknown.
    pub fn plain(self, record: &Record) -> String {
        let text = match self {
            Self::Key => Some(escape::text(&record.key)),
            Self::Schema => Some(record.schema.name.clone()),
            Self::State => Some(record.state.as_str().to_owned()),
            Self::Owner => record.owner().map(escape::text),
            Self::Ttl => {
                record.time_left().and_then(|time_left| Some(time_left.millis()?.to_string()))
            }
            Self::Age => record.age.map(|age| age.millis.to_string()),
            Self::Size => record.size_bytes().map(|bytes| bytes.to_string()),
            Self::CreatedAt => created_at(record),
            Self::ExpiresAt => expires_at(record),
            Self::Status => record.stored().and_then(|response| Some(response.status?.to_string())),
            Self::Fingerprint => {
                record.fingerprint().map(|fingerprint| escape::text(fingerprint.as_bytes()))
            }
            Self::Findings => Some(codes(record)),
            Self::Db => record.db.map(|db| db.to_string()),
            Self::RedisKeys => {
                let keys: Vec<_> =
                    record.seen.keys.iter().map(|key| escape::text(&key.redis_key)).collect();
                Some(keys.join(" "))
            }
        };
        text.unwrap_or_default()
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
        assert_eq!(Column::CreatedAt.plain(&timed), "1970-01-01T00:15:40.000Z");
        assert_eq!(Column::ExpiresAt.plain(&timed), "1970-01-01T00:17:10.000Z");
        let estimated = chi(CHI_LOCK, TimeLeft::Millis(30_000));
        assert_eq!((estimated.age.is_some(), created_at(&estimated)), (true, None));
        assert_eq!(Column::ExpiresAt.plain(&chi(CHI_LOCK, TimeLeft::NoExpiry)), "");
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn programs_read_numbers_and_people_words() {
        let lock = chi(CHI_LOCK, TimeLeft::Millis(30_000));
        assert_eq!(
            (Column::Ttl.plain(&lock), Column::Ttl.shown(&lock)),
            ("30000".to_owned(), "30s".to_owned())
        );
        assert_eq!(
            (Column::Owner.plain(&lock), Column::Owner.shown(&lock)),
            (String::new(), "-".to_owned())
        );
        assert!(ALL.iter().all(|column| Column::VARIANTS.contains(column)));
    }
}
