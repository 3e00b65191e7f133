//! Reads numbers like C's `strtod`, which cjson uses: `01`, `+1`, `.5` after a sign, `0x1p4`,
//! `Infinity`, `nan(1)`.

/// True for a byte that a number or a word may begin with.
pub(super) fn may_begin(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Copies the number or word at the beginning, a number in a form that JSON allows. Returns how
/// many bytes it takes.
pub(super) fn copy(json: &[u8], sound: &mut String) -> usize {
    let length = length(json);
    let word = String::from_utf8_lossy(&json[..length]);
    match value(&word) {
        Some(number) if !is_json(&word) => {
            // JSON has no infinity and no NaN.
            if number.is_finite() {
                sound.push_str(&serde_json::Value::from(number).to_string());
            } else {
                sound.push_str("null");
            }
        }
        _ => sound.push_str(&word),
    }
    length
}

fn length(json: &[u8]) -> usize {
    let word = json.iter().position(|byte| !may_begin(*byte)).unwrap_or(json.len());
    let is_nan = json[..word].to_ascii_lowercase().ends_with(b"nan");
    // NaN may be followed by text in parentheses.
    let Some(inside) = json[word..].strip_prefix(b"(") else { return word };
    if !is_nan {
        return word;
    }
    let end = inside.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    match end {
        Some(end) if inside[end] == b')' => word + end + 2,
        _ => word,
    }
}

fn is_json(word: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok()
}

/// The number that cjson reads for a word.
fn value(word: &str) -> Option<f64> {
    let (sign, digits) = match word.as_bytes().first()? {
        b'-' => (-1.0, &word[1..]),
        b'+' => (1.0, &word[1..]),
        // A point must follow a digit or a sign.
        b'.' => return None,
        _ => (1.0, word),
    };
    let lower = digits.to_ascii_lowercase();
    // What may follow NaN is in parentheses that are closed, or it is not part of the word.
    let is_nan =
        lower.strip_prefix("nan").is_some_and(|rest| rest.is_empty() || rest.starts_with('('));
    let number = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        _ if is_nan => f64::NAN,
        _ => match lower.strip_prefix("0x") {
            Some(hex) => hexadecimal(hex)?,
            None => decimal(&lower)?,
        },
    };
    Some(sign * number)
}

fn decimal(text: &str) -> Option<f64> {
    // Rust would also parse the words handled above, and a second sign.
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    text.parse().ok()
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, whole(exponent)?),
        None => (text, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in before.chars().chain(after.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    // Each hexadecimal place after the point divides by 2^4.
    let places = i32::try_from(after.len()).ok()?.checked_mul(4)?;
    Some(number * f64::from(exponent.saturating_sub(places)).exp2())
}

/// A whole number, with or without a sign. One that is too large is clamped.
fn whole(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A larger exponent would give infinity or zero as well.
    let size = digits.parse().unwrap_or(100_000);
    Some(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(word: &str) -> String {
        let mut sound = String::new();
        let length = copy(word.as_bytes(), &mut sound);
        sound + &word[length..]
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (written, sound) in [
            ("01", "1.0"),
            ("+1", "1.0"),
            ("-.5", "-0.5"),
            ("5.", "5.0"),
            ("-007.50e1", "-75.0"),
            ("0x10", "16.0"),
            ("-0X1.8p1", "-3.0"),
            ("0x.8", "0.5"),
            ("NaN", "null"),
            ("nan(1_a),", "null,"),
            ("nan(a", "null(a"),
            ("-Infinity", "null"),
            ("iNF", "null"),
        ] {
            assert_eq!(copied(written), sound, "{written}");
        }
    }

    #[test]
    fn what_is_json_or_no_number_stays_as_it_is() {
        let kept = [
            "12345678901234567890",
            "1e400",
            "1.50",
            "-0",
            "true",
            "null",
            ".5",
            "1e",
            "0x",
            "0x1p",
            "--1",
            "1x",
            "nannan(1)",
        ];
        for word in kept.iter().chain(&["infinit", "e5", "+", "-", "+-1", "1.2.3"]) {
            assert_eq!(copied(word), *word);
        }
    }
}
