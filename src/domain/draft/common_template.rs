//! The key template that sample keys have in common.

use crate::domain::detect::boundaries;
use crate::domain::schema::key_template::KeyTemplate;

/// A Redis key's template, as `schema.toml` writes templates.
pub(super) fn template(keys: &[&[u8]]) -> String {
    let (first, rest) = keys.split_first().map_or((&[][..], keys), |(first, rest)| (*first, rest));
    let shared =
        rest.iter().fold(first.len(), |most, key| most.min(alike(first.iter(), key.iter())));
    // A single key does not tell where the idempotency key begins: its last part is the likeliest.
    let most = if rest.is_empty() { last_part(first) } else { shared };
    let before =
        boundaries(first).into_iter().rfind(|at| *at <= most && *at < first.len()).unwrap_or(0);
    let behind = rest
        .iter()
        .fold(usize::MAX, |most, key| most.min(alike(first.iter().rev(), key.iter().rev())));
    let behind = if rest.is_empty() { 0 } else { suffix(&first[before..], behind) };
    KeyTemplate::around(&first[..before], &first[first.len() - behind..]).display()
}

fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn last_part(key: &[u8]) -> usize {
    boundaries(key).into_iter().rfind(|at| *at < key.len()).unwrap_or(0)
}

/// How many of the last bytes stand behind the idempotency key: from a separator on.
fn suffix(rest: &[u8], most: usize) -> usize {
    let ends = boundaries(rest)
        .into_iter()
        .filter(|at| *at > 1 && *at < rest.len())
        .map(|at| rest.len() - at + 1);
    ends.filter(|length| *length <= most && *length < rest.len()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_what_all_keys_have_in_common_up_to_a_separator() {
        let of =
            |keys: &[&str]| template(&keys.iter().map(|key| key.as_bytes()).collect::<Vec<_>>());
        assert_eq!(of(&["pay:order-1", "pay:order-2"]), "pay:{key}");
        assert_eq!(of(&["pay:a:lock", "pay:b:lock"]), "pay:{key}:lock");
        assert_eq!(of(&["pay:v1:abc"]), "pay:v1:{key}");
        assert_eq!(of(&["abc", "abd"]), "{key}");
        assert_eq!(of(&["qo_a-1", "qo_b-1"]), "qo_{key}");
        assert_eq!(of(&["abc"]), "{key}");
        assert_eq!(of(&["{shop}:a", "{shop}:b"]), r"\{shop\}:{key}");
    }
}
