//! Positions in a `schema.toml`: a path of keys and indexes, and the line that the path leads to.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key of a step that holds its calls.
pub(super) const CALL: &str = "call";

/// The key of a call that holds its replies.
pub(super) const REPLIES: &str = "replies";

/// One step of a path in `schema.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// An error and its path. Each caller adds its part of the path as the error is returned, so that a
/// valid file costs nothing.
#[derive(Debug)]
pub(super) struct Wrong {
    path: Vec<Segment>,
    pub(crate) message: String,
}

/// The checked value, or the first error in it.
pub(super) type Checked<T> = Result<T, Wrong>;

/// An error whose path is still empty.
pub(super) fn wrong<T>(message: impl Into<String>) -> Checked<T> {
    Err(Wrong { path: Vec::new(), message: message.into() })
}

/// Adds to an error's path the place of the checked part in the part around it.
pub(super) trait At {
    fn at(self, segment: impl Into<Segment>) -> Self;
}

impl<T> At for Checked<T> {
    fn at(self, segment: impl Into<Segment>) -> Self {
        self.map_err(|mut wrong| {
            wrong.path.push(segment.into());
            wrong
        })
    }
}

/// The checked value, or all errors in it.
pub(super) type AllChecked<T> = Result<T, Vec<Wrong>>;

impl<T> At for AllChecked<T> {
    fn at(self, segment: impl Into<Segment>) -> Self {
        let segment = segment.into();
        self.map_err(|mut all| {
            for wrong in &mut all {
                wrong.path.push(segment.clone());
            }
            all
        })
    }
}

/// Turns a single error into a list of errors.
pub(super) fn all<T>(checked: Checked<T>) -> AllChecked<T> {
    checked.map_err(|wrong| vec![wrong])
}

impl Wrong {
    /// The message. It names the field if the error is in a call, because a call has many fields on
    /// few lines.
    pub(super) fn told(&self) -> String {
        let mut keys = Vec::new();
        let mut is_in_call = false;
        // The path is stored from the inside out.
        for segment in self.path.iter().rev() {
            let Segment::Key(key) = segment else { continue };
            if is_in_call {
                keys.push(key.as_str());
            } else if key == CALL {
                is_in_call = true;
            }
        }
        in_field(&self.message, &keys)
    }

    /// The line of the error, from 1.
    pub(super) fn line(&self, toml: &str) -> usize {
        line_at(toml, self.path.iter().rev())
    }
}

/// The message of an error in this field of a call, given by its keys from the outside in. Without
/// keys, the message is about the whole call. For an error in a reply, only the reply's own field
/// is named.
pub(super) fn in_field(message: &str, keys: &[&str]) -> String {
    let keys = keys.strip_prefix(&[REPLIES]).unwrap_or(keys);
    if keys.is_empty() {
        message.to_owned()
    } else {
        format!("{message} (in `{}`)", keys.join("."))
    }
}

/// The line of a key on the outermost level, from 1.
pub(crate) fn line_of_key(toml: &str, key: &str) -> usize {
    line_at(toml, [&key.into()].into_iter())
}

/// The line that a path leads to. If part of the path does not exist, the line of the nearest
/// existing part.
fn line_at<'a>(toml: &str, path: impl Iterator<Item = &'a Segment>) -> usize {
    // Parsed again, because only an error needs positions and most files have none.
    let Ok(table) = DeTable::parse(toml) else { return 1 };
    let root = Spanned::new(0..0, DeValue::Table(table.into_inner()));
    let mut here = &root;
    for segment in path {
        let inside = match segment {
            Segment::Key(key) => here.get_ref().get(key),
            Segment::Index(index) => here.get_ref().get(*index),
        };
        match inside {
            Some(inside) => here = inside,
            None => break,
        }
    }
    line_of(toml, here.span().start)
}

/// The line of a byte offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "a = 1\n[b]\nc = [\n  { d = 1 },\n  { d = 2,\n    e = 3 },\n]\n[[f.g]]\nh = 1\n[[f.g]]\nh = 2\n";

    #[track_caller]
    fn leads_to(line: usize, path: &[Segment]) {
        assert_eq!(line_at(TOML, path.iter()), line, "{path:?}");
    }

    #[test]
    fn a_path_leads_to_its_line() {
        leads_to(1, &["a".into()]);
        leads_to(2, &["b".into()]);
        leads_to(5, &["b".into(), "c".into(), 1.into(), "d".into()]);
        leads_to(6, &["b".into(), "c".into(), 1.into(), "e".into()]);
        leads_to(11, &["f".into(), "g".into(), 1.into(), "h".into()]);
    }

    #[test]
    fn a_path_grows_from_the_inside_out() {
        let wrong = wrong::<()>("").at("e").at(1).at("c").at("b").unwrap_err();
        assert_eq!(wrong.line(TOML), 6);
    }

    #[test]
    fn a_path_to_nothing_leads_to_the_nearest_existing_part() {
        leads_to(1, &[]);
        leads_to(1, &["nothing".into()]);
        leads_to(1, &["a".into(), "nothing".into()]);
        leads_to(4, &["b".into(), "c".into(), 0.into(), "e".into()]);
        leads_to(3, &["b".into(), "c".into(), 2.into(), "d".into()]);
        leads_to(10, &["f".into(), "g".into(), 1.into(), "nothing".into(), 3.into()]);
    }
}
