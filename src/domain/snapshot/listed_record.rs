//! A record as a stored list contains it.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::print::KeyPrint;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::Evidence;
use crate::domain::schema::State;
use crate::domain::select::status_class::StatusClass;
use crate::domain::select::{Missing, Selected, Selection, glob};

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
    /// The time left, if the value contained an expiry.
    #[serde(default)]
    pub(crate) ends_in_ms: Option<u64>,
    /// `None` in lists of older versions of the program.
    #[serde(default)]
    pub(crate) no_expiry: Option<bool>,
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

impl ListedRecord {
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
        let only = prints.next()?;
        if prints.next().is_some() {
            return None;
        }
        // A list stores both the absolute expiry and the remaining TTL. Their difference is the
        // time of the read.
        only.expires_at_ms?.checked_sub(ttl)
    }

    /// True if the record's remaining time matches a selection.
    fn passes_ttl(&self, selection: &Selection) -> bool {
        let exists = self.identity.iter().flatten().next().is_some();
        let left = match self.state.as_str() {
            _ if self.ends_in_ms.is_some() => self.ends_in_ms,
            "completed" | "failed" => self.result_ttl_ms,
            _ => self.lock_ttl_ms,
        };
        let never_expires = match self.no_expiry {
            Some(never_expires) => never_expires,
            None => exists && left.is_none() && self.ends_at_ms().is_none(),
        };
        if let Some(limit) = selection.ttl_below
            && left.is_none_or(|left| left >= limit)
        {
            return false;
        }
        // A record without expiry has more time left than any limit.
        if let Some(limit) = selection.ttl_above
            && !never_expires
            && left.is_none_or(|left| left <= limit)
        {
            return false;
        }
        !selection.no_expiry || never_expires
    }

    /// Whether a selection matches the record as it was in the snapshot. Fields that a list does
    /// not contain, such as bodies, are not compared.
    pub(crate) fn selected(&self, selection: &Selection) -> Selected {
        if !self.passes_but_for_age(selection) {
            return Selected::No;
        }
        if selection.older_than.is_none() && selection.newer_than.is_none() {
            return Selected::Yes(());
        }
        // As for records that were just read, an estimated age proves nothing.
        let is_estimated = self.age_evidence.as_deref() == Some(Evidence::Estimated.as_str());
        let ages = selection.older_than.unwrap_or(0)..=selection.newer_than.unwrap_or(u64::MAX);
        match self.age_ms {
            Some(age) if !is_estimated && ages.contains(&age) => Selected::Yes(()),
            Some(_) if !is_estimated => Selected::No,
            _ => Selected::Unproven(Missing::Age),
        }
    }

    fn passes_but_for_age(&self, selection: &Selection) -> bool {
        let mut key = Cow::Borrowed(self.key.as_bytes());
        // A line with damaged Base64 is selected by its escaped key.
        if let Some(text) = &self.key_base64
            && let Ok(bytes) = STANDARD.decode(text)
        {
            key = Cow::Owned(bytes);
        }
        selection.passes_key(&key)
            && self.passes_state(&selection.states)
            && self.passes_status(&selection.statuses)
            && self.passes_findings(&selection.findings)
            && matches_glob(selection.owner_glob.as_deref(), self.owner.as_deref())
            && matches_glob(selection.fingerprint_glob.as_deref(), self.fingerprint.as_deref())
            && self.passes_ttl(selection)
    }

    fn passes_state(&self, states: &[State]) -> bool {
        states.is_empty() || states.iter().any(|state| state.as_str() == self.state)
    }

    fn passes_status(&self, classes: &[StatusClass]) -> bool {
        if classes.is_empty() {
            return true;
        }
        let Some(status) = self.status() else { return false };
        classes.iter().any(|class| class.contains(status))
    }

    fn passes_findings(&self, codes: &[FindingCode]) -> bool {
        if codes.is_empty() {
            return true;
        }
        for finding in &self.findings {
            if codes.iter().any(|code| code.as_str() == finding.code) {
                return true;
            }
        }
        false
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

/// True if there is no glob pattern, or if the text exists and matches it.
fn matches_glob(pattern: Option<&[u8]>, text: Option<&str>) -> bool {
    let Some(pattern) = pattern else { return true };
    let Some(text) = text else { return false };
    glob::matches(pattern, text.as_bytes())
}
