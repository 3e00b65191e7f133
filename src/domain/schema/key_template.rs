//! Key templates: where a schema keeps a record, and back from a Redis key to the idempotency key.

/// One Redis key pattern of a schema: the literal bytes before and after the idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl KeyTemplate {
    /// Parses `idem:lock:{key}`, with `{prefix}` replaced by the deployment's prefix.
    ///
    /// # Errors
    /// Says what is wrong when `{key}` does not occur exactly once or an unknown placeholder occurs.
    pub(crate) fn parse(text: &str, prefix: &str) -> Result<Self, String> {
        let (before, after) = text.split_once("{key}").ok_or_else(|| format!("`{text}` has no {{key}}"))?;
        if after.contains("{key}") {
            return Err(format!("`{text}` has {{key}} more than once"));
        }
        Ok(Self { before: literal(before, prefix)?, after: literal(after, prefix)? })
    }

    /// This template with more literal bytes in front.
    #[must_use]
    pub(crate) fn behind(self, prefix: &str) -> Self {
        Self { before: [prefix.as_bytes(), &self.before].concat(), ..self }
    }

    pub(crate) fn redis_key(&self, key: &[u8]) -> Vec<u8> {
        [&self.before, key, &self.after].concat()
    }

    /// The idempotency key inside a Redis key, or `None` when the Redis key is not of this template.
    pub(crate) fn idempotency_key<'a>(&self, redis_key: &'a [u8]) -> Option<&'a [u8]> {
        let rest = redis_key.strip_prefix(&self.before[..])?;
        // Nearly no template goes on behind the key, and a scan asks this of every Redis key several times.
        let key = if self.after.is_empty() { rest } else { rest.strip_suffix(&self.after[..])? };
        (!key.is_empty()).then_some(key)
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
        self.before.len() + self.after.len()
    }

    /// The template as people read it, e.g. `idem:lock:{key}`.
    pub(crate) fn display(&self) -> String {
        format!("{}{{key}}{}", String::from_utf8_lossy(&self.before), String::from_utf8_lossy(&self.after))
    }
}

fn literal(text: &str, prefix: &str) -> Result<Vec<u8>, String> {
    // A hash tag around the key, `{` … `}`, is a literal of its own, and a deployment's prefix is taken as it is written.
    let own = text.replace("{prefix}", "");
    if own.matches(['{', '}']).count() > 1 {
        return Err(format!("`{text}` has a placeholder other than {{key}} and {{prefix}}"));
    }
    Ok(text.replace("{prefix}", prefix).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_a_template_without_or_with_two_keys() {
        assert!(KeyTemplate::parse("idem:", "").is_err());
        assert!(KeyTemplate::parse("{key}:{key}", "").is_err());
        assert!(KeyTemplate::parse("{tenant}:{key}", "").is_err());
    }

    #[test]
    fn a_prefix_and_a_hash_tag_are_literal_as_they_are_written() {
        for (text, prefix, redis_key) in [
            ("{prefix}{key}", "pay:", "pay:a"),
            ("{prefix}idem:{key}", "{shop}:", "{shop}:idem:a"),
            ("lock:{{key}}", "", "lock:{a}"),
        ] {
            let template = KeyTemplate::parse(text, prefix).unwrap();
            assert_eq!(template.redis_key(b"a"), redis_key.as_bytes());
            assert!(template.has_prefix(), "{text}");
        }
        let in_front = KeyTemplate::parse("idem:{key}", "").unwrap().behind("{shop}:");
        assert_eq!(in_front, KeyTemplate::parse("{prefix}idem:{key}", "{shop}:").unwrap());
    }

    proptest! {
        #[test]
        fn a_redis_key_gives_its_idempotency_key_back(key in prop::collection::vec(any::<u8>(), 1..40)) {
            for text in ["idem:{key}", "{key}", "{key}:lock", "a:{key}:b"] {
                let template = KeyTemplate::parse(text, "").unwrap();
                let redis_key = template.redis_key(&key);
                prop_assert_eq!(template.idempotency_key(&redis_key), Some(&key[..]));
            }
        }
    }
}
