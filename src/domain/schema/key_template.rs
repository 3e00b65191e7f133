//! Key templates: where a schema keeps a record, and back from a Redis key to the idempotency key.

use super::key_parts::{self, Part, Shape};

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

impl KeyTemplate {
    /// Parses `idem:lock:{key}`, with `{prefix}` replaced by the deployment's prefix. Named groups, escaped braces and templates
    /// without a key are new in format 2.
    ///
    /// # Errors
    /// Says what is wrong when `{key}` does not occur exactly once or an unknown placeholder occurs.
    pub(crate) fn parse(text: &str, prefix: &str, format: u32) -> Result<Self, String> {
        let parts = key_parts::parse(text, prefix, format)?;
        let is_place = |part: &Part| !matches!(part, Part::Literal(_));
        let keys = parts.iter().filter(|part| **part == Part::Key).count();
        let Some(first) = parts.iter().position(is_place).filter(|_| keys > 0) else {
            return match parts.as_slice() {
                [Part::Literal(fixed)] if format > 1 => Ok(Self::fixed(fixed)),
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
        let is_ignored = || self.ignored.iter().any(|ignored| ignored.idempotency_key(redis_key).is_some());
        (is_key && !is_ignored()).then_some(key)
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

    /// The template as `schema.toml` writes it in this format, e.g. `idem:lock:{key}`: it is read back as the same.
    pub(crate) fn display(&self, format: u32) -> String {
        key_parts::write(&self.parts(), format)
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> KeyTemplate {
        KeyTemplate::parse(text, "", 2).unwrap()
    }

    fn key(template: &KeyTemplate, redis_key: &str) -> Option<String> {
        let key = template.idempotency_key(redis_key.as_bytes())?;
        assert_eq!(template.redis_key(key), redis_key.as_bytes());
        Some(String::from_utf8(key.to_vec()).unwrap())
    }

    #[test]
    fn refuses_a_template_without_or_with_two_keys() {
        assert!(KeyTemplate::parse("idem:", "", 1).is_err());
        assert!(KeyTemplate::parse("{tenant}:{key}", "", 1).is_err());
        for text in ["{key}:{key}", "{tenant}:", "{tenant}{key}", "{a}:{a}:{key}", "{Tenant}:{key}", "{}:{key}", ""] {
            assert!(KeyTemplate::parse(text, "", 2).is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_and_a_hash_tag_are_literal_as_they_are_written() {
        for (text, prefix, redis_key) in [
            ("{prefix}{key}", "pay:", "pay:a"),
            ("{prefix}idem:{key}", "{shop}:", "{shop}:idem:a"),
            ("lock:{{key}}", "", "lock:{a}"),
        ] {
            for format in [1, 2] {
                let template = KeyTemplate::parse(text, prefix, format).unwrap();
                assert_eq!(template.redis_key(b"a"), redis_key.as_bytes());
                assert!(template.has_prefix(), "{text}");
            }
        }
        let in_front = KeyTemplate::parse("idem:{key}", "", 1).unwrap().behind("{shop}:");
        assert_eq!(in_front, KeyTemplate::parse("{prefix}idem:{key}", "{shop}:", 1).unwrap());
    }

    #[test]
    fn a_backslash_makes_a_brace_literal() {
        let template = parse(r"asynq:\{default\}:unique:{key}");
        assert_eq!(template.redis_key(b"a"), b"asynq:{default}:unique:a");
        assert!(KeyTemplate::parse(r"asynq:\{default\}:{key}", "", 1).is_err(), "format 1 knows no escape");
        assert!(KeyTemplate::parse(r"a\n:{key}", "", 2).is_err());
    }

    #[test]
    fn groups_are_a_part_of_the_key() {
        let template = parse("idem:{function}#{key}:v1");
        assert_eq!(key(&template, "idem:pay.main#29e1:v1").as_deref(), Some("pay.main#29e1"));
        assert_eq!(key(&template, "idem:a#b#c:v1").as_deref(), Some("a#b#c"));
        for other in ["idem:pay.main:v1", "idem:#29e1:v1", "idem:pay#:v1", "idem:pay#29e1"] {
            assert_eq!(key(&template, other), None, "{other}");
        }
        assert_eq!((template.display(2).as_str(), template.specificity()), ("idem:{function}#{key}:v1", 9));
    }

    /// Rule: a pattern judges what stands in the place of `{key}`, all of it, and builds nothing.
    #[test]
    fn a_pattern_judges_the_key() {
        let hex = parse("cache:{tenant}:{key}").matching("[0-9a-f]{4}").unwrap();
        assert_eq!(key(&hex, "cache:acme:29e1").as_deref(), Some("acme:29e1"));
        for other in ["cache:acme:29e", "cache:acme:29e1f", "cache:acme:x29e1", "cache:29e1", "cache:acme:29e1\n"] {
            assert_eq!(key(&hex, other), None, "{other}");
        }
        assert_eq!(hex.idempotency_key(b"cache:\xff:29e1"), None);
        for wrong in ["(", "a)(b", "[z-a]"] {
            assert!(parse("{key}").matching(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_ignored_and_what_is_fixed() {
        let template = parse("pay#{key}").without(&[parse("pay#{key}:lock")]).behind("eu:");
        assert_eq!(key(&template, "eu:pay#a").as_deref(), Some("a"));
        assert_eq!(key(&template, "eu:pay#a:lock"), None);
        let fixed = parse("billing:lock");
        assert!(fixed.is_fixed() && fixed.has_prefix());
        assert_eq!(key(&fixed, "billing:lock").as_deref(), Some("billing:lock"));
        assert_eq!(key(&fixed, "billing:lock2"), None);
    }

    /// Rule: a template that is shown says in schema.toml what it says here. What format 1 cannot say is no template of format 1.
    #[test]
    fn a_template_is_shown_as_a_file_writes_it() {
        for text in ["orders:{{key}}:idem", r"asynq:\{default\}:unique:{key}", r"a\\b:{key}", "}{{a{key}", r"\{a\}"] {
            assert_eq!(parse(text).display(2), text);
        }
        let old = |text, prefix| KeyTemplate::parse(text, prefix, 1).unwrap();
        assert_eq!(
            (old(r"a\b:{key}", "").display(1), old(r"a\b:{key}", "").display(2)),
            (r"a\b:{key}".into(), r"a\\b:{key}".into())
        );
        assert_eq!(old("{prefix}idem:{key}", "{shop}:").display(1), r"\{shop\}:idem:{key}");
        assert_eq!(parse(r"\{a\}:{tenant}#{key}").pattern(), "{a}:{tenant}#*");
    }

    proptest! {
        #[test]
        fn a_redis_key_gives_its_idempotency_key_back(key in prop::collection::vec(any::<u8>(), 1..40)) {
            for text in ["idem:{key}", "{key}", "{key}:lock", "a:{key}:b"] {
                let template = KeyTemplate::parse(text, "", 1).unwrap();
                let redis_key = template.redis_key(&key);
                prop_assert_eq!(template.idempotency_key(&redis_key), Some(&key[..]));
            }
        }
    }
}
