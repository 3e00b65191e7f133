//! International bank account numbers in a text: a country, its structure, and the check digits.

/// The parts of an account number after the check digits: how many characters, and `n` for digits,
/// `a` for letters, `c` for both.
type Structure = &'static [(usize, u8)];

/// The countries with their structures, by the registry of SWIFT for ISO 13616,
/// <https://www.swift.com/resource/iban-registry-pdf>.
#[rustfmt::skip]
const COUNTRIES: [(&str, Structure); 87] = [
    ("AD", &[(8, b'n'), (12, b'c')]), ("AE", &[(19, b'n')]), ("AL", &[(8, b'n'), (16, b'c')]),
    ("AT", &[(16, b'n')]), ("AZ", &[(4, b'a'), (20, b'c')]), ("BA", &[(16, b'n')]),
    ("BE", &[(12, b'n')]), ("BG", &[(4, b'a'), (6, b'n'), (8, b'c')]),
    ("BH", &[(4, b'a'), (14, b'c')]), ("BI", &[(23, b'n')]),
    ("BR", &[(23, b'n'), (1, b'a'), (1, b'c')]), ("BY", &[(4, b'c'), (4, b'n'), (16, b'c')]),
    ("CH", &[(5, b'n'), (12, b'c')]), ("CR", &[(18, b'n')]), ("CY", &[(8, b'n'), (16, b'c')]),
    ("CZ", &[(20, b'n')]), ("DE", &[(18, b'n')]), ("DJ", &[(23, b'n')]), ("DK", &[(14, b'n')]),
    ("DO", &[(4, b'c'), (20, b'n')]), ("EE", &[(16, b'n')]), ("EG", &[(25, b'n')]),
    ("ES", &[(20, b'n')]), ("FI", &[(14, b'n')]), ("FK", &[(2, b'a'), (12, b'n')]),
    ("FO", &[(14, b'n')]), ("FR", &[(10, b'n'), (11, b'c'), (2, b'n')]),
    ("GB", &[(4, b'a'), (14, b'n')]), ("GE", &[(2, b'a'), (16, b'n')]),
    ("GI", &[(4, b'a'), (15, b'c')]), ("GL", &[(14, b'n')]), ("GR", &[(7, b'n'), (16, b'c')]),
    ("GT", &[(24, b'c')]), ("HR", &[(17, b'n')]), ("HU", &[(24, b'n')]),
    ("IE", &[(4, b'a'), (14, b'n')]), ("IL", &[(19, b'n')]), ("IQ", &[(4, b'a'), (15, b'n')]),
    ("IS", &[(22, b'n')]), ("IT", &[(1, b'a'), (10, b'n'), (12, b'c')]),
    ("JO", &[(4, b'a'), (4, b'n'), (18, b'c')]), ("KW", &[(4, b'a'), (22, b'c')]),
    ("KZ", &[(3, b'n'), (13, b'c')]), ("LB", &[(4, b'n'), (20, b'c')]),
    ("LC", &[(4, b'a'), (24, b'c')]), ("LI", &[(5, b'n'), (12, b'c')]), ("LT", &[(16, b'n')]),
    ("LU", &[(3, b'n'), (13, b'c')]), ("LV", &[(4, b'a'), (13, b'c')]), ("LY", &[(21, b'n')]),
    ("MC", &[(10, b'n'), (11, b'c'), (2, b'n')]), ("MD", &[(20, b'c')]), ("ME", &[(18, b'n')]),
    ("MK", &[(3, b'n'), (10, b'c'), (2, b'n')]), ("MN", &[(16, b'n')]), ("MR", &[(23, b'n')]),
    ("MT", &[(4, b'a'), (5, b'n'), (18, b'c')]), ("MU", &[(4, b'a'), (19, b'n'), (3, b'a')]),
    ("NI", &[(4, b'a'), (20, b'n')]), ("NL", &[(4, b'a'), (10, b'n')]), ("NO", &[(11, b'n')]),
    ("OM", &[(3, b'n'), (16, b'c')]), ("PL", &[(24, b'n')]), ("PS", &[(4, b'a'), (21, b'c')]),
    ("PT", &[(21, b'n')]), ("QA", &[(4, b'a'), (21, b'c')]), ("RO", &[(4, b'a'), (16, b'c')]),
    ("RS", &[(18, b'n')]), ("RU", &[(14, b'n'), (15, b'c')]), ("SA", &[(2, b'n'), (18, b'c')]),
    ("SC", &[(4, b'a'), (20, b'n'), (3, b'a')]), ("SD", &[(14, b'n')]), ("SE", &[(20, b'n')]),
    ("SI", &[(15, b'n')]), ("SK", &[(20, b'n')]), ("SM", &[(1, b'a'), (10, b'n'), (12, b'c')]),
    ("SO", &[(19, b'n')]), ("ST", &[(21, b'n')]), ("SV", &[(4, b'a'), (20, b'n')]),
    ("TL", &[(19, b'n')]), ("TN", &[(20, b'n')]), ("TR", &[(6, b'n'), (16, b'c')]),
    ("UA", &[(6, b'n'), (19, b'c')]), ("VA", &[(18, b'n')]), ("VG", &[(4, b'a'), (16, b'n')]),
    ("XK", &[(16, b'n')]), ("YE", &[(4, b'a'), (4, b'n'), (18, b'c')]),
];

