//! The fields of a value format that lists them: the fields that a value has on each level that the
//! service writes.
//!
//! A level is the value itself, or an object in the value of which the schema names a field. All
//! other fields hold data of the client or the handler, and may hold anything.

use std::borrow::Cow;

/// The fields of a value, grouped by level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClosedFields {
    /// The levels; the first is the value itself.
    levels: Vec<Level>,
    /// True if the service's own scripts also reject a value with any other field.
    pub(crate) is_strict: bool,
}

/// An object in a value, and the fields that it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level {
    /// The JSON pointer to the object; empty for the value itself.
    pub(crate) at: String,
    pub(crate) members: Vec<Member>,
}

/// A field of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) is_required: bool,
    /// True if the service's encoder writes `null` for a missing value.
    pub(crate) may_be_null: bool,
    /// The index of the level that this field is, if the schema also names fields in it.
    pub(crate) level: Option<usize>,
}

impl ClosedFields {
    /// Creates the levels from JSON pointers to fields. An object with a required field is itself
    /// required, unless it is listed as optional.
    pub(super) fn new<'a>(
        required: impl IntoIterator<Item = &'a str>,
        optional: &[&str],
        is_strict: bool,
    ) -> Self {
        let mut closed = Self { levels: Vec::new(), is_strict };
        // The value itself is a level even if no field in it is named.
        closed.level("");
        for path in required {
            closed.member(path).is_required = true;
            // A required field cannot exist without the objects around it.
            let mut around = split(path).0;
            while !around.is_empty() {
                closed.member(around).is_required |= !optional.contains(&around);
                around = split(around).0;
            }
        }
        for path in optional {
            closed.member(path);
        }
        closed
    }

    /// The levels; the first is the value itself.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// True if the value itself may have a field of this name.
    pub(crate) fn has_member(&self, name: &str) -> bool {
        let top = self.levels.first();
        top.is_some_and(|level| level.members.iter().any(|member| member.name == name))
    }

    /// The field at a JSON pointer, if it is listed.
    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut Member> {
        let (parent, name) = split(path);
        let level = self.levels.iter_mut().find(|level| level.at == parent)?;
        level.members.iter_mut().find(|member| member.name == name)
    }

    /// Adds a field to its level. Returns `None` if no level contains the field, because any field
    /// may be there anyway.
    pub(crate) fn allow(&mut self, path: &str) -> Option<&mut Member> {
        let (parent, _) = split(path);
        if !self.levels.iter().any(|level| level.at == parent) {
            return None;
        }
        Some(self.member(path))
    }

    /// The JSON pointers of the fields that pass the test.
    pub(crate) fn paths(&self, passes: impl Fn(&Member) -> bool) -> Vec<String> {
        let mut paths = Vec::new();
        for level in &self.levels {
            for member in level.members.iter().filter(|member| passes(member)) {
                paths.push(format!("{}/{}", level.at, escaped(&member.name)));
            }
        }
        paths
    }

    fn member(&mut self, path: &str) -> &mut Member {
        let (parent, name) = split(path);
        let level = self.level(parent);
        let members = &mut self.levels[level].members;
        let index = match members.iter().position(|member| member.name == name) {
            Some(index) => index,
            None => {
                members.push(Member {
                    name: name.into_owned(),
                    is_required: false,
                    may_be_null: false,
                    level: None,
                });
                members.len() - 1
            }
        };
        &mut members[index]
    }

    fn level(&mut self, at: &str) -> usize {
        if let Some(known) = self.levels.iter().position(|level| level.at == at) {
            return known;
        }
        self.levels.push(Level { at: at.to_owned(), members: Vec::new() });
        let index = self.levels.len() - 1;
        if !at.is_empty() {
            self.member(at).level = Some(index);
        }
        index
    }
}

/// Splits a JSON pointer into the pointer to the surrounding object and the unescaped name of the
/// field in it.
fn split(path: &str) -> (&str, Cow<'_, str>) {
    let (parent, step) = path.rsplit_once('/').unwrap_or(("", path));
    (parent, unescaped(step))
}

/// The name of a field, as a step of a JSON pointer has it (RFC 6901).
pub(crate) fn unescaped(step: &str) -> Cow<'_, str> {
    if !step.as_bytes().contains(&b'~') {
        return step.into();
    }
    // `~1` is decoded before `~0`, so that `~01` becomes `~1` and not `/`.
    step.replace("~1", "/").replace("~0", "~").into()
}

/// Escapes a field's name for a JSON pointer (RFC 6901).
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_with_a_named_field_is_a_level() {
        let closed =
            ClosedFields::new(["/status", "/response/code"], &["/response/~1a", "/note"], false);
        let levels: Vec<_> =
            closed.levels().iter().map(|level| (level.at.as_str(), level.members.len())).collect();
        assert_eq!(levels, [("", 3), ("/response", 2)]);
        assert_eq!(
            closed.paths(|member| member.is_required),
            ["/status", "/response", "/response/code"]
        );
        assert_eq!(closed.paths(|member| !member.is_required), ["/note", "/response/~1a"]);
        assert_eq!(closed.levels()[0].members[1].level, Some(1));
        let perhaps = ClosedFields::new(["/a/b"], &["/a"], false);
        assert_eq!(perhaps.paths(|member| member.is_required), ["/a/b"]);
    }

    #[test]
    fn a_field_is_allowed_only_on_a_listed_level() {
        let mut closed = ClosedFields::new(["/status"], &[], false);
        assert!(closed.allow("/trace").is_some() && closed.allow("/headers/trace").is_none());
        assert_eq!(closed.paths(|_| true), ["/status", "/trace"]);
        assert_eq!(closed, ClosedFields::new(["/status"], &["/trace"], false));
    }
}
