//! The fields of a value format that lists them: which fields a value has on the levels that the service writes.
//!
//! A level is an object in the value: the value itself, or an object in it of which the schema names a field. All other
//! fields hold what the client or the handler wrote, and may hold anything.

use std::borrow::Cow;

/// The fields of a value, by levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClosedFields {
    /// The levels, the value itself first.
    levels: Vec<Level>,
    /// True if the service's scripts, too, reject a value with any other field.
    pub(crate) is_strict: bool,
}

/// An object of a value, and the fields that it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level {
    /// The JSON pointer to it; empty for the value itself.
    pub(crate) at: String,
    pub(crate) members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) is_required: bool,
    /// True if the service's encoder writes `null` for what is missing.
    pub(crate) may_be_null: bool,
    /// The level that it is, if the schema names its fields as well.
    pub(crate) level: Option<usize>,
}

impl ClosedFields {
    /// The fields at these pointers. An object with a required field is required itself, unless it is named as optional.
    pub(super) fn new<'a>(
        required: impl IntoIterator<Item = &'a str>,
        optional: &[&str],
        is_strict: bool,
    ) -> Self {
        let mut closed = Self { levels: Vec::new(), is_strict };
        closed.level("");
        for path in required {
            closed.member(path).is_required = true;
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

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The field at a pointer, if it is one of these.
    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut Member> {
        let (parent, name) = split(path);
        let level = self.levels.iter_mut().find(|level| level.at == parent)?;
        level.members.iter_mut().find(|member| member.name == name)
    }

    /// Adds a field to its level; `None` if the field is on no level of these, where any field may be anyway.
    pub(crate) fn allow(&mut self, path: &str) -> Option<&mut Member> {
        let (parent, _) = split(path);
        if !self.levels.iter().any(|level| level.at == parent) {
            return None;
        }
        Some(self.member(path))
    }

    /// The pointers of the fields that pass.
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

/// The pointer of the object that a pointer leads into, and the name of the field there.
fn split(path: &str) -> (&str, Cow<'_, str>) {
    let (parent, step) = path.rsplit_once('/').unwrap_or(("", path));
    let name = if step.contains('~') {
        step.replace("~1", "/").replace("~0", "~").into()
    } else {
        step.into()
    };
    (parent, name)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_every_object_of_which_a_field_is_named() {
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
    fn a_field_is_allowed_where_its_level_is_closed() {
        let mut closed = ClosedFields::new(["/status"], &[], false);
        assert!(closed.allow("/trace").is_some() && closed.allow("/headers/trace").is_none());
        assert_eq!(closed.paths(|_| true), ["/status", "/trace"]);
        assert_eq!(closed, ClosedFields::new(["/status"], &["/trace"], false));
    }
}
