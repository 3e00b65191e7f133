//! The columns of a list of records: how each is named, what people see in it, and what programs read.

use std::time::{Duration, UNIX_EPOCH};

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{escape, words};
use crate::domain::as_str::as_str;
use crate::domain::record::{Evidence, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Column {
    Key,
    Schema,
    State,
    Owner,
    Ttl,
    Age,
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

/// All that is known of a record.
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
    /// As a heading for people.
    pub fn heading(self) -> String {
        self.as_str().to_uppercase().replace('-', " ")
    }

    /// As the heading of a file for programs: numbers carry their unit.
    pub fn field(self) -> &'static str {
        match self {
            Self::Ttl => "ttl_ms",
            Self::Age => "age_ms",
            Self::Size => "size_bytes",
            Self::CreatedAt => "created_at",
            Self::ExpiresAt => "expires_at",
            Self::RedisKeys => "redis_keys",
            other => other.as_str(),
        }
    }

    /// For people: whole, in one line.
    pub fn shown(self, record: &Record) -> String {
        match self {
            Self::Ttl => record.expiry().map(words::expiry),
            Self::Age => record.age.map(words::short_age),
            Self::Size => record.size_bytes().map(words::bytes),
            other => Some(other.plain(record)).filter(|text| !text.is_empty()),
        }
        .unwrap_or_else(|| "-".to_owned())
    }

    /// For programs: milliseconds, bytes and RFC 3339; empty where nothing is known.
    pub fn plain(self, record: &Record) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let text = match self {
            Self::Key => Some(escape::text(&record.key)),
            Self::Schema => Some(record.schema.name.clone()),
            Self::State => Some(record.state.as_str().to_owned()),
            Self::Owner => record.owner().map(escape::text),
            Self::Ttl => number(record.expiry().and_then(|expiry| expiry.millis())),
            Self::Age => number(record.age.map(|age| age.millis)),
            Self::Size => number(record.size_bytes()),
            Self::CreatedAt => created_at(record),
            Self::ExpiresAt => expires_at(record),
            Self::Status => record.stored().and_then(|response| Some(response.status?.to_string())),
            Self::Fingerprint => record.fingerprint().map(|fingerprint| escape::text(fingerprint.as_bytes())),
            Self::Findings => Some(codes(record)),
            Self::Db => record.db.map(|db| db.to_string()),
            Self::RedisKeys => {
                let keys: Vec<_> = record.seen.keys.iter().map(|key| escape::text(&key.redis_key)).collect();
                Some(keys.join(" "))
            }
        };
        text.unwrap_or_default()
    }
}

/// The codes of a record's findings, an estimate as `~excess-ttl`.
fn codes(record: &Record) -> String {
    let codes = record.findings.iter().map(|finding| [finding.evidence.mark(), finding.code.as_str()].concat());
    codes.collect::<Vec<_>>().join(" ")
}

/// When the lock was taken or the result stored, by the server's clock; `None` where only a schema's default TTL tells.
pub fn created_at(record: &Record) -> Option<String> {
    let age = record.age.filter(|age| age.evidence > Evidence::Estimated)?;
    rfc3339(record.seen.server_ms?.checked_sub(age.millis)?)
}

/// When the record ends by itself, by the server's clock.
pub fn expires_at(record: &Record) -> Option<String> {
    rfc3339(record.deadline()?)
}

pub(super) fn rfc3339(millis: u64) -> Option<String> {
    // Beyond the year 9999 there is no such text.
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis)).filter(|_| millis < 253_402_300_800_000)?;
    Some(humantime::format_rfc3339_millis(time).to_string())
}

/// A row of comma-separated values, quoted as RFC 4180 has it.
pub fn csv(fields: &mut dyn Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        let is_plain = !field.contains([',', '"', '\n', '\r']);
        if is_plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

/// A row of tab-separated values: the escaped text of a value has no tab.
pub fn tsv(fields: &mut dyn Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join("\t") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi, record, text};

    #[test]
    fn a_field_is_quoted_where_a_reader_would_take_it_for_two() {
        let fields = ["a", "b,c", "say \"x\"", ""].map(str::to_owned);
        assert_eq!(csv(&mut fields.clone().into_iter()), "a,\"b,c\",\"say \"\"x\"\"\",\n");
        assert_eq!(tsv(&mut fields.into_iter()), "a\tb,c\tsay \"x\"\t\n");
    }

    #[test]
    fn times_are_absolute_and_an_estimate_is_no_time() {
        // Read at 1,000,000 ms.
        let timed = record("timed", &[(text(r#"{"done":false,"at":940000}"#), Expiry::In(30_000))]);
        assert_eq!(Column::CreatedAt.plain(&timed), "1970-01-01T00:15:40.000Z");
        assert_eq!(Column::ExpiresAt.plain(&timed), "1970-01-01T00:17:10.000Z");
        let estimated = chi(CHI_LOCK, Expiry::In(30_000));
        assert_eq!((estimated.age.is_some(), created_at(&estimated)), (true, None));
        assert_eq!(Column::ExpiresAt.plain(&chi(CHI_LOCK, Expiry::Never)), "");
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn programs_read_numbers_and_people_words() {
        let lock = chi(CHI_LOCK, Expiry::In(30_000));
        assert_eq!((Column::Ttl.plain(&lock), Column::Ttl.shown(&lock)), ("30000".to_owned(), "30s".to_owned()));
        assert_eq!((Column::Owner.plain(&lock), Column::Owner.shown(&lock)), (String::new(), "-".to_owned()));
        assert!(ALL.iter().all(|column| Column::VARIANTS.contains(&column.as_str())));
    }
}
