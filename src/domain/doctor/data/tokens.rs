//! Credentials and addresses in a text: private keys, JSON web tokens, tokens of HTTP headers,
//! cookies, e-mail addresses.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::{memchr_iter, memchr2_iter, memmem};

/// True if the text has a private key in PEM (RFC 7468), and not only the words around one.
pub(super) fn has_private_key(text: &[u8]) -> bool {
    for at in places_of(text, b"PRIVATE KEY", 3) {
        let before = &text[at.saturating_sub(40)..at];
        if memmem::find(before, b"-----BEGIN ").is_none() {
            continue;
        }
        // Headers of an encrypted key may come first.
        let after = &text[at..text.len().min(at + 400)];
        let mut run = 0;
        for byte in after {
            let is_base64 = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            run = if is_base64 { run + 1 } else { 0 };
            if run >= 32 {
                return true;
            }
        }
    }
    false
}

/// True if the text has a JSON web token (RFC 7519): a header that names its algorithm, and two
/// parts or more after it.
pub(super) fn has_jwt(text: &[u8]) -> bool {
    for at in places_of(text, b"eyJ", 2) {
        if at > 0 && is_base64url(text[at - 1]) {
            continue;
        }
        let header = run_of(&text[at..], is_base64url);
        let rest = &text[at + header.len()..];
        let Some(rest) = rest.strip_prefix(b".") else { continue };
        let payload = run_of(rest, is_base64url);
        // A header is short.
        if payload.is_empty()
            || rest.get(payload.len()) != Some(&b'.')
            || header.len() > MAX_OF_HEADER
        {
            continue;
        }
        let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
        let header: serde_json::Value = serde_json::from_slice(&header).unwrap_or_default();
        if header.get("alg").is_some() {
            return true;
        }
    }
    false
}

/// The longest header of a token that is decoded. It names an algorithm and a key, so it is short.
const MAX_OF_HEADER: usize = 4096;

/// The bytes of a token that are compared. The beginning of a long token is enough.
const MAX_OF_TOKEN: usize = 512;

/// The shortest token. A shorter text may be a word with a number.
const MIN_TOKEN: usize = 16;

/// True if the text has the credentials of an Authorization header (RFC 6750, RFC 7617), or a token
/// in a form or a query (RFC 6749).
pub(super) fn has_bearer(text: &[u8]) -> bool {
    // Each word ends with one of these bytes.
    for last in memchr2_iter(b' ', b'=', text) {
        let (before, rest) = text.split_at(last + 1);
        // The beginning of a long token is enough.
        let rest = &rest[..rest.len().min(MAX_OF_TOKEN)];
        for word in
            [&b"bearer "[..], b"access_token=", b"refresh_token=", b"id_token=", b"client_secret="]
        {
            if ends_with_word(before, word) && is_token(run_of(rest, is_token68)) {
                return true;
            }
        }
        let token = run_of(rest, |byte| is_token68(byte) && byte != b'=');
        if !ends_with_word(before, b"basic ") || !(6..MAX_OF_TOKEN).contains(&token.len()) {
            continue;
        }
        // User and password, with a colon between.
        let decoded = STANDARD_NO_PAD.decode(token).unwrap_or_default();
        let is_text =
            std::str::from_utf8(&decoded).is_ok_and(|text| !text.contains(char::is_control));
        if is_text && decoded.contains(&b':') {
            return true;
        }
    }
    false
}

/// True if the text ends with this word, in any case, and not within a longer one.
fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    let Some(start) = text.len().checked_sub(word.len()) else { return false };
    let is_inside = start > 0 && text[start - 1].is_ascii_alphanumeric();
    text[start..].eq_ignore_ascii_case(word) && !is_inside
}

/// The places of a word in a text, found by its rarest byte. A searcher of its own for each of many
/// short texts would take longer than the search.
fn places_of<'a>(
    text: &'a [u8],
    word: &'a [u8],
    rarest: usize,
) -> impl Iterator<Item = usize> + 'a {
    let starts = memchr_iter(word[rarest], text).filter_map(move |at| at.checked_sub(rarest));
    starts.filter(move |start| text[*start..].starts_with(word))
}

/// True if this may be a secret token, and not a word or a placeholder.
pub(super) fn is_token(token: &[u8]) -> bool {
    token.len() >= MIN_TOKEN
        && token.iter().all(u8::is_ascii_graphic)
        && token.iter().any(u8::is_ascii_digit)
        && !is_redacted(token)
}

/// True if a value was replaced before it was stored, as `***` or `[REDACTED]`.
pub(super) fn is_redacted(value: &[u8]) -> bool {
    let letters: Vec<u8> =
        value.iter().filter(|byte| byte.is_ascii_alphanumeric()).copied().collect();
    let words =
        [&b"redacted"[..], b"masked", b"hidden", b"removed", b"filtered", b"secret", b"xxx"];
    let lower = letters.to_ascii_lowercase();
    let is_word = words.iter().any(|word| lower == *word);
    let is_one_letter = lower.first().is_some_and(|first| lower.iter().all(|byte| byte == first));
    let has_stars = memmem::find(value, b"***").is_some() || memmem::find(value, b"...").is_some();
    letters.is_empty() || is_word || is_one_letter || has_stars
}

