//! A profile: what a specification or a provider asks of a service.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::template::KeyForm;
use crate::domain::duration::parse_duration;

/// A profile, as `profiles/*.toml` describe it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProbeProfile {
    pub(crate) name: String,
    pub(crate) title: String,
    /// The URL of the specification.
    pub(crate) source: String,
    /// What readers must know of the specification, such as that it expired.
    #[serde(default)]
    pub(crate) note: Option<String>,
    pub(crate) key: ProfileKey,
    /// The shortest time for which a service keeps results, as it promises to its clients.
    #[serde(default, deserialize_with = "duration")]
    pub(crate) retention: Option<Duration>,
    pub(crate) statuses: ProfileStatuses,
    /// The checks that the profile judges, by their ids. All others are reported.
    pub(crate) checks: BTreeMap<String, ProfileClause>,
}

/// Where a key is, and how it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProfileKey {
    /// The name of the header.
    pub(crate) header: Option<String>,
    /// The JSON pointer in the body.
    pub(crate) field: Option<String>,
    /// True if the header is a String of RFC 8941, in quotation marks.
    #[serde(default)]
    pub(crate) quoted: bool,
}

/// The status codes of rejections.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProfileStatuses {
    /// A request without a key.
    pub(crate) missing_key: Vec<u16>,
    /// A key that was used with another payload. Empty if the specification names no status: then every
    /// rejection counts.
    pub(crate) mismatch: Vec<u16>,
    /// A request while another one with the key is being processed.
    pub(crate) conflict: Vec<u16>,
}

/// The rule behind a judged check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileClause {
    /// The section, such as `section 2.7`.
    pub(crate) clause: String,
    /// What it asks, in short.
    pub(crate) rule: String,
}

impl ProbeProfile {
    /// Parses a profile.
    ///
    /// # Errors
    /// The text is not TOML, or a field is missing or unknown.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let profile: Self = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if profile.key.header.is_some() == profile.key.field.is_some() {
            return Err("[key] needs either `header` or `field`".to_owned());
        }
        Ok(profile)
    }

    pub(crate) fn form(&self) -> KeyForm {
        if self.key.quoted { KeyForm::Quoted } else { KeyForm::Bare }
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match parse_duration(&text) {
        Ok(duration) => Ok(Some(duration)),
        Err(why) => Err(D::Error::custom(format_args!("`retention`: {why}"))),
    }
}
