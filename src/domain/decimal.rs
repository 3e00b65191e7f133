//! The exact value of a JSON number.

/// The most digits of a number that are written out. Longer numbers get an exponent. Otherwise the
/// text of `1e999999999` would have a gigabyte.
const MAX_DIGITS: i64 = 40;

/// A JSON number in the one form that all numbers of this value have.
pub(crate) fn decimal(number: &str) -> String {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>()),
        None => (unsigned, Ok(0)),
    };
    // An exponent that no service writes. The number is then equal only to itself.
    let Ok(exponent) = exponent else { return number.to_owned() };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let trailing_zeros = all.len() - all.trim_end_matches('0').len();
    // The power of ten of the last digit.
    let Some(power) = exponent
        .checked_sub(fraction.len() as i64)
        .and_then(|power| power.checked_add(trailing_zeros as i64))
    else {
        return number.to_owned();
    };
    let length = digits.len() as i64;
    if power >= 0 && power <= MAX_DIGITS - length {
        return format!("{sign}{digits}{}", "0".repeat(power as usize));
    }
    if (-MAX_DIGITS..0).contains(&power) {
        let point = length + power;
        if point > 0 {
            let (whole, fraction) = digits.split_at(point as usize);
            return format!("{sign}{whole}.{fraction}");
        }
        let zeros = "0".repeat(point.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    format!("{sign}{digits}e{power}")
}
