//! Times of RFC 3339.
//!
//! humantime reads the time. The zone is read here, because humantime reads only UTC.

/// A time in milliseconds since the epoch. Its zone is required, because a time without one may be
/// of any zone; `None` for any other text.
pub(crate) fn to_ms(text: &str) -> Option<u64> {
    let (local, offset_minutes) = match text.strip_suffix(['Z', 'z']) {
        Some(local) => (local, 0),
        None => {
            let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
            (local, offset_minutes(zone)?)
        }
    };
    if local.bytes().any(|byte| !byte.is_ascii_digit() && !b"-:.Tt ".contains(&byte)) {
        return None;
    }
    let time = humantime::parse_rfc3339_weak(&local.to_ascii_uppercase()).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()?.checked_add_signed(-offset_minutes * 60_000)
}

/// The minutes of a zone such as `+02:00`.
fn offset_minutes(zone: &str) -> Option<i64> {
    let (sign, time) = zone.split_at_checked(1)?;
    let (hours, minutes) = time.split_once(':')?;
    if !time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') || hours.len() != 2 {
        return None;
    }
    let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    match sign {
        "+" => Some(minutes),
        "-" => Some(-minutes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_zone() {
        for (text, expected) in [
            ("1970-01-01T00:00:01.5Z", Some(1_500)),
            ("1970-01-01t00:00:01z", Some(1_000)),
            ("1970-01-01T02:00:01.5+02:00", Some(1_500)),
            ("1970-01-01T00:00:01.500000+00:00", Some(1_500)),
            ("1970-01-01T00:00:01-01:30", Some(5_401_000)),
            ("1970-01-01T00:30:00+01:00", None),
            ("1970-01-01T00:00:01", None),
            ("1970-01-01T00:00:01+0200", None),
            ("1970-01-01T00:00:01Z+02:00", None),
            ("1970-01-01", None),
            ("+02:00", None),
            ("\u{e9}2:00", None),
            ("", None),
        ] {
            assert_eq!(to_ms(text), expected, "{text}");
        }
    }
}
