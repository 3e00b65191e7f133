//! Key templates: where a schema keeps a record, and back from a Redis key to the idempotency key.

use strum::IntoStaticStr;

use super::key_parts::{self, KeyPart, Shape};
use crate::domain::as_str::as_str;

/// One Redis key pattern of a schema: the literal bytes before and after the idempotency key, and what the key looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    before: Vec<u8>,
    after: Vec<u8>,
    key: KeyShape,
    /// Redis keys of these templates are not of this one.
    ignored: Vec<KeyTemplate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyShape {
    Any,
    /// Groups in front of the client's key or behind, or a pattern of the client's key.
    Shaped(Shape),
    /// One Redis key for all: there is no key in it, and the Redis key stands for one.
    Fixed,
}

/// The word of `[keys]` by which a schema takes Redis keys of its templates for none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Exclusion {
    Key,
    Ignore,
}

as_str!(Exclusion);

impl KeyTemplate {
    /// Parses `idem:lock:{key}`, with `{prefix}` replaced by the deployment's prefix.
    ///
    /// # Errors
    /// Why the text is not a template, such as a second `{key}`, or groups without one.
    pub(crate) fn parse(text: &str, prefix: &str) -> Result<Self, String> {
        let parts = key_parts::parse(text, prefix)?;
        let keys = parts.iter().filter(|part| **part == KeyPart::Key).count();
        if keys > 1 {
            return Err(format!("`{text}` has {{key}} more than once"));
        }
        if keys == 0 {
            return match parts.as_slice() {
                [KeyPart::Literal(fixed)] => Ok(Self::fixed(fixed)),
                _ => Err(format!("`{text}` has no {{key}}")),
            };
        }
        // Literals are never next to each other, so that there is one at most on either side.
        let (before, rest) = match parts.split_first() {
            Some((KeyPart::Literal(before), rest)) => (before.clone(), rest),
            _ => (Vec::new(), &parts[..]),
        };
        let (places, after) = match rest.split_last() {
            Some((KeyPart::Literal(after), places)) => (places, after.clone()),
            _ => (rest, Vec::new()),
        };
        let key = if places == [KeyPart::Key] {
            KeyShape::Any
        } else {
            KeyShape::Shaped(Shape::new(places, None)?)
        };
        Ok(Self { before, after, key, ignored: Vec::new() })
    }

    fn fixed(redis_key: &[u8]) -> Self {
        Self {
            before: redis_key.to_vec(),
            after: Vec::new(),
            key: KeyShape::Fixed,
            ignored: Vec::new(),
        }
    }

    /// The template of keys between these literal bytes.
    pub(crate) fn around(before: &[u8], after: &[u8]) -> Self {
        Self {
            before: before.to_vec(),
            after: after.to_vec(),
            key: KeyShape::Any,
            ignored: Vec::new(),
        }
    }

    /// This template with more literal bytes in front.
    #[must_use]
    pub(crate) fn behind(self, prefix: &str) -> Self {
        let ignored = self.ignored.into_iter().map(|ignored| ignored.behind(prefix)).collect();
        Self { before: [prefix.as_bytes(), &self.before].concat(), ignored, ..self }
    }

    /// This template, whose `{key}` is of a pattern.
    ///
    /// # Errors
    /// Why the pattern is none.
    pub(crate) fn matching(self, pattern: &str) -> Result<Self, String> {
        let key = match self.key {
            KeyShape::Any => KeyShape::Shaped(Shape::new(&[KeyPart::Key], Some(pattern))?),
            KeyShape::Shaped(shape) => KeyShape::Shaped(Shape::new(shape.parts(), Some(pattern))?),
            KeyShape::Fixed => {
                return Err(
                    "a template without {key} has nothing that `key` could be of".to_owned()
                );
            }
        };
        Ok(Self { key, ..self })
    }

    /// This template, to which Redis keys of those do not belong.
    #[must_use]
    pub(crate) fn without(self, ignored: &[Self]) -> Self {
        Self { ignored: ignored.to_vec(), ..self }
    }

    /// The templates whose Redis keys are not of this one.
    pub(crate) fn ignored(&self) -> &[Self] {
        &self.ignored
    }

    pub(crate) fn redis_key(&self, key: &[u8]) -> Vec<u8> {
        match self.key {
            KeyShape::Fixed => self.before.clone(),
            _ => [&self.before, key, &self.after].concat(),
        }
    }

