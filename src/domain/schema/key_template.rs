//! Key templates: how a schema derives a record's Redis key from the idempotency key, and the
//! reverse.

use strum::IntoStaticStr;

use super::key_parts::{self, KeyPart, Shape};
use crate::domain::as_str::as_str;

/// One Redis key pattern of a schema: the literal bytes around the idempotency key, and the shape
/// of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    before: Vec<u8>,
    after: Vec<u8>,
    key: KeyShape,
    /// Redis keys that match one of these templates do not match this one.
    ignored: Vec<KeyTemplate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyShape {
    Any,
    /// The key has groups before or after the client's key, or the client's key must match a
    /// regular expression.
    Shaped(Shape),
    /// The template has no key. All records share one Redis key, which then serves as the
    /// idempotency key.
    Fixed,
}

/// The field of `[keys]` by which a schema excludes Redis keys that match a template's literals.
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
    /// The text is not a template: it has a second `{key}`, or groups but no `{key}`.
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
        // The parser joins adjacent literals, so that there is at most one on each side.
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

    /// This template with more literal bytes at the beginning.
    #[must_use]
    pub(crate) fn behind(self, prefix: &str) -> Self {
        let ignored = self.ignored.into_iter().map(|ignored| ignored.behind(prefix)).collect();
        Self { before: [prefix.as_bytes(), &self.before].concat(), ignored, ..self }
    }

    /// This template, whose `{key}` must match a regular expression.
    ///
    /// # Errors
    /// The regular expression is not valid, or the template has no `{key}`.
    pub(crate) fn matching(self, pattern: &str) -> Result<Self, String> {
        let key = match self.key {
            KeyShape::Any => KeyShape::Shaped(Shape::new(&[KeyPart::Key], Some(pattern))?),
            KeyShape::Shaped(shape) => KeyShape::Shaped(Shape::new(shape.parts(), Some(pattern))?),
            // All records share one Redis key, so there is no key to match.
            KeyShape::Fixed => {
                return Err("`key` needs a template with {key}".to_owned());
            }
        };
        Ok(Self { key, ..self })
    }

    /// This template without the Redis keys that match one of the `ignored` templates.
    #[must_use]
    pub(crate) fn without(self, ignored: &[Self]) -> Self {
        Self { ignored: ignored.to_vec(), ..self }
    }

    /// The templates whose Redis keys do not match this one.
    pub(crate) fn ignored(&self) -> &[Self] {
        &self.ignored
    }

    /// The Redis key of an idempotency key.
    pub(crate) fn redis_key(&self, key: &[u8]) -> Vec<u8> {
        match self.key {
            KeyShape::Fixed => self.before.clone(),
            _ => [&self.before, key, &self.after].concat(),
        }
    }

    /// The idempotency key in a Redis key; `None` if the Redis key does not match this template.
    pub(crate) fn idempotency_key<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        let key = self.between(redis_key)?;
        let is_key = match &self.key {
            KeyShape::Any => self.may_be_key(key),
            KeyShape::Shaped(shape) => shape.fits(key),
            KeyShape::Fixed if key.is_empty() => return Some(redis_key),
            KeyShape::Fixed => return None,
        };
        // The ignored templates last, because they are compared with the whole Redis key again.
        if is_key && !self.ignores(redis_key) { Some(key) } else { None }
    }

    /// The client's part of an idempotency key: the key without the groups before and after it.
    pub(crate) fn client_key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        self.shape().map_or(key, |shape| shape.key_in(key))
    }

    /// Which field of `[keys]` excludes a Redis key although the literals match. `None` if the
    /// Redis key matches the template, or its literals do not.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<Exclusion> {
        let key = self.between(redis_key)?;
        let has_parts = match &self.key {
            KeyShape::Any => self.may_be_key(key),
            KeyShape::Shaped(shape) => shape.has_parts(key),
            KeyShape::Fixed => key.is_empty(),
        };
        if !has_parts {
            return None;
        }
        if self.ignores(redis_key) {
            return Some(Exclusion::Ignore);
        }
        match &self.key {
            KeyShape::Shaped(shape) if !shape.fits(key) => Some(Exclusion::Key),
            _ => None,
        }
    }

    /// True if this can be a client's key. A client may send an empty key, and services accept it.
    /// It is recognised only if the template has literal bytes.
    fn may_be_key(&self, key: &[u8]) -> bool {
        !key.is_empty() || self.specificity() > 0
    }

    /// True if the Redis key matches one of the ignored templates.
    pub(crate) fn ignores(&self, redis_key: &[u8]) -> bool {
        self.ignored.iter().any(|ignored| ignored.idempotency_key(redis_key).is_some())
    }

    /// The idempotency key in a Redis key that is known to match this template.
    pub(crate) fn key_in<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_fixed() { Some(redis_key) } else { self.between(redis_key) }
    }

    /// The bytes between the template's literals. The end is compared first: a scan asks this for
    /// every Redis key several times. Often a dozen schemas share their beginning, and almost no
    /// template has text after the key.
    fn between<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        // One byte is compared without a call, and most schemas begin with another one.
        if let Some(first) = self.before.first()
            && redis_key.first() != Some(first)
        {
            return None;
        }
        let Some(last) = self.after.last() else { return redis_key.strip_prefix(&self.before[..]) };
        // A single byte first, which already excludes almost every other key.
        if redis_key.last() != Some(last) {
            return None;
        }
        redis_key.strip_suffix(&self.after[..])?.strip_prefix(&self.before[..])
    }

    /// The template between the first placeholder and the last one; `None` if `{key}` is the only
    /// placeholder.
    pub(crate) fn groups(&self) -> Option<String> {
        self.shape()?.groups()
    }

    /// The regular expression that `{key}` must match.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        self.shape()?.key_pattern()
    }

    fn shape(&self) -> Option<&Shape> {
        match &self.key {
            KeyShape::Shaped(shape) => Some(shape),
            KeyShape::Any | KeyShape::Fixed => None,
        }
    }

    /// True if the template has no `{key}`.
    pub(crate) fn is_fixed(&self) -> bool {
        self.key == KeyShape::Fixed
    }

    /// The literal bytes before the idempotency key.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.before
    }

    /// True if the template starts with literal bytes, which distinguish its keys from unclaimed
    /// keys.
    pub(crate) fn has_fixed_prefix(&self) -> bool {
        !self.before.is_empty()
    }

    /// How many literal bytes the template has. If several templates match a Redis key, the one
    /// with most literal bytes owns it.
    pub(crate) fn specificity(&self) -> usize {
        let within = self.shape().map_or(0, Shape::literal_bytes);
        self.before.len() + within + self.after.len()
    }

    /// The template as `schema.toml` writes it, e.g. `idem:lock:{key}`. It parses to the same
    /// template.
    pub(crate) fn display(&self) -> String {
        key_parts::write(&self.parts())
    }

    /// The names of its Redis keys with a star for the key. This is not a template, because braces
    /// are not escaped.
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
