//! What earlier versions had and this one has not, and what to use instead.

use serde::Deserialize;
use strum::IntoStaticStr;

/// The only list. It is read when something is not understood, so that no start pays for it.
const LIST: &str = include_str!("removed.toml");

/// What kind of thing was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RemovedKind {
    Command,
    /// The name is that of the command and the option.
    Option,
    /// A field of a schema, after the table that had it.
    Word,
    /// A field of the config file.
    Setting,
    /// Of a file.
    Format,
}

/// One removed thing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    pub kind: RemovedKind,
    pub name: String,
    /// The first version without it.
    pub since: String,
    /// What does the same now, as a clause.
    pub instead: String,
}

#[derive(Deserialize)]
struct File {
    removed: Vec<Removed>,
}

impl Removed {
    /// A hint for somebody who used it.
    pub fn hint(&self) -> String {
        format!("removed in {}: {}", self.since, self.instead)
    }
}

/// All of them, in the order of the file.
pub fn all() -> Vec<Removed> {
    match toml::from_str::<File>(LIST) {
        Ok(file) => file.removed,
        // A test reads the file.
        Err(_) => Vec::new(),
    }
}

/// The removed option with this name, if the command line begins with this command.
pub fn option(command: &str, option: &str) -> Option<Removed> {
    find(RemovedKind::Option, &format!("{command} {option}"))
}

/// The thing of this kind and name, if it was removed.
pub fn find(kind: RemovedKind, name: &str) -> Option<Removed> {
    all().into_iter().find(|removed| removed.kind == kind && removed.name == name)
}

/// The field that the error of the TOML parser does not know, if it was removed.
pub fn field_in(kind: RemovedKind, message: &str) -> Option<Removed> {
    let (_, rest) = message.split_once("unknown field `")?;
    let (name, _) = rest.split_once('`')?;
    let is_it = |one: &Removed| one.kind == kind && one.name.rsplit('.').next() == Some(name);
    all().into_iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_names_each_thing_once() {
        let removed = all();
        assert!(!removed.is_empty());
        for one in &removed {
            let twin =
                removed.iter().filter(|other| (other.kind, &other.name) == (one.kind, &one.name));
            assert_eq!(twin.count(), 1, "{one:?}");
            assert!(!one.instead.ends_with('.') && !one.since.is_empty(), "{one:?}");
        }
    }

    #[test]
    fn a_field_is_found_in_the_error_of_the_parser() {
        let message = "unknown field `context`, expected one of `contexts`";
        assert!(field_in(RemovedKind::Setting, message).is_some());
        assert_eq!(field_in(RemovedKind::Word, message), None);
    }
}
