//! The keys that clients chose, in a sample: weak ones, and those in quotation marks. Only counts
//! are kept for the page.

use std::collections::HashSet;

/// Placeholders that clients send in place of a key of their own.
const PLACEHOLDERS: [&str; 10] = [
    "undefined",
    "null",
    "none",
    "nil",
    "nan",
    "idempotency-key",
    "idempotencykey",
    "idempotency_key",
    "[object object]",
    "00000000-0000-0000-0000-000000000000",
];

/// Quotation marks as clients and proxies leave them in keys: those of a structured header
/// (RFC 8941), the same ones escaped, and single ones.
const QUOTES: [&str; 4] = ["\"", "\\\"", "%22", "'"];

/// Numbers of up to this many digits are counters or times. Snowflake identifiers have more.
const LONGEST_NUMBER: usize = 16;

/// Shorter keys repeat even if they are random.
const SHORTEST: usize = 8;

/// The keys of one schema in a sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientKeys {
    bare: HashSet<Vec<u8>>,
    /// Without their quotation marks.
    quoted: HashSet<Vec<u8>>,
    /// Keys such as `undefined`, or a template that nobody filled in.
    pub(crate) placeholders: usize,
    /// Bare numbers, such as counters and times.
    pub(crate) numbers: usize,
    /// Keys that are too short to be unique.
    pub(crate) short: usize,
}

impl ClientKeys {
    /// Adds a key, unless it is known.
    pub(super) fn add(&mut self, key: &[u8]) {
        let is_new = match unquoted(key) {
            Some(inside) => self.quoted.insert(inside.to_vec()),
            None => self.bare.insert(key.to_vec()),
        };
        if !is_new {
            return;
        }
        let key = unquoted(key).unwrap_or(key);
        if is_placeholder(key) {
            self.placeholders += 1;
        } else if key.len() <= LONGEST_NUMBER && key.iter().all(u8::is_ascii_digit) {
            self.numbers += 1;
        } else if key.len() < SHORTEST {
            self.short += 1;
        }
    }

    /// How many different keys there are.
    pub(crate) fn count(&self) -> usize {
        self.bare.len() + self.quoted.len()
    }

    /// How many keys have quotation marks.
    pub(crate) fn quoted(&self) -> usize {
        self.quoted.len()
    }

    /// How many keys are there both with and without quotation marks.
    pub(crate) fn in_both_forms(&self) -> usize {
        self.quoted.intersection(&self.bare).count()
    }
}

fn is_placeholder(key: &[u8]) -> bool {
    let lower = key.to_ascii_lowercase();
    let is_known = PLACEHOLDERS.iter().any(|word| word.as_bytes() == lower);
    // Such as `{{uuid}}` and `${key}`.
    let is_unfilled = (key.starts_with(b"{{") || key.starts_with(b"${")) && key.ends_with(b"}");
    is_known || is_unfilled
}

/// The key without its quotation marks; `None` if it has none.
fn unquoted(key: &[u8]) -> Option<&[u8]> {
    for quote in QUOTES {
        let quote = quote.as_bytes();
        if key.len() > 2 * quote.len()
            && let Some(rest) = key.strip_prefix(quote)
            && let Some(inside) = rest.strip_suffix(quote)
        {
            return Some(inside);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_keys_are_constants_numbers_and_short_ones() {
        // Placeholders, numbers and short keys.
        for (key, weak) in [
            ("undefined", (1, 0, 0)),
            ("[object Object]", (1, 0, 0)),
            ("{{uuid}}", (1, 0, 0)),
            ("1700000000000", (0, 1, 0)),
            ("7", (0, 1, 0)),
            ("a1b2c3", (0, 0, 1)),
            ("6d1f0c9e-4b7a-4c1e-9a55-0f3f8e2b7d10", (0, 0, 0)),
            ("01HF7YAT31JZHSMW1CG6Q6MHB7", (0, 0, 0)),
            ("1541815603606036480", (0, 0, 0)),
            ("order-10008", (0, 0, 0)),
        ] {
            let mut keys = ClientKeys::default();
            keys.add(key.as_bytes());
            assert_eq!((keys.placeholders, keys.numbers, keys.short), weak, "{key}");
        }
    }

    #[test]
    fn a_key_in_quotation_marks_is_another_form_of_the_same_key() {
        let mut keys = ClientKeys::default();
        for key in ["order-10008", "\"order-10008\"", "%22order-10009%22", "order-10008"] {
            keys.add(key.as_bytes());
        }
        assert_eq!((keys.count(), keys.quoted(), keys.in_both_forms()), (3, 2, 1));
        assert_eq!(keys.placeholders + keys.numbers + keys.short, 0);
    }
}
