//! The Redis keys of a record: what each is for, and the prefix before them.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::key_template::KeyTemplate;
use crate::domain::as_str::as_str;

/// What one Redis key of a record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// Lock and result in one key.
    Record,
    Lock,
    Result,
}

as_str!(Role);

/// One Redis key of a record. Where a role is a number it is the index of such a key in [`super::Schema::keys`].
#[derive(Debug, Clone)]
pub struct RoleKey {
    pub(crate) role: Role,
    pub(crate) template: KeyTemplate,
}

/// The index of the key that a placeholder of this role stands for. A key that holds lock and result stands for both.
pub(crate) fn index_of(keys: &[RoleKey], role: Role) -> Option<usize> {
    let named = keys.iter().position(|key| key.role == role);
    named.or_else(|| keys.iter().position(|key| key.role == Role::Record))
}

/// The prefix of a schema's Redis keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The text in use: the deployment's, else the schema's own.
    pub(crate) text: String,
    pub(crate) place: PrefixPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PrefixPlace {
    /// Where the key templates write `{prefix}`.
    Written,
    /// Where the key templates and the steps write `{prefix}`: in the key that scripts are sent, and build Redis keys from.
    InKey,
    /// In front of every Redis key, for the key templates write no `{prefix}`.
    InFront,
    /// Nowhere but where the schema's own stands, for this reason.
    Nowhere(String),
}

as_str!(PrefixPlace);

impl PrefixPlace {
    /// Why a deployment can set no prefix; `None` where it can.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Nowhere(why) => Some(why),
            _ => None,
        }
    }
}

/// The prefixes of Redis keys that a deployment sets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Prefixes<'a> {
    pub(crate) own: Option<&'a str>,
    /// The prefix of the Redis keys of every schema whose key templates say where a prefix stands.
    pub(crate) shared: Option<&'a str>,
}
