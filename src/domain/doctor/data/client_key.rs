//! The shapes of clients' keys: what they are made of, and whether a client can hit another one's
//! key by accident.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::separators::SeparatorCounts;

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

/// Why a key can be hit by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WeakKey {
    /// A constant, such as `undefined`.
    Placeholder,
    /// A number of up to 12 digits: in practice a counter.
    Counter,
    /// A time in seconds, milliseconds or microseconds since 1970, or a date.
    Timestamp,
    /// A constant for each tenant: the part after the first colon repeats.
    Repeated,
    /// Words with numbers of up to 12 digits or times.
    Numbered,
    /// So short that even random keys repeat: less than 40 bits.
    Short,
}

/// Counts of the keys of one schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyCounts {
    pub(crate) keys: u64,
    /// True if the service stores a hash of the client's key or of the request, so that the keys
    /// show nothing.
    pub(crate) are_hashed: bool,
    /// Numbers of 10, 13 or 16 digits, times among them.
    pub(crate) as_long_as_times: u64,
    pub(crate) weak: BTreeMap<WeakKey, u64>,
    pub(crate) separators: Vec<SeparatorCounts>,
    /// Keys in quotation marks.
    pub(crate) quoted: u64,
    /// Keys that also exist in the other form, with or without quotation marks.
    pub(crate) in_both_forms: u64,
    /// Keys that were looked for in the other form, and under other templates.
    pub(crate) looked_for: u64,
    /// How many of the keys also exist under the template of each other schema.
    pub(crate) elsewhere: BTreeMap<String, u64>,
}

/// The first and the last time that a number is taken for: 2015 and 2035, in seconds since 1970.
const TIMES: std::ops::RangeInclusive<u64> = 1_420_070_400..=2_051_222_400;

/// Why a client's key is weak; `None` if it is not.
pub(crate) fn weakness(key: &[u8]) -> Option<WeakKey> {
    let key = unquoted(key).unwrap_or(key);
    let lower = key.to_ascii_lowercase();
    if PLACEHOLDERS.iter().any(|word| word.as_bytes() == lower)
        || is_one_letter(key)
        || is_unfilled(key)
    {
        return Some(WeakKey::Placeholder);
    }
    if !key.is_empty() && key.iter().all(u8::is_ascii_digit) {
        return of_number(key);
    }
    if is_date(key) {
        return Some(WeakKey::Timestamp);
    }
    if bits(key) < MIN_BITS {
        return Some(WeakKey::Short);
    }
    is_numbered(key).then_some(WeakKey::Numbered)
}

/// A number: identifiers such as those of Snowflake have more digits.
fn of_number(digits: &[u8]) -> Option<WeakKey> {
    if is_time(digits) {
        return Some(WeakKey::Timestamp);
    }
    (digits.len() <= 12).then_some(WeakKey::Counter)
}

/// True for a number of a length at which times are recognised.
fn is_as_long_as_times(key: &[u8]) -> bool {
    matches!(key.len(), 10 | 13 | 16) && key.iter().all(u8::is_ascii_digit)
}

fn is_time(digits: &[u8]) -> bool {
    let number: u64 = match std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()) {
        Some(number) => number,
        None => return false,
    };
    match digits.len() {
        10 => TIMES.contains(&number),
        13 => TIMES.contains(&(number / 1_000)),
        16 => TIMES.contains(&(number / 1_000_000)),
        _ => false,
    }
}

/// Words with short numbers or times, such as `order-001000`, `42:order:7` and `order-7-v1`.
fn is_numbered(key: &[u8]) -> bool {
    let mut letters = 0;
    let mut digits = 0;
    for part in key.split(|byte| b":-_.#".contains(byte)) {
        let word = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let number = &part[word..];
        let is_short = number.len() <= 12 || is_time(number);
        if word > 16 || !is_short || !number.iter().all(u8::is_ascii_digit) {
            return false;
        }
        letters += word;
        digits += number.len();
    }
    let are_parts = letters >= 2 || key.contains(&b':');
    are_parts && digits > 0 && letters + digits <= LONGEST_NUMBERED
}

/// The most letters and digits of words with numbers. A UUID has more.
const LONGEST_NUMBERED: usize = 30;

/// Quotation marks as clients and proxies leave them in keys: those of a structured header
/// (RFC 8941), the same ones escaped, and single ones.
const QUOTES: [&str; 4] = ["\"", "\\\"", "%22", "'"];

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

/// The same key in its other forms: with and without quotation marks, and a UUID in upper and lower
/// case.
pub(crate) fn other_forms(key: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    match unquoted(key) {
        Some(bare) => forms.push(bare.to_vec()),
        None => {
            for quote in QUOTES {
                forms.push([quote.as_bytes(), key, quote.as_bytes()].concat());
            }
        }
    }
    let is_uuid =
        key.len() == 36 && key.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    if is_uuid {
        for other in [key.to_ascii_lowercase(), key.to_ascii_uppercase()] {
            if other != key {
                forms.push(other);
            }
        }
    }
    forms
}

