//! A record as a stored list contains it.

use std::hash::{BuildHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::print::KeyPrint;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{Evidence, Record};
use crate::domain::schema::State;
use crate::domain::select::glob;
use crate::domain::select::selection::Selection;
use crate::domain::select::status_class::StatusClass;

/// The fields of a line of `list -o jsonl` that a comparison uses; all other fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ListedRecord {
    pub(crate) schema: String,
    /// The idempotency key; escaped if `key_base64` holds its bytes.
    pub(crate) key: String,
    pub(crate) key_base64: Option<String>,
    pub(crate) redis_keys: Vec<String>,
    pub(crate) state: String,
    pub(crate) owner: Option<String>,
    #[serde(default)]
    pub(crate) fingerprint: Option<String>,
    #[serde(default)]
    pub(crate) response: Option<ListedResponse>,
    #[serde(default)]
    pub(crate) findings: Vec<ListedFinding>,
    #[serde(default)]
    pub(crate) age_ms: Option<u64>,
    /// How the age is known; `None` if it is not.
    #[serde(default)]
    pub(crate) age_evidence: Option<String>,
    #[serde(default)]
    pub(crate) lock_ttl_ms: Option<u64>,
    #[serde(default)]
    pub(crate) result_ttl_ms: Option<u64>,
    /// By Redis key; null for one that did not exist.
    pub(crate) identity: Vec<Option<KeyPrint>>,
}

/// The stored response, as a line contains it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ListedResponse {
    pub(crate) status: Option<i64>,
}

/// A finding, as a line contains it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ListedFinding {
    pub(crate) code: String,
}

/// Whether a selection matches a record of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelectedEntry {
    Yes,
    No,
    /// Only its age decides, and nothing proves its age.
    AgeUnproven,
}

impl ListedRecord {
    /// The line for a record that was just read.
    pub(crate) fn of(record: &Record) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_text = std::str::from_utf8(&record.key).is_ok();
        Self {
            schema: record.schema.name.clone(),
            key: text(&record.key),
            key_base64: (!is_text).then(|| STANDARD.encode(&record.key)),
            redis_keys: record.seen.keys.iter().map(|key| text(&key.redis_key)).collect(),
            state: record.state.as_str().to_owned(),
            owner: record.owner().map(text),
            fingerprint: record.fingerprint().map(str::to_owned),
            response: record.stored().map(|response| ListedResponse { status: response.status }),
            findings: record
                .findings
                .iter()
                .map(|finding| ListedFinding { code: finding.code.as_str().to_owned() })
                .collect(),
            age_ms: record.age.map(|age| age.millis),
            age_evidence: record.age.map(|age| age.evidence.as_str().to_owned()),
            lock_ttl_ms: record.lock().and_then(|key| key.expiry.millis()),
            result_ttl_ms: record.result().and_then(|key| key.expiry.millis()),
            identity: record.seen.keys.iter().map(KeyPrint::of).collect(),
        }
    }

    /// The HTTP status of the stored response.
    pub(crate) fn status(&self) -> Option<i64> {
        self.response.as_ref()?.status
    }

    /// The time at which the record expires, in milliseconds since the epoch; `None` if one of its
    /// Redis keys has no expiry.
    pub(crate) fn ends_at_ms(&self) -> Option<u64> {
        let mut last = None;
        for print in self.identity.iter().flatten() {
            last = last.max(Some(print.expires_at_ms?));
        }
        last
    }

    /// The time at which the record was read, by the server's clock in milliseconds since the
    /// epoch; `None` if it cannot be derived from the line.
    pub(crate) fn read_at_ms(&self) -> Option<u64> {
        let ttl = match (self.lock_ttl_ms, self.result_ttl_ms) {
            (Some(ttl), None) | (None, Some(ttl)) => ttl,
            // With two TTLs it is unknown which of them belongs to which Redis key.
            _ => return None,
        };
        let mut prints = self.identity.iter().flatten();
        let (only, None) = (prints.next()?, prints.next()) else { return None };
        // A list stores both the absolute expiry and the remaining TTL. Their difference is the
        // time of the read.
        only.expires_at_ms?.checked_sub(ttl)
    }

    /// True if the record's remaining time matches a selection.
    fn passes_ttl(&self, selection: &Selection) -> bool {
        let is_there = self.identity.iter().flatten().next().is_some();
        let left = match self.state.as_str() {
            "completed" => self.result_ttl_ms,
            _ => self.lock_ttl_ms,
        };
        let stays = is_there && left.is_none() && self.ends_at_ms().is_none();
        selection.ttl_below.is_none_or(|limit| left.is_some_and(|left| left < limit))
            && selection
                .ttl_above
                .is_none_or(|limit| stays || left.is_some_and(|left| left > limit))
            && (!selection.no_expiry || stays)
    }

    /// Whether a selection matches the record as it was in the snapshot. Fields that a list does
    /// not contain, such as bodies, are not compared.
    pub(crate) fn selected(&self, selection: &Selection) -> SelectedEntry {
        let ages = selection.older_than.unwrap_or(0)..=selection.newer_than.unwrap_or(u64::MAX);
        let asks_age = selection.older_than.is_some() || selection.newer_than.is_some();
        let is_proven = self.age_evidence.as_deref() != Some(Evidence::Estimated.as_str());
        if !self.passes_but_for_age(selection) {
            return SelectedEntry::No;
        }
        match self.age_ms.filter(|_| is_proven) {
            _ if !asks_age => SelectedEntry::Yes,
            Some(age) if ages.contains(&age) => SelectedEntry::Yes,
            Some(_) => SelectedEntry::No,
            None => SelectedEntry::AgeUnproven,
        }
    }

    fn passes_but_for_age(&self, selection: &Selection) -> bool {
        let has = |glob: &Option<Vec<u8>>, text: &Option<String>| {
            let text = text.as_ref().map(String::as_bytes);
            glob.as_ref().is_none_or(|glob| text.is_some_and(|text| glob::matches(glob, text)))
        };
        let key = self.key_base64.as_ref().and_then(|key| STANDARD.decode(key).ok());
        let is_in = |state: &State| state.as_str() == self.state;
        let has_status =
            |class: &StatusClass| self.status().is_some_and(|status| class.contains(status));
        let is_found =
            |code: &FindingCode| self.findings.iter().any(|finding| finding.code == code.as_str());
        selection.passes_key(key.as_deref().unwrap_or(self.key.as_bytes()))
            && (selection.states.is_empty() || selection.states.iter().any(is_in))
            && (selection.statuses.is_empty() || selection.statuses.iter().any(has_status))
            && (selection.findings.is_empty() || selection.findings.iter().any(is_found))
            && has(&selection.owner_glob, &self.owner)
            && has(&selection.fingerprint_glob, &self.fingerprint)
            && self.passes_ttl(selection)
    }

    /// A hash of the record's identity, independent of its state. The same hasher gives the same
    /// number for the same record.
    pub(super) fn place(&self, by: &impl BuildHasher) -> u64 {
        let mut hasher = by.build_hasher();
        self.schema.hash(&mut hasher);
        match &self.key_base64 {
            // The Redis keys of such a record are not UTF-8 either, so their text does not identify
            // them.
            Some(key) => (true, key, self.redis_keys.len()).hash(&mut hasher),
            None => (false, &self.key, &self.redis_keys).hash(&mut hasher),
        }
        hasher.finish()
    }
}
