//! Key templates: where a schema keeps a record, and back from a Redis key to the idempotency key.

use strum::IntoStaticStr;

use super::key_parts::{self, Part, Shape};
use crate::domain::as_str::as_str;

/// One Redis key pattern of a schema: the literal bytes before and after the idempotency key, and what the key looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    before: Vec<u8>,
    after: Vec<u8>,
    key: KeyForm,
    /// Redis keys of these templates are not of this one.
    ignored: Vec<KeyTemplate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyForm {
    Any,
    /// Groups in front of the client's key or behind, or a pattern of the client's key.
    Shaped(Shape),
    /// One Redis key for all: there is no key in it, and the Redis key stands for one.
    Fixed,
}

/// The word of `[keys]` by which a schema takes Redis keys of its templates for none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum LeftOut {
    Key,
    Ignore,
}

as_str!(LeftOut);

impl KeyTemplate {
    /// Parses `idem:lock:{key}`, with `{prefix}` replaced by the deployment's prefix.
    ///
    /// # Errors
    /// Why the text is not a template, such as a second `{key}`, or groups without one.
    pub(crate) fn parse(text: &str, prefix: &str) -> Result<Self, String> {
        let parts = key_parts::parse(text, prefix)?;
        let is_place = |part: &Part| !matches!(part, Part::Literal(_));
        let keys = parts.iter().filter(|part| **part == Part::Key).count();
        let Some(first) = parts.iter().position(is_place).filter(|_| keys > 0) else {
            return match parts.as_slice() {
                [Part::Literal(fixed)] => Ok(Self::fixed(fixed)),
                _ => Err(format!("`{text}` has no {{key}}")),
            };
        };
        if keys > 1 {
            return Err(format!("`{text}` has {{key}} more than once"));
        }
        let last = parts.iter().rposition(is_place).unwrap_or(first);
        let literal = |parts: &[Part]| match parts {
            [Part::Literal(bytes)] => bytes.clone(),
            _ => Vec::new(),
        };
        let key = if first == last { KeyForm::Any } else { KeyForm::Shaped(Shape::of(&parts[first..=last], None)?) };
        Ok(Self { before: literal(&parts[..first]), after: literal(&parts[last + 1..]), key, ignored: Vec::new() })
    }

    fn fixed(redis_key: &[u8]) -> Self {
        Self { before: redis_key.to_vec(), after: Vec::new(), key: KeyForm::Fixed, ignored: Vec::new() }
    }

    /// The template of keys between these literal bytes.
    pub(crate) fn around(before: &[u8], after: &[u8]) -> Self {
        Self { before: before.to_vec(), after: after.to_vec(), key: KeyForm::Any, ignored: Vec::new() }
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
            KeyForm::Any => KeyForm::Shaped(Shape::of(&[Part::Key], Some(pattern))?),
            KeyForm::Shaped(shape) => KeyForm::Shaped(Shape::of(shape.parts(), Some(pattern))?),
            KeyForm::Fixed => return Err("a template without {key} has nothing that `key` could be of".to_owned()),
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
            KeyForm::Fixed => self.before.clone(),
            _ => [&self.before, key, &self.after].concat(),
        }
    }

    /// The idempotency key inside a Redis key, or `None` when the Redis key is not of this template.
    pub(crate) fn idempotency_key<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        let key = self.between(redis_key)?;
        let is_key = match &self.key {
            KeyForm::Any => !key.is_empty(),
            KeyForm::Shaped(shape) => shape.fits(key),
            KeyForm::Fixed => return key.is_empty().then_some(redis_key),
        };
        (is_key && !self.ignores(redis_key)).then_some(key)
    }

    /// What the client handed in, in an idempotency key of this template: the key without the groups before and behind.
    pub(crate) fn client_key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        match &self.key {
            KeyForm::Shaped(shape) => shape.key_in(key),
            KeyForm::Any | KeyForm::Fixed => key,
        }
    }

    /// By which word a Redis key is not of this template though its literals fit; `None` where it is, or they do not.
    pub(crate) fn leaves_out(&self, redis_key: &[u8]) -> Option<LeftOut> {
        let key = self.between(redis_key)?;
        let has_parts = match &self.key {
            KeyForm::Any => !key.is_empty(),
            KeyForm::Shaped(shape) => shape.has_parts(key),
            KeyForm::Fixed => key.is_empty(),
        };
        match &self.key {
            _ if !has_parts => None,
            _ if self.ignores(redis_key) => Some(LeftOut::Ignore),
            KeyForm::Shaped(shape) if !shape.fits(key) => Some(LeftOut::Key),
            _ => None,
        }
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
        let front =
            if redis_key.last() == Some(last) { redis_key.strip_suffix(&self.after[..])? } else { return None };
        front.strip_prefix(&self.before[..])
    }

    /// The text between the first place and the last one; `None` where `{key}` is the only one.
    pub(crate) fn groups(&self) -> Option<String> {
        match &self.key {
            KeyForm::Shaped(shape) => shape.groups(),
            KeyForm::Any | KeyForm::Fixed => None,
        }
    }

    /// The pattern that `{key}` is of.
    pub(crate) fn key_pattern(&self) -> Option<&str> {
        match &self.key {
            KeyForm::Shaped(shape) => shape.key_pattern(),
            KeyForm::Any | KeyForm::Fixed => None,
        }
    }

    /// True when no `{key}` is in it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.key == KeyForm::Fixed
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
        let within = if let KeyForm::Shaped(shape) = &self.key { shape.literal_bytes() } else { 0 };
        self.before.len() + within + self.after.len()
    }

    /// The template as `schema.toml` writes it, e.g. `idem:lock:{key}`: it is read back as the same.
    pub(crate) fn display(&self) -> String {
        key_parts::write(&self.parts())
    }

    /// The names of its Redis keys, with a star for the key: no template, for braces stand as they are.
    pub(crate) fn pattern(&self) -> String {
        let star = |part: &Part| match part {
            Part::Key => Part::Literal(b"*".to_vec()),
            other => other.clone(),
        };
        key_parts::plain(&self.parts().iter().map(star).collect::<Vec<_>>())
    }

    fn parts(&self) -> Vec<Part> {
        let literal = |bytes: &[u8]| (!bytes.is_empty()).then(|| Part::Literal(bytes.to_vec()));
        let places = match &self.key {
            KeyForm::Any => vec![Part::Key],
            KeyForm::Shaped(shape) => shape.parts().to_vec(),
            KeyForm::Fixed => Vec::new(),
        };
        literal(&self.before).into_iter().chain(places).chain(literal(&self.after)).collect()
    }
}

#[cfg(test)]
mod tests;
