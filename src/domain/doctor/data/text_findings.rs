//! What a text contains, also behind the escapes of URLs, HTML and JSON.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::{memchr, memchr3};

use super::card_number::{self, CardCandidate, CardFit};
use super::iban::{self, IbanCandidate};
use super::sensitive::SensitiveKind;
use super::{named, provider_keys, tokens};

/// How many times escapes within escapes are undone. Each time, the whole text is searched again.
const MAX_ROUNDS: usize = 3;

/// The shortest text with a finding: an e-mail address.
const SHORTEST: usize = 6;

/// What a text contains. It has no `Debug`, because numbers are part of it.
#[derive(Default)]
pub(super) struct TextFindings {
    /// The kinds that are certain by themselves.
    pub(super) kinds: BTreeSet<SensitiveKind>,
    /// The numbers, each once.
    pub(super) cards: Vec<CardCandidate>,
    pub(super) ibans: Vec<IbanCandidate>,
}

impl TextFindings {
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.cards.is_empty() && self.ibans.is_empty()
    }

    /// True if a detector matches, whether or not numbers are valid by chance.
    pub(super) fn is_sensitive(&self) -> bool {
        !self.kinds.is_empty()
            || self.cards.iter().any(|card| card.fit >= CardFit::Valid)
            || self.ibans.iter().any(|iban| iban.is_valid)
    }
}

/// What a text contains, as it is and with its escapes undone.
pub(super) fn of(text: &str) -> TextFindings {
    let mut findings = TextFindings::default();
    if text.len() < SHORTEST {
        return findings;
    }
    let mut seen = Cow::Borrowed(text);
    for round in 0..=MAX_ROUNDS {
        add(&mut findings, &seen);
        if round == MAX_ROUNDS {
            break;
        }
        let Some(next) = unescaped(&seen) else { break };
        seen = Cow::Owned(next);
    }
    findings
}

fn add(findings: &mut TextFindings, text: &str) {
    let plain = plain_separators(text);
    let bytes = plain.as_bytes();
    let cards = &mut findings.cards;
    card_number::find(bytes, |card| {
        if cards.len() < MAX_NUMBERS && !is_known(cards, &card) {
            cards.push(card);
        }
    });
    let ibans = &mut findings.ibans;
    iban::find(bytes, |iban| {
        if ibans.len() < MAX_NUMBERS && !ibans.iter().rev().take(RECENT).any(|known| *known == iban)
        {
            ibans.push(iban);
        }
    });
    let kinds = &mut findings.kinds;
    provider_keys::find(bytes, |label| {
        kinds.insert(SensitiveKind::ProviderKey(label));
    });
    named::in_lines(&plain, |kind| {
        kinds.insert(kind);
    });
    for (kind, shortest, detect) in DETECTORS {
        if bytes.len() >= shortest && !kinds.contains(&kind) && detect(bytes) {
            kinds.insert(kind);
        }
    }
}

type Detect = fn(&[u8]) -> bool;

/// Each detector with the fewest bytes that it finds. Most texts are short.
const DETECTORS: [(SensitiveKind, usize, Detect); 5] = [
    (SensitiveKind::PrivateKey, 48, tokens::has_private_key),
    (SensitiveKind::Jwt, 20, tokens::has_jwt),
    (SensitiveKind::Bearer, 12, tokens::has_bearer),
    (SensitiveKind::Password, 6, tokens::has_url_password),
    (SensitiveKind::Email, 6, tokens::has_email),
];

/// The most numbers of one text that are counted, so that memory stays bounded.
const MAX_NUMBERS: usize = 20_000;

/// How many of the last numbers are compared, because comparing with all of them would take
/// quadratic time. The callers leave out the other repeated ones.
const RECENT: usize = 64;

fn is_known(cards: &[CardCandidate], card: &CardCandidate) -> bool {
    cards.iter().rev().take(RECENT).any(|known| known.digits == card.digits)
}

