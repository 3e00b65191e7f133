//! The dimensions by which records are counted.

use bstr::ByteSlice as _;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::Record;

/// The dimension by which records are counted, in addition to their schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum StatsDimension {
    /// The record's state.
    State,
    /// The owner of the lock.
    Owner,
    /// The Redis key up to its last colon, or up to the idempotency key.
    Prefix,
    /// The HTTP status of the stored response.
    Status,
    /// Each finding; a record with two findings counts twice.
    Finding,
}

as_str!(StatsDimension);

impl StatsDimension {
    /// The groups in which a record counts: one, or one per finding. `None` is the group of records
    /// without owner, status or finding.
    pub(super) fn groups(self, record: &Record) -> Vec<Option<Vec<u8>>> {
        let group = match self {
            Self::State => Some(record.state.as_str().as_bytes().to_vec()),
            Self::Owner => record.owner().map(<[u8]>::to_vec),
            Self::Prefix => prefix(record),
            Self::Status => {
                let status = record.stored().and_then(|response| response.status);
                status.map(|status| status.to_string().into_bytes())
            }
            Self::Finding if record.findings.is_empty() => None,
            Self::Finding => {
                let mut groups = Vec::with_capacity(record.findings.len());
                for finding in &record.findings {
                    groups.push(Some(finding.code.as_str().as_bytes().to_vec()));
                }
                return groups;
            }
        };
        vec![group]
    }
}

fn prefix(record: &Record) -> Option<Vec<u8>> {
    let redis_key = &record.lock().or_else(|| record.result())?.redis_key;
    let end = match redis_key.rfind_byte(b':') {
        Some(colon) => colon + 1,
        None => redis_key.rfind(&record.key)?,
    };
    Some(redis_key[..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    fn only(by: StatsDimension, record: &Record) -> Option<String> {
        let groups = by.groups(record);
        assert_eq!(groups.len(), 1);
        groups[0].as_ref().map(|group| String::from_utf8(group.clone()).unwrap())
    }

    #[test]
    fn a_record_counts_in_the_group_of_the_dimension() {
        let (lock, result) =
            (chi(CHI_LOCK, TimeLeft::Millis(9)), chi(CHI_RESULT, TimeLeft::Millis(9)));
        assert_eq!(only(StatsDimension::State, &lock).as_deref(), Some("in-progress"));
        assert_eq!(only(StatsDimension::Status, &lock), None);
        assert_eq!(
            only(StatsDimension::Status, &result),
            Some(result.response().unwrap().status.unwrap().to_string())
        );
        assert_eq!(only(StatsDimension::Owner, &lock), None);
        let owned = record(
            "event-driven",
            &[(text("w"), TimeLeft::Millis(9)), (text(""), TimeLeft::Millis(0))],
        );
        assert_eq!(only(StatsDimension::Owner, &owned).as_deref(), Some("w"));
        assert!(only(StatsDimension::Prefix, &owned).unwrap().ends_with(':'));
        assert_eq!(only(StatsDimension::Finding, &lock), None);
    }
}
