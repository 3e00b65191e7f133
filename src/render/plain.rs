//! idemctl's own signs in ASCII, for terminals that speak no UTF-8.

/// Each sign, and what stands in its place.
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

/// The text with idemctl's own signs in ASCII.
pub fn ascii(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    // Two columns for two: what stands below each other still does.
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
