//! The names in a `schema.toml` that later parts of the file refer to.

use std::collections::BTreeMap;

use crate::domain::schema::model::Script;
use crate::domain::schema::redis_keys::{self, Role, RoleKey};
use crate::domain::schema::value_format::ValueFormat;
use crate::domain::schema::value_template::Placeholder;

/// The resolved parts of a file, which the later parts refer to by name.
pub(super) struct SymbolTable {
    pub(super) scripts: BTreeMap<String, Script>,
    pub(super) keys: Vec<RoleKey>,
    pub(super) values: Vec<ValueFormat>,
    /// The names of value formats with errors. A reference to one of them is not a further error.
    pub(super) broken: Vec<String>,
    /// The placeholders of TTLs and values that the file does not define.
    pub(super) unset: Vec<Placeholder>,
}

impl SymbolTable {
    pub(super) fn new(scripts: BTreeMap<String, Script>, keys: Vec<RoleKey>) -> Self {
        Self { scripts, keys, values: Vec::new(), broken: Vec::new(), unset: Vec::new() }
    }

    /// The index of the key that a placeholder for this role refers to.
    pub(super) fn index_of(&self, role: Role) -> Option<usize> {
        redis_keys::index_of(&self.keys, role)
    }

    /// The index of the key with this name in `[keys]`.
    pub(super) fn index_named(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|key| key.role.as_str() == name)
    }

    /// True if the lock and the result have different Redis keys.
    pub(super) fn has_separate_result(&self) -> bool {
        redis_keys::result_key_index(&self.keys) > 0
    }

    /// True if the value format with this name has an error.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        self.broken.iter().any(|broken| broken == name)
    }

    /// The index of the value format with this name at a Redis key.
    pub(super) fn value(&self, key_index: usize, name: &str) -> Option<usize> {
        self.values.iter().position(|value| value.key_index == key_index && value.name == name)
    }
}