/// The text with the usual space and dash in place of their relatives.
fn plain_separators(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => plain.push(' '),
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff0d}' => plain.push('-'),
            // Invisible.
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => {}
            '\u{ff10}'..='\u{ff19}' => {
                let digit = u32::from(letter) - 0xff10 + u32::from('0');
                plain.push(char::from_u32(digit).unwrap_or(letter));
            }
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

/// The text with the escapes of URLs and forms, of HTML, and of JSON and similar languages undone
/// once; `None` if it has none.
fn unescaped(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let has_escape = memchr3(b'%', b'\\', b'&', bytes).or_else(|| memchr(b'+', bytes)).is_some();
    if !has_escape {
        return None;
    }
    let mut plain: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let (byte, length) = escape_at(bytes, at);
        match byte {
            Some(letter) => {
                let mut room = [0; 4];
                plain.extend_from_slice(letter.encode(&mut room));
                at += length;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    if plain == bytes {
        return None;
    }
    Some(String::from_utf8_lossy(&plain).into_owned())
}

/// What an escape stands for.
enum Escaped {
    /// A byte, which may be part of a character.
    Byte(u8),
    Character(char),
}

impl Escaped {
    fn encode<'a>(&self, room: &'a mut [u8; 4]) -> &'a [u8] {
        match self {
            Self::Byte(byte) => {
                room[0] = *byte;
                &room[..1]
            }
            Self::Character(letter) => letter.encode_utf8(room).as_bytes(),
        }
    }
}

/// What the escape at this place stands for, and its length.
fn escape_at(bytes: &[u8], at: usize) -> (Option<Escaped>, usize) {
    let rest = &bytes[at..];
    match rest {
        [b'%', high, low, ..] => (hex_number(&[*high, *low]).map(Escaped::Byte), 3),
        // A space in a form.
        [b'+', ..] => (Some(Escaped::Byte(b' ')), 1),
        [b'\\', b'u', digits @ ..] => {
            let digits = digits.get(..4).unwrap_or_default();
            (character(digits, 16), 6)
        }
        [b'\\', b'x', high, low, ..] => (hex_number(&[*high, *low]).map(Escaped::Byte), 4),
        [b'\\', b'n' | b'r' | b't', ..] => (Some(Escaped::Byte(b'\n')), 2),
        [b'\\', other, ..] if other.is_ascii_punctuation() => (Some(Escaped::Byte(*other)), 2),
        [b'&', ..] => entity(rest),
        _ => (None, 1),
    }
}

fn hex_number(digits: &[u8; 2]) -> Option<u8> {
    let high = char::from(digits[0]).to_digit(16)?;
    let low = char::from(digits[1]).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

fn character(digits: &[u8], radix: u32) -> Option<Escaped> {
    let digits = std::str::from_utf8(digits).ok()?;
    let code = u32::from_str_radix(digits, radix).ok()?;
    char::from_u32(code).map(Escaped::Character)
}

/// The longest entity that is undone.
const LONGEST_ENTITY: usize = 10;

/// An entity of HTML.
fn entity(rest: &[u8]) -> (Option<Escaped>, usize) {
    let beginning = &rest[..rest.len().min(LONGEST_ENTITY)];
    let Some(end) = beginning.iter().position(|byte| *byte == b';') else { return (None, 1) };
    let escaped = match &beginning[1..end] {
        [b'#', b'x' | b'X', digits @ ..] => character(digits, 16),
        [b'#', digits @ ..] => character(digits, 10),
        b"amp" => Some(Escaped::Byte(b'&')),
        b"lt" => Some(Escaped::Byte(b'<')),
        b"gt" => Some(Escaped::Byte(b'>')),
        b"quot" => Some(Escaped::Byte(b'"')),
        b"apos" => Some(Escaped::Byte(b'\'')),
        b"nbsp" => Some(Escaped::Byte(b' ')),
        b"commat" => Some(Escaped::Byte(b'@')),
        b"hyphen" | b"dash" => Some(Escaped::Byte(b'-')),
        _ => None,
    };
    (escaped, end + 1)
}
