//! Replaces idemctl's own symbols with ASCII, for terminals without UTF-8.

/// Each symbol and its replacement. Other characters come from data and stay unchanged.
const SIGNS: [(char, &str); 23] = [
    ('→', "->"),
    ('…', "..."),
    ('–', "-"),
    ('≤', "<="),
    ('µ', "u"),
    ('▶', ">"),
    ('▏', "#"),
    ('▎', "#"),
    ('▍', "#"),
    ('▌', "#"),
    ('▋', "#"),
    ('▊', "#"),
    ('▉', "#"),
    ('█', "#"),
    ('▁', "_"),
    ('▂', "."),
    ('▃', ":"),
    ('▄', "-"),
    ('▅', "="),
    ('▆', "+"),
    ('▇', "*"),
    ('─', "-"),
    ('│', "|"),
];

/// The text with idemctl's own symbols in ASCII.
pub fn ascii(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    // `≤ ` and `<=` both take two columns, so tables stay aligned.
    for character in text.replace("≤ ", "≤").chars() {
        match SIGNS.iter().find(|(sign, _)| *sign == character) {
            Some((_, ascii)) => plain.push_str(ascii),
            None => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_signs_are_ascii_and_keys_stay() {
        assert_eq!(ascii("→ ≤ 10m … ██▌ 5–7 183µs"), "-> <=10m ... ### 5-7 183us");
        assert_eq!(ascii("café"), "café");
    }
}
