//! Headers and members whose names say that their values are secret.

use super::sensitive::SensitiveKind;
use super::tokens;

/// What the value of a header or member of a certain name must look like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    /// At least 8 characters after the scheme, with a digit or 20 of them.
    Credential,
    /// At least 12 characters with a digit, or 20 of them.
    Token,
    /// An identifier of a session, and not one of Twilio (`SM` and 32 digits of hex).
    Session,
    /// A word, and not a sentence about passwords.
    Password,
    /// A cookie with a value.
    Cookie,
    /// Three or four digits.
    CardCode,
    /// Four or five digits. Postal codes, which some call PIN, have six.
    Pin,
}

/// Names, without their case and dashes, and what their values are. RFC 9110 and RFC 6265 for
/// headers, RFC 6749 for tokens.
const NAMES: [(&str, SensitiveKind, ValueForm); 19] = [
    ("authorization", SensitiveKind::Bearer, ValueForm::Credential),
    ("proxyauthorization", SensitiveKind::Bearer, ValueForm::Credential),
    ("cookie", SensitiveKind::Cookie, ValueForm::Cookie),
    ("setcookie", SensitiveKind::Cookie, ValueForm::Cookie),
    ("setcookie2", SensitiveKind::Cookie, ValueForm::Cookie),
    ("jwt", SensitiveKind::Bearer, ValueForm::Token),
    ("auth", SensitiveKind::Bearer, ValueForm::Token),
    ("session", SensitiveKind::Bearer, ValueForm::Session),
    ("sid", SensitiveKind::Bearer, ValueForm::Session),
    ("pwd", SensitiveKind::Password, ValueForm::Password),
    ("passphrase", SensitiveKind::Password, ValueForm::Password),
    ("pin", SensitiveKind::Password, ValueForm::Pin),
    ("cvv", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cvv2", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cvc", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cvc2", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cardcode", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cardcvv", SensitiveKind::CardCode, ValueForm::CardCode),
    ("cardcvc", SensitiveKind::CardCode, ValueForm::CardCode),
];

/// Ends of names, in the same form.
const ENDS: [(&str, SensitiveKind, ValueForm); 15] = [
    ("apikey", SensitiveKind::Bearer, ValueForm::Credential),
    ("authtoken", SensitiveKind::Bearer, ValueForm::Credential),
    ("securitytoken", SensitiveKind::Bearer, ValueForm::Credential),
    ("sessiontoken", SensitiveKind::Bearer, ValueForm::Credential),
    ("sessionid", SensitiveKind::Bearer, ValueForm::Token),
    ("subscriptionkey", SensitiveKind::Bearer, ValueForm::Credential),
    ("secretkey", SensitiveKind::Bearer, ValueForm::Credential),
    ("secretaccesskey", SensitiveKind::Bearer, ValueForm::Credential),
    ("privatekey", SensitiveKind::Bearer, ValueForm::Token),
    ("password", SensitiveKind::Password, ValueForm::Password),
    ("passwd", SensitiveKind::Password, ValueForm::Password),
    ("encryptionkey", SensitiveKind::Bearer, ValueForm::Credential),
    ("signingkey", SensitiveKind::Bearer, ValueForm::Credential),
    ("secret", SensitiveKind::Bearer, ValueForm::Password),
    ("token", SensitiveKind::Bearer, ValueForm::Token),
];

/// Ends of the names of tokens that give no access: those of pages, of requests that are sent
/// again, and of payment methods.
const HARMLESS: [&str; 13] = [
    "pagetoken",
    "nexttoken",
    "prevtoken",
    "previoustoken",
    "paginationtoken",
    "continuationtoken",
    "synctoken",
    "idempotencytoken",
    "clienttoken",
    "requesttoken",
    "paymenttoken",
    "paymentmethodtoken",
    "cardtoken",
];

/// The longest name that is compared.
const LONGEST: usize = 40;

/// From this length on, a credential need not have a digit. A shorter text without a digit may be a
/// word.
const LONG_CREDENTIAL: usize = 20;

/// The shortest credential, token and password. A shorter value under such a name may be a state or
/// an identifier of the service.
const MIN_CREDENTIAL: usize = 8;
const MIN_TOKEN: usize = 12;
const MIN_PASSWORD: usize = 4;

/// What services write in place of a password, to say what is wrong with it.
const WORDS: [&[u8]; 8] =
    [b"required", b"invalid", b"missing", b"weak", b"null", b"none", b"true", b"false"];

/// What the value of a header or member is, by its name and its form; `None` for anything else.
pub(super) fn kind_of(name: &str, value: &[u8]) -> Option<SensitiveKind> {
    if name.len() > LONGEST {
        return None;
    }
    let mut plain = name.to_ascii_lowercase();
    plain.retain(|letter| !matches!(letter, '_' | '-' | ' '));
    let exact = NAMES.iter().find(|(known, ..)| plain == *known);
    if exact.is_none() && HARMLESS.iter().any(|end| plain.ends_with(end)) {
        return None;
    }
    let (_, kind, form) = exact.or_else(|| ENDS.iter().find(|(end, ..)| plain.ends_with(end)))?;
    fits(*form, value).then_some(*kind)
}

fn is_token(value: &[u8]) -> bool {
    let is_long = value.len() >= LONG_CREDENTIAL
        || value.len() >= MIN_TOKEN && value.iter().any(u8::is_ascii_digit);
    is_long && value.iter().all(u8::is_ascii_graphic) && !tokens::is_redacted(value)
}

/// True for an identifier of Twilio's API, whose responses have it in a member `sid`.
fn is_of_twilio(value: &[u8]) -> bool {
    value.len() == 34
        && value[..2].iter().all(u8::is_ascii_uppercase)
        && value[2..].iter().all(u8::is_ascii_hexdigit)
}

fn fits(form: ValueForm, value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let are_digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    match form {
        ValueForm::Cookie => tokens::is_cookie(value),
        ValueForm::Token => is_token(value),
        ValueForm::Session => is_token(value) && !is_of_twilio(value),
        ValueForm::CardCode => are_digits && (3..=4).contains(&value.len()),
        ValueForm::Pin => are_digits && (4..=5).contains(&value.len()),
        ValueForm::Credential => {
            // The scheme comes first.
            let last = value.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let is_long = last.len() >= LONG_CREDENTIAL
                || last.len() >= MIN_CREDENTIAL && last.iter().any(u8::is_ascii_digit);
            is_long && !tokens::is_redacted(last)
        }
        ValueForm::Password => {
            let is_word = value.len() >= MIN_PASSWORD && !value.contains(&b' ');
            let lower = value.to_ascii_lowercase();
            is_word && !WORDS.contains(&&lower[..]) && !tokens::is_redacted(value)
        }
    }
}

/// Passes what the lines of a text are that look like headers or like members, `Name: value` or
/// `name=value`.
pub(super) fn in_lines(text: &str, mut found: impl FnMut(SensitiveKind)) {
    for line in text.split(['\n', '\r', '&', '?']) {
        let beginning = line.as_bytes();
        let beginning = &beginning[..beginning.len().min(LONGEST + 2)];
        let Some(end) = beginning.iter().position(|byte| matches!(byte, b':' | b'=')) else {
            continue;
        };
        let name = line[..end].trim();
        // The session in a Set-Cookie is reported as a cookie.
        if name.eq_ignore_ascii_case("sid") || name.eq_ignore_ascii_case("session") {
            continue;
        }
        let value = line[end + 1..].trim();
        let value = value.as_bytes();
        if let Some(kind) = kind_of(name, &value[..value.len().min(MAX_OF_VALUE)]) {
            found(kind);
        }
    }
}

/// The bytes of a value that are compared. The beginning of a long credential is enough.
const MAX_OF_VALUE: usize = 512;