    /// The idempotency key inside a Redis key, or `None` when the Redis key is not of this template.
    pub(crate) fn idempotency_key<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        let key = self.between(redis_key)?;
        let is_key = match &self.key {
            KeyShape::Any => self.may_be_key(key),
            KeyShape::Shaped(shape) => shape.fits(key),
            KeyShape::Fixed => return key.is_empty().then_some(redis_key),
        };
        (is_key && !self.ignores(redis_key)).then_some(key)
    }

    /// What the client handed in, in an idempotency key of this template: the key without the groups before and behind.
    pub(crate) fn client_key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        match &self.key {
            KeyShape::Shaped(shape) => shape.key_in(key),
            KeyShape::Any | KeyShape::Fixed => key,
        }
    }

    /// By which word a Redis key is not of this template though its literals fit; `None` where it is, or they do not.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<Exclusion> {
        let key = self.between(redis_key)?;
        let has_parts = match &self.key {
            KeyShape::Any => self.may_be_key(key),
            KeyShape::Shaped(shape) => shape.has_parts(key),
            KeyShape::Fixed => key.is_empty(),
        };
        match &self.key {
            _ if !has_parts => None,
            _ if self.ignores(redis_key) => Some(Exclusion::Ignore),
            KeyShape::Shaped(shape) if !shape.fits(key) => Some(Exclusion::Key),
            _ => None,
        }
    }

    /// A client may send an empty key, and no service refuses it. Only literal bytes around it make a Redis key that is known.
    fn may_be_key(&self, key: &[u8]) -> bool {
        !key.is_empty() || self.specificity() > 0
    }

    fn ignores(&self, redis_key: &[u8]) -> bool {
        self.ignored.iter().any(|ignored| ignored.idempotency_key(redis_key).is_some())
    }

    /// The idempotency key inside a Redis key that is of this template.
    pub(crate) fn key_in<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_fixed() { Some(redis_key) } else { self.between(redis_key) }
    }

    /// What stands between the literal bytes of the template. The end first: a scan asks this of every Redis key several times,
    /// also for a dozen siblings that begin alike, and nearly no template goes on behind the key.
    fn between<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        let Some(last) = self.after.last() else { return redis_key.strip_prefix(&self.before[..]) };
        // One byte first: it rules nearly every other key out.
        if redis_key.last() != Some(last) {
            return None;
        }
        redis_key.strip_suffix(&self.after[..])?.strip_prefix(&self.before[..])
    }

    /// The text between the first place and the last one; `None` where `{key}` is the only one.
    pub(crate) fn groups(&self) -> Option<String> {
        match &self.key {
            KeyShape::Shaped(shape) => shape.groups(),
            KeyShape::Any | KeyShape::Fixed => None,
        }
    }

    /// The pattern that `{key}` is of.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        match &self.key {
            KeyShape::Shaped(shape) => shape.key_pattern(),
            KeyShape::Any | KeyShape::Fixed => None,
        }
    }

    /// True when no `{key}` is in it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.key == KeyShape::Fixed
    }

    /// The literal bytes before the idempotency key.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.before
    }

    /// True when the template starts with literal bytes, so that its keys can be told from a stranger's.
    pub(crate) fn has_prefix(&self) -> bool {
        !self.before.is_empty()
    }

    /// How many literal bytes a matching key shares with the template: the most specific template has most.
    pub(crate) fn specificity(&self) -> usize {
        let within =
            if let KeyShape::Shaped(shape) = &self.key { shape.literal_bytes() } else { 0 };
        self.before.len() + within + self.after.len()
    }

    /// The template as `schema.toml` writes it, e.g. `idem:lock:{key}`: it is read back as the same.
    pub(crate) fn display(&self) -> String {
        key_parts::write(&self.parts())
    }

    /// The names of its Redis keys, with a star for the key: no template, for braces stand as they are.
    pub(crate) fn pattern(&self) -> String {
        let mut parts = self.parts();
        for part in &mut parts {
            if *part == KeyPart::Key {
                *part = KeyPart::Literal(b"*".to_vec());
            }
        }
        key_parts::plain(&parts)
    }

    fn parts(&self) -> Vec<KeyPart> {
        let mut parts = Vec::new();
        if !self.before.is_empty() {
            parts.push(KeyPart::Literal(self.before.clone()));
        }
        match &self.key {
            KeyShape::Any => parts.push(KeyPart::Key),
            KeyShape::Shaped(shape) => parts.extend_from_slice(shape.parts()),
            KeyShape::Fixed => {}
        }
        if !self.after.is_empty() {
            parts.push(KeyPart::Literal(self.after.clone()));
        }
        parts
    }
}

#[cfg(test)]
mod tests;
