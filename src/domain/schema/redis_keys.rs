//! The Redis keys of a schema: of an idempotency key, and back.

use super::key_template::LeftOut;
use super::model::Schema;
use super::role::RoleKey;

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
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<LeftOut> {
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