/// A template that nobody filled in, such as `{{uuid}}` or `${key}`.
fn is_unfilled(key: &[u8]) -> bool {
    let is_braced = key.starts_with(b"{{") || key.starts_with(b"${");
    is_braced && key.ends_with(b"}")
}

fn is_one_letter(key: &[u8]) -> bool {
    let Some(first) = key.first() else { return false };
    key.len() >= 8 && key.iter().all(|byte| byte == first)
}

/// A date, perhaps with a time or a short number after it: `2026-11-26T10:20:30Z`.
fn is_date(key: &[u8]) -> bool {
    let shape = b"dddd-dd-dd";
    if key.len() < shape.len() || key.len() > 35 {
        return false;
    }
    for (byte, wanted) in key.iter().zip(shape) {
        let fits = if *wanted == b'd' { byte.is_ascii_digit() } else { byte == wanted };
        if !fits {
            return false;
        }
    }
    let rest = &key[shape.len()..];
    rest.iter().all(|byte| byte.is_ascii_digit() || b"-:.TtZz+_ ".contains(byte))
}

/// Fewer bits than this repeat among a million random keys. With 40 bits, two of them are equal
/// with a probability of more than a third.
const MIN_BITS: f64 = 40.0;

/// The most bits that a random key of these letters can have.
#[expect(clippy::cast_precision_loss, reason = "keys are short")]
fn bits(key: &[u8]) -> f64 {
    let is_hex = key.iter().all(u8::is_ascii_hexdigit);
    let has_lower = key.iter().any(u8::is_ascii_lowercase);
    let has_upper = key.iter().any(u8::is_ascii_uppercase);
    let letters: f64 = match (is_hex, has_lower && has_upper) {
        (true, false) => 16.0,
        (false, false) => 36.0,
        (_, true) => 62.0,
    };
    key.len() as f64 * letters.log2()
}

/// From this many keys on with the same part after the first colon, the part is a constant.
const MIN_REPEATED: u64 = 5;

/// True if a part of a key is long and has many digits, as identifiers have.
fn is_unique(part: &[u8]) -> bool {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    part.len() >= 16 && digits >= 4
}

/// Counts the keys of one schema while a sample is read.
#[derive(Default)]
pub(super) struct KeyCounter {
    keys: u64,
    weak: BTreeMap<WeakKey, u64>,
    separators: super::separators::SeparatorCounter,
    quoted: u64,
    /// Hashes of the keys, to count each once.
    known: HashSet<u64>,
    as_long_as_times: u64,
    /// How often each part after the first colon occurs, by its hash.
    parts: HashMap<u64, u64>,
    hasher: RandomState,
    pub(super) in_both_forms: u64,
    pub(super) looked_for: u64,
    pub(super) elsewhere: BTreeMap<String, u64>,
}

impl KeyCounter {
    /// Counts a key, of which this is the hash.
    pub(super) fn add(&mut self, key: &[u8], hash: u64) {
        if !self.known.insert(hash) {
            return;
        }
        self.keys += 1;
        let plain = unquoted(key);
        if plain.is_some() {
            self.quoted += 1;
        }
        let plain = plain.unwrap_or(key);
        if is_as_long_as_times(plain) {
            self.as_long_as_times += 1;
        }
        let colon = plain.iter().position(|byte| *byte == b':');
        // Before the colon of `UUID:charge` is what makes the key unique.
        if let Some(colon) = colon.filter(|colon| !is_unique(&plain[..*colon])) {
            *self.parts.entry(self.hasher.hash_one(&plain[colon + 1..])).or_default() += 1;
        }
        // The part after the tenant is the client's.
        let last = plain.rsplit(|byte| *byte == b':').next().unwrap_or(plain);
        let before = &plain[..plain.len() - last.len()];
        let weak = match (weakness(plain), weakness(last)) {
            (Some(weak), _) => Some(weak),
            (None, Some(WeakKey::Placeholder)) => Some(WeakKey::Placeholder),
            // Within a tenant, a counter is the tenant's own, and not bare.
            (None, Some(WeakKey::Counter | WeakKey::Timestamp)) if !is_unique(before) => {
                Some(WeakKey::Numbered)
            }
            (None, _) => None,
        };
        if let Some(weak) = weak {
            *self.weak.entry(weak).or_default() += 1;
        }
        if weak != Some(WeakKey::Timestamp) {
            self.separators.add(plain);
        }
    }

    pub(super) fn finish(mut self, are_hashed: bool) -> KeyCounts {
        let repeated: u64 = self.parts.values().filter(|count| **count >= MIN_REPEATED).sum();
        if repeated > 0 {
            self.weak.insert(WeakKey::Repeated, repeated);
        }
        KeyCounts {
            keys: self.keys,
            are_hashed,
            as_long_as_times: self.as_long_as_times,
            weak: self.weak,
            separators: self.separators.finish(),
            quoted: self.quoted,
            in_both_forms: self.in_both_forms,
            looked_for: self.looked_for,
            elsewhere: self.elsewhere,
        }
    }
}