/// True if the text has a URL with a password (RFC 3986, section 3.2.1).
pub(super) fn has_url_password(text: &[u8]) -> bool {
    for at in places_of(text, b"://", 0) {
        let rest = &text[at + 3..];
        let rest = &rest[..rest.len().min(MAX_OF_TOKEN)];
        let authority = run_of(rest, |byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'<' | b'>')
        });
        let Some(end) = authority.iter().rposition(|byte| *byte == b'@') else { continue };
        let Some(colon) = authority[..end].iter().position(|byte| *byte == b':') else { continue };
        let password = &authority[colon + 1..end];
        if !password.is_empty() && !is_redacted(password) {
            return true;
        }
    }
    false
}

/// The shortest value of a cookie with a digit, and without one, that may give access. A shorter
/// one is a setting, such as that of `lang=en`.
const MIN_COOKIE: usize = 8;
const LONG_COOKIE: usize = 20;

/// The attributes of Set-Cookie (RFC 6265).
const COOKIE_ATTRIBUTES: [&[u8]; 5] = [b"expires", b"max-age", b"domain", b"path", b"samesite"];

/// True if a Cookie or Set-Cookie header has a value that may give access: it is not redacted, and
/// long enough, unlike that of `lang=en`.
pub(super) fn is_cookie(value: &[u8]) -> bool {
    for pair in value.split(|byte| *byte == b';') {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let name = pair[..equals].trim_ascii().to_ascii_lowercase();
        if COOKIE_ATTRIBUTES.contains(&&name[..]) {
            continue;
        }
        let set = pair[equals + 1..].trim_ascii();
        let has_digit = set.iter().any(u8::is_ascii_digit);
        let is_long = set.len() >= LONG_COOKIE || set.len() >= MIN_COOKIE && has_digit;
        if is_long && !is_redacted(set) {
            return true;
        }
    }
    false
}

/// Ends of file names that look like the end of a domain.
const FILE_ENDS: [&str; 16] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "mjs", "ts", "html", "json", "xml",
    "pdf", "ico", "map",
];

/// Ends of the names of hosts in a private network, which receive no mail of persons (RFC 6762;
/// `internal` is reserved by ICANN).
const PRIVATE_ENDS: [&str; 4] = ["internal", "local", "localhost", "lan"];

/// True if the text has an e-mail address (the usual part of RFC 5322).
pub(super) fn has_email(text: &[u8]) -> bool {
    for at in memchr_iter(b'@', text) {
        let start = at - run_before(&text[..at], is_local);
        let local = &text[start..at];
        let is_short = (1..=64).contains(&local.len());
        let is_free = is_boundary(start.checked_sub(1).and_then(|before| text.get(before)))
            && !is_masked(&text[..start]);
        // The user and password of a URL.
        let is_in_url = text[..start].ends_with(b"//")
            || text[..start].ends_with(b":")
                && !text[..start].ends_with(b"mailto:")
                && memmem::find(&text[start.saturating_sub(80)..start], b"://").is_some();
        let domain = run_of(&text[at + 1..], |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
        });
        let after = &text[at + 1 + domain.len()..];
        let ends = is_boundary(after.first()) && !is_path(after);
        if is_short && is_free && ends && !is_in_url && is_local_part(local) && is_domain(domain) {
            return true;
        }
    }
    false
}

/// True if an address may end or begin beside this byte.
fn is_boundary(beside: Option<&u8>) -> bool {
    beside.is_none_or(|byte| {
        byte.is_ascii_whitespace() || *byte < 0x20 || b"\"'<>()[]{},;:=/&|?!*`\\".contains(byte)
    })
}

/// True if stars before the rest of an address hide its beginning, as in `e***a@shop.example`. One
/// star alone may be an emphasis.
fn is_masked(before: &[u8]) -> bool {
    match before {
        [.., other, b'*'] => *other == b'*' || is_local(*other),
        _ => false,
    }
}

/// True for the path of a repository or a file on a host, as in `git@host.example:group/name.git`.
fn is_path(after: &[u8]) -> bool {
    matches!(after, [b':', next, ..] if next.is_ascii_alphabetic() || matches!(next, b'/' | b'~'))
}

fn is_local_part(local: &[u8]) -> bool {
    let is_letter = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_')
    };
    is_letter(local.first()) && is_letter(local.last())
}

fn is_domain(domain: &[u8]) -> bool {
    let domain = domain.strip_suffix(b".").unwrap_or(domain);
    if domain.len() > 253 {
        return false;
    }
    let mut labels = domain.split(|byte| *byte == b'.');
    let Some(last) = labels.next_back() else { return false };
    let lower = last.to_ascii_lowercase();
    let is_file = FILE_ENDS.iter().any(|end| end.as_bytes() == lower)
        || PRIVATE_ENDS.iter().any(|end| end.as_bytes() == lower);
    let is_one_case =
        last.iter().all(u8::is_ascii_lowercase) || last.iter().all(u8::is_ascii_uppercase);
    let is_top = last.len() >= 2 && (is_one_case || lower.starts_with(b"xn--"));
    let mut count = 0;
    for label in labels {
        if label.is_empty() || label.starts_with(b"-") || label.ends_with(b"-") {
            return false;
        }
        count += 1;
    }
    is_top && !is_file && count > 0
}

/// The bytes of an address before the `@`.
fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-') || byte >= 0x80
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_token68(byte: u8) -> bool {
    is_base64url(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
}

fn run_of(text: &[u8], fits: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|byte| !fits(*byte)).unwrap_or(text.len());
    &text[..end]
}

/// How many of the last bytes fit, up to 65.
fn run_before(text: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    let mut count = 0;
    for byte in text.iter().rev().take(65) {
        if !fits(*byte) {
            break;
        }
        count += 1;
    }
    count
}
