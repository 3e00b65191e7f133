//! What the later parts of a `schema.toml` refer to by name.

use std::collections::BTreeMap;

use crate::domain::schema::forms::ValueCase;
use crate::domain::schema::model::Script;
use crate::domain::schema::role::SlotKey;

pub(super) struct Names {
    pub(crate) scripts: BTreeMap<String, Script>,
    pub(crate) slots: Vec<SlotKey>,
    pub(crate) values: Vec<ValueCase>,
}

impl Names {
    /// The index of the slot with a role, by the role's word.
    pub(super) fn slot(&self, role: &str) -> Option<usize> {
        self.slots.iter().position(|slot| slot.role.as_str() == role)
    }

    /// The index of the value case with a name, of those at a slot.
    pub(super) fn value(&self, slot: usize, name: &str) -> Option<usize> {
        self.values.iter().position(|case| case.slot == slot && case.name == name)
    }
}
