//! What the later parts of a `schema.toml` refer to by name.

use std::collections::BTreeMap;

use crate::domain::schema::forms::ValueCase;
use crate::domain::schema::model::Script;
use crate::domain::schema::role::{self, Role, RoleKey};
use crate::domain::schema::value_template::Place;

pub(super) struct Names {
    /// The version of the file format.
    pub(crate) format: u32,
    pub(crate) scripts: BTreeMap<String, Script>,
    pub(crate) keys: Vec<RoleKey>,
    pub(crate) values: Vec<ValueCase>,
    /// The names of forms that something is wrong with: what refers to them is not wrong for that.
    pub(crate) broken: Vec<String>,
    /// The placeholders of TTLs and values that the file does not give.
    pub(crate) unset: Vec<Place>,
}

impl Names {
    /// The index of the key that a placeholder of this role stands for.
    pub(super) fn index_of(&self, role: Role) -> Option<usize> {
        role::index_of(&self.keys, role)
    }

    /// The index of the key with a role, by the role's word.
    pub(super) fn index_named(&self, role: &str) -> Option<usize> {
        self.keys.iter().position(|key| key.role.as_str() == role)
    }

    /// True for a form that something is wrong with.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        self.broken.iter().any(|broken| broken == name)
    }

    /// The index of the value case with a name, of those at a role.
    pub(super) fn value(&self, role: usize, name: &str) -> Option<usize> {
        self.values.iter().position(|case| case.role == role && case.name == name)
    }
}
