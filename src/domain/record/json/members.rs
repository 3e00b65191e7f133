//! Collects the members of an object, from JSON or from a packed value.

use std::borrow::Cow;
use std::collections::HashMap;

use super::value::Json;

/// Up to this many members, a search for a repeated name goes through all of them; beyond, it uses
/// an index.
const FEW_MEMBERS: usize = 64;

/// The members of an object. If a name occurs twice, the last value counts, at the position of the
/// first.
#[derive(Default)]
pub(crate) struct Members<'a> {
    members: Vec<(Cow<'a, str>, Json<'a>)>,
    /// The position of each name, once there are more than a few.
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Members<'a> {
    /// Adds a member, or replaces the value of the member with this name.
    pub(crate) fn put(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        let count = self.members.len();
        if count == 0 {
            // Most records have five to eight members.
            self.members.reserve(8);
        }
        if count == FEW_MEMBERS && self.places.is_empty() {
            self.places.reserve(count);
            for (place, (name, _)) in self.members.iter().enumerate() {
                self.places.insert(name.clone(), place);
            }
        }
        let known = match count {
            ..FEW_MEMBERS => self.members.iter().position(|(known, _)| *known == name),
            _ => self.places.get(&name).copied(),
        };
        if let Some(place) = known {
            self.members[place].1 = value;
            return;
        }
        if count >= FEW_MEMBERS {
            self.places.insert(name.clone(), count);
        }
        self.members.push((name, value));
    }

    /// The members, each name once.
    pub(crate) fn into_inner(self) -> Vec<(Cow<'a, str>, Json<'a>)> {
        self.members
    }
}
