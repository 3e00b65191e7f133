//! Payment card numbers in a text: digits with the prefix and the length of an issuer, and a valid
//! check digit.

/// How far a number resembles that of a payment card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CardFit {
    /// A number of 12 to 19 digits that no issuer has.
    OtherNumber,
    /// The prefix and the length of an issuer, with a wrong check digit.
    WrongCheckDigit,
    Valid,
    /// One of the numbers that payment providers publish for tests.
    KnownTestNumber,
}

/// A number in a text. It has no `Debug`, because it may be a card number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CardCandidate {
    /// The digits. 19 of them fit.
    pub(super) digits: u64,
    /// True if it is written in the groups in which cards show it.
    pub(super) is_grouped: bool,
    pub(super) fit: CardFit,
}

/// The first and the last prefix of an issuer, and the shortest and the longest number.
type IssuerRange = (u32, u32, usize, usize);

/// Prefixes and lengths by <https://en.wikipedia.org/wiki/Payment_card_number>. The Visa numbers of
/// 13 digits and the Maestro numbers of 12 to 15 are left out: nobody issues them any more, and
/// times and other numbers have as many digits.
const ISSUERS: [IssuerRange; 25] = [
    // Visa
    (4, 4, 16, 16),
    (4, 4, 19, 19),
    // Mastercard
    (51, 55, 16, 16),
    (2221, 2720, 16, 16),
    // American Express
    (34, 34, 15, 15),
    (37, 37, 15, 15),
    // Diners Club
    (300, 305, 14, 19),
    (3095, 3095, 14, 19),
    (36, 36, 14, 19),
    (38, 39, 14, 19),
    // Discover
    (6011, 6011, 16, 19),
    (644, 649, 16, 19),
    (65, 65, 16, 19),
    // JCB
    (3528, 3589, 16, 19),
    // UnionPay
    (62, 62, 16, 19),
    // Maestro
    (50, 50, 16, 19),
    (56, 58, 16, 19),
    (6304, 6304, 16, 19),
    (6390, 6390, 16, 19),
    (6759, 6763, 16, 19),
    // Mir
    (2200, 2204, 16, 19),
    // RuPay
    (60, 60, 16, 16),
    (81, 82, 16, 16),
    (508, 508, 16, 16),
    // Troy
    (9792, 9792, 16, 16),
];

/// Test numbers of <https://docs.stripe.com/testing> and
/// <https://developer.paypal.com/tools/sandbox/card-testing/>.
const TEST_NUMBERS: [u64; 25] = [
    4_242_424_242_424_242,
    4_111_111_111_111_111,
    4_012_888_888_881_881,
    4_000_056_655_665_556,
    4_000_000_000_000_002,
    4_000_000_000_009_995,
    4_000_002_500_003_155,
    4_000_000_000_003_220,
    4_000_000_000_000_077,
    4_005_519_200_000_004,
    5_555_555_555_554_444,
    5_105_105_105_105_100,
    5_200_828_282_828_210,
    5_454_545_454_545_454,
    2_223_003_122_003_222,
    378_282_246_310_005,
    371_449_635_398_431,
    378_734_493_671_000,
    6_011_111_111_111_117,
    6_011_000_990_139_424,
    6_011_981_111_111_113,
    30_569_309_025_904,
    3_056_930_009_020_004,
    36_227_206_271_667,
    3_566_002_020_360_505,
];

/// The groups in which cards show their numbers.
const GROUPS: [&[usize]; 5] = [&[4, 4, 4, 4, 3], &[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[6, 13]];

/// The fewest and the most digits of a number.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=19;

/// Passes each number of the text. Digits within a longer word or number do not count.
pub(super) fn find(text: &[u8], mut found: impl FnMut(CardCandidate)) {
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let mut end = at;
        while text.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        if DIGITS.contains(&(end - at)) && stands_alone(text, at, end) {
            found(candidate(&text[at..end], false));
        } else if let Some((number, after)) = grouped(text, at) {
            found(number);
            // The groups of a number that is not valid may belong to another one.
            if number.fit >= CardFit::Valid {
                end = after;
            }
        }
        at = end;
    }
}

/// True if neither letters nor further digits touch these bytes of the text.
fn stands_alone(text: &[u8], start: usize, end: usize) -> bool {
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit);
    if let Some(before) = start.checked_sub(1) {
        let is_fraction = text[before] == b'.' && is_digit(before.checked_sub(1));
        let is_within = text[before].is_ascii_alphanumeric() && !follows_card_word(&text[..start]);
        if is_within || is_fraction {
            return false;
        }
    }
    match text.get(end) {
        None => true,
        Some(b'.') => !is_digit(Some(end + 1)),
        Some(after) => !after.is_ascii_alphanumeric(),
    }
}

