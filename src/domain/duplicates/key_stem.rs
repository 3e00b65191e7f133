//! The stem of an idempotency key: the key without a counter, a timestamp or a UUID at its end.

/// The characters that may separate the stem from what follows it.
const SEPARATORS: &[u8] = b"-_.:/#";

/// A timestamp of RFC 3339 in UTC; `0` stands for any digit.
const TIMESTAMP: &[u8] = b"0000-00-00T00:00:00";

const UUID: &[u8] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// The stem of a key; `None` if the key does not end so, or has nothing before it.
pub(super) fn key_stem(key: &[u8]) -> Option<&[u8]> {
    let end = uuid(key).or_else(|| timestamp(key)).or_else(|| digits(key))?;
    let (separator, stem) = key[..key.len() - end].split_last()?;
    if SEPARATORS.contains(separator) && !stem.is_empty() { Some(stem) } else { None }
}

/// True if the key is a UUID.
pub(super) fn is_uuid(key: &[u8]) -> bool {
    key.len() == UUID.len() && uuid(key).is_some()
}

/// The length of the UUID at the end.
fn uuid(key: &[u8]) -> Option<usize> {
    let end = key.len().checked_sub(UUID.len())?;
    let is_uuid = key[end..].iter().zip(UUID).all(|(byte, pattern)| match pattern {
        b'-' => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    if is_uuid { Some(UUID.len()) } else { None }
}

/// The length of the timestamp at the end, which may have a fraction.
fn timestamp(key: &[u8]) -> Option<usize> {
    let mut rest = key.strip_suffix(b"Z")?;
    let fraction = rest.len() - without_digits(rest).len();
    if fraction > 0 && rest[..rest.len() - fraction].ends_with(b".") {
        rest = &rest[..rest.len() - fraction - 1];
    }
    let begin = rest.len().checked_sub(TIMESTAMP.len())?;
    let is_timestamp = rest[begin..].iter().zip(TIMESTAMP).all(|(byte, pattern)| match pattern {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    if is_timestamp { Some(key.len() - begin) } else { None }
}

/// The number of digits at the end.
fn digits(key: &[u8]) -> Option<usize> {
    let count = key.len() - without_digits(key).len();
    if count > 0 { Some(count) } else { None }
}

/// The bytes without the digits at their end.
fn without_digits(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some((last, before)) = rest.split_last()
        && last.is_ascii_digit()
    {
        rest = before;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_a_timestamp_or_a_uuid_at_the_end_is_cut() {
        for (key, stem) in [
            ("order-42-1", "order-42"),
            ("order-42-1700000000", "order-42"),
            ("order_42:1700000000123", "order_42"),
            ("order-42-2026-11-26T18:00:00Z", "order-42"),
            ("order-42-2026-11-26T18:00:00.250Z", "order-42"),
            ("order-42-6e3ca9a3-5d9d-48c6-b6ed-1a88aa7864f5", "order-42"),
        ] {
            assert_eq!(key_stem(key.as_bytes()), Some(stem.as_bytes()), "{key}");
        }
        for key in ["order", "42", "-42", "order42", "6e3ca9a3-5d9d-48c6-b6ed-1a88aa7864f5", ""] {
            assert_eq!(key_stem(key.as_bytes()), None, "{key}");
        }
    }
}
