//! What the Redis keys of a record are for.

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

/// The index of the key that a placeholder of this role stands for: where one Redis key holds lock and result, that one.
pub(crate) fn index_of(keys: &[RoleKey], role: Role) -> Option<usize> {
    let of = |role| keys.iter().position(|key: &RoleKey| key.role == role);
    of(role).or_else(|| of(Role::Record))
}