/// A text with the structure of an account number. It has no `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct IbanCandidate {
    /// The remainder and the characters as a number that wraps around, to count it once.
    pub(super) digest: u64,
    /// True if the check digits are right.
    pub(super) is_valid: bool,
}

/// Passes each text that has the structure of an account number.
pub(super) fn find(text: &[u8], mut found: impl FnMut(IbanCandidate)) {
    let mut at = 0;
    while at + 4 < text.len() {
        let is_inside = at > 0 && text[at - 1].is_ascii_alphanumeric();
        let begins_so = text[at].is_ascii_alphabetic() && text[at + 2].is_ascii_digit();
        if !is_inside
            && begins_so
            && let Some((candidate, end)) = at_start(text, at)
        {
            found(candidate);
            at = end;
        } else {
            at += 1;
        }
    }
}

/// The account number that begins here, and where it ends.
fn at_start(text: &[u8], start: usize) -> Option<(IbanCandidate, usize)> {
    let country = text.get(start..start + 2)?.to_ascii_uppercase();
    let (_, structure) = COUNTRIES.iter().find(|(code, _)| code.as_bytes() == country)?;
    let mut taken = Vec::with_capacity(34);
    let mut at = start;
    for (length, kind) in [(2, b'a'), (2, b'n')].iter().chain(structure.iter()) {
        for _ in 0..*length {
            // People write groups of four.
            if !taken.is_empty()
                && taken.len() % 4 == 0
                && matches!(text.get(at), Some(b' ' | b'-'))
            {
                at += 1;
            }
            let next = *text.get(at)?;
            let fits = match kind {
                b'n' => next.is_ascii_digit(),
                b'a' => next.is_ascii_alphabetic(),
                _ => next.is_ascii_alphanumeric(),
            };
            if !fits {
                return None;
            }
            taken.push(next.to_ascii_uppercase());
            at += 1;
        }
    }
    if text.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let mut digest: u64 = 0;
    for letter in &taken {
        digest = digest.wrapping_mul(37).wrapping_add(u64::from(*letter));
    }
    Some((IbanCandidate { digest, is_valid: remainder(&taken) == 1 }, at))
}

/// The remainder by 97, with the country and the check digits at the end and letters as numbers.
fn remainder(letters: &[u8]) -> u32 {
    let (first, rest) = letters.split_at(4);
    let mut remainder = 0;
    for letter in rest.iter().chain(first) {
        remainder = if letter.is_ascii_digit() {
            (remainder * 10 + u32::from(letter - b'0')) % 97
        } else {
            (remainder * 100 + u32::from(letter - b'A') + 10) % 97
        };
    }
    remainder
}
