//! The Redis keys of a record: what each is for, the prefix before them, and the way from an idempotency key to its
//! Redis keys and back.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::key_template::{Exclusion, KeyTemplate};
use super::model::Schema;
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

impl Schema {
    /// The role of a Redis key, and the idempotency key in it: where the templates of both roles fit, the longer one wins.
    pub(crate) fn role_of<'a>(&self, redis_key: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let fitting = self.keys.iter().enumerate().filter_map(|(role, of_role)| {
            Some((of_role.template.specificity(), role, of_role.template.idempotency_key(redis_key)?))
        });
        fitting
            .max_by_key(|(specificity, role, _)| (*specificity, std::cmp::Reverse(*role)))
            .map(|(_, role, key)| (role, key))
    }

    /// True when a key has Redis keys of its own: each is what its role's template says, and no other role's.
    pub(crate) fn takes_key(&self, key: &[u8]) -> bool {
        let is_own = |(role, of_role): (usize, &RoleKey)| {
            self.role_of(&of_role.template.redis_key(key)).is_some_and(|(found, of)| found == role && of == key)
        };
        !key.is_empty() && self.keys.iter().enumerate().all(is_own)
    }

    /// The Redis keys of an idempotency key, the lock's first.
    pub fn redis_keys(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.keys.iter().map(|of_role| of_role.template.redis_key(key)).collect()
    }

    /// By which word a Redis key is none of the schema's, though a template's literals fit; `None` where it is, or none fits.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<Exclusion> {
        let is_own = self.role_of(redis_key).is_some();
        self.keys.iter().find_map(|key| key.template.leaves_out(redis_key)).filter(|_| !is_own)
    }

    /// The templates of its Redis keys, the lock's first, as its `schema.toml` writes templates.
    pub(crate) fn templates(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.template.display()).collect()
    }

    /// The pattern that its keys are of.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        self.keys.first().and_then(|key| key.template.key_pattern())
    }

    /// The templates of Redis keys that are no records, which each of its Redis keys leaves out alike.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let ignored = self.keys.first().map(|key| key.template.ignored()).unwrap_or_default();
        ignored.iter().map(|template| template.display()).collect()
    }
}