/// True if the text ends with a word that stands directly before a card's number. `%B` begins the
/// first track of a magnetic stripe (ISO/IEC 7813).
fn follows_card_word(before: &[u8]) -> bool {
    let lower = before[before.len().saturating_sub(6)..].to_ascii_lowercase();
    ["%b", "pan", "card", "number"].iter().any(|word| lower.ends_with(word.as_bytes()))
}

/// The number in groups that begins here, and where it ends. A valid one is preferred, because the
/// digits after it may look like its last group.
fn grouped(text: &[u8], start: usize) -> Option<(CardCandidate, usize)> {
    if !stands_alone(text, start, text.len()) {
        return None;
    }
    let mut best: Option<(CardCandidate, usize)> = None;
    for groups in GROUPS {
        let Some((digits, end, separator)) = in_groups(text, start, groups) else { continue };
        // A longer chain is an identifier, such as a UUID.
        let is_in_chain = !separator.is_ascii_whitespace()
            && (follows(text, start, separator) || goes_on(text, end, separator));
        if is_in_chain || !stands_alone(text, start, end) {
            continue;
        }
        let found = candidate(&digits, true);
        if best.is_none_or(|(best, _)| found.fit > best.fit) {
            best = Some((found, end));
        }
    }
    best
}

fn follows(text: &[u8], start: usize, separator: u8) -> bool {
    start >= 2 && text[start - 1] == separator && text[start - 2].is_ascii_alphanumeric()
}

fn goes_on(text: &[u8], end: usize, separator: u8) -> bool {
    text.get(end) == Some(&separator) && text.get(end + 1).is_some_and(u8::is_ascii_alphanumeric)
}

/// The digits of these groups, where they end, and what separates them: the same character between
/// all of them, or up to two blanks.
fn in_groups(text: &[u8], start: usize, groups: &[usize]) -> Option<(Vec<u8>, usize, u8)> {
    let mut digits = Vec::with_capacity(19);
    let mut at = start;
    let mut separator = None;
    for (index, length) in groups.iter().enumerate() {
        if index > 0 {
            let mut between = *text.get(at)?;
            at += 1;
            if between.is_ascii_whitespace() {
                between = b' ';
                if text.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
            }
            let is_separator = matches!(between, b' ' | b'-' | b'.' | b'/' | b'_');
            if !is_separator || separator.is_some_and(|is| is != between) {
                return None;
            }
            separator = Some(between);
        }
        let group = text.get(at..at + length)?;
        if !group.iter().all(u8::is_ascii_digit) {
            return None;
        }
        digits.extend_from_slice(group);
        at += length;
    }
    Some((digits, at, separator?))
}

/// The number of a JSON document that is written with an exponent or with `.0`, as digits; `None`
/// for any other number.
pub(super) fn of_float(text: &str) -> Option<String> {
    if !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // Larger numbers are not exact.
    let is_exact = number.fract() == 0.0 && (1e11..9e15).contains(&number);
    is_exact.then(|| format!("{number:.0}"))
}

fn candidate(digits: &[u8], is_grouped: bool) -> CardCandidate {
    let mut number: u64 = 0;
    for digit in digits {
        number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    }
    let fit = if TEST_NUMBERS.contains(&number) {
        CardFit::KnownTestNumber
    } else if !is_of_issuer(digits) {
        CardFit::OtherNumber
    } else if has_check_digit(digits) {
        CardFit::Valid
    } else {
        CardFit::WrongCheckDigit
    };
    CardCandidate { digits: number, is_grouped, fit }
}

fn is_of_issuer(digits: &[u8]) -> bool {
    let mut prefix: u32 = 0;
    for digit in digits.iter().take(4) {
        prefix = prefix * 10 + u32::from(digit - b'0');
    }
    for (first, last, shortest, longest) in ISSUERS {
        let is_long = (shortest..=longest).contains(&digits.len());
        let mut beginning = prefix;
        while beginning > 9 && beginning.ilog10() > first.ilog10() {
            beginning /= 10;
        }
        if is_long && (first..=last).contains(&beginning) && digits[0] != b'0' {
            return true;
        }
    }
    false
}

/// The check of Luhn (ISO/IEC 7812-1).
fn has_check_digit(digits: &[u8]) -> bool {
    let mut sum: u32 = 0;
    for (index, digit) in digits.iter().rev().enumerate() {
        let mut value = u32::from(digit - b'0');
        if index % 2 == 1 {
            value *= 2;
            if value > 9 {
                value -= 9;
            }
        }
        sum += value;
    }
    sum.is_multiple_of(10)
}
