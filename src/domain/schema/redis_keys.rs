//! The Redis keys of a record: the role of each, and their prefix.

use strum::IntoStaticStr;

use super::key_template::KeyTemplate;
use crate::domain::as_str::as_str;

/// The role of one Redis key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// One key holds the lock first, and then the result.
    Record,
    Lock,
    Result,
}

as_str!(Role);

/// One Redis key of a record. A `key_index` is the index of such a key in
/// [`super::Schema::keys`].
#[derive(Debug, Clone)]
pub struct RoleKey {
    pub(crate) role: Role,
    pub(crate) template: KeyTemplate,
}

/// The index of the key that a placeholder for this role refers to. A key with the role `record`
/// serves as both lock and result.
pub(crate) fn index_of(keys: &[RoleKey], role: Role) -> Option<usize> {
    let named = keys.iter().position(|key| key.role == role);
    named.or_else(|| keys.iter().position(|key| key.role == Role::Record))
}

/// The index of the key that holds the result. It is the same as that of the lock, 0, if they share
/// a Redis key or the service stores only one of them.
pub(crate) fn result_key_index(keys: &[RoleKey]) -> usize {
    // The parser lists the lock first, then the result.
    match keys.get(1) {
        Some(second) if second.role == Role::Result => 1,
        _ => 0,
    }
}

/// The prefix of a schema's Redis keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The text in use: the deployment's prefix if it sets one, otherwise the schema's own.
    pub(crate) text: String,
    pub(crate) place: PrefixPlace,
    /// True if it is the one under which the schema itself writes.
    pub(crate) is_own: bool,
    /// True if the deployment sets it, whatever the schema's own is.
    pub(crate) is_set: bool,
}

/// Where a deployment's prefix is placed in the Redis keys.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PrefixPlace {
    /// At `{prefix}` in the key templates.
    Written,
    /// At `{prefix}` in the key templates and in the steps: the key that scripts receive, and build
    /// Redis keys from, contains the prefix.
    InKey,
    /// At the beginning of every Redis key, because the key templates have no `{prefix}`.
    InFront,
    /// A deployment cannot set a prefix, for this reason. Only the schema's own prefix is used.
    Nowhere(String),
}

as_str!(PrefixPlace);

impl PrefixPlace {
    /// Why a deployment cannot set a prefix; `None` if it can.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Nowhere(why) => Some(why),
            _ => None,
        }
    }
}

/// The prefixes that a deployment sets for Redis keys.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Prefixes<'a> {
    /// The prefix for this schema alone; it wins over `shared`.
    pub(crate) own: Option<&'a str>,
    /// The prefix for every schema whose key templates contain `{prefix}` and whose steps do not.
    pub(crate) shared: Option<&'a str>,
}
