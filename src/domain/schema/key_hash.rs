//! How a service derives the idempotency key from a request's body.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256, Sha512};

use crate::domain::hex::hex;

/// A hash of the request's body, written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash {
    digest: Digest,
    letters: Letters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digest {
    Sha256,
    Sha512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    Hex,
    Base64,
    Base64Url,
}

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = if self.digest == Digest::Sha256 { "sha256(body)" } else { "sha512(body)" };
        match self.letters {
            Letters::Hex => formatter.write_str(digest),
            Letters::Base64 => write!(formatter, "base64({digest})"),
            Letters::Base64Url => write!(formatter, "base64url({digest})"),
        }
    }
}

/// The text in the parentheses of `name(…)`; `None` if the text is anything else.
fn argument_of<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

impl KeyHash {
    /// Parses `sha256(body)`, which is hex, or `base64(sha256(body))`.
    ///
    /// # Errors
    /// A message that lists the supported hashes.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut letters = Letters::Hex;
        let mut hash = text;
        for (name, encoding) in
            [("hex", Letters::Hex), ("base64url", Letters::Base64Url), ("base64", Letters::Base64)]
        {
            if let Some(inside) = argument_of(name, text) {
                letters = encoding;
                hash = inside;
            }
        }
        let digest = match hash {
            "sha256(body)" => Digest::Sha256,
            "sha512(body)" => Digest::Sha512,
            _ => {
                return Err(format!(
                    "`{text}` is not a known hash; write sha256(body) or sha512(body), optionally \
                    in base64(…) or base64url(…)"
                ));
            }
        };
        Ok(Self { digest, letters })
    }

    /// The idempotency key of a request with this body.
    pub(crate) fn of(self, body: &[u8]) -> String {
        let digest = match self.digest {
            Digest::Sha256 => Sha256::digest(body).to_vec(),
            Digest::Sha512 => Sha512::digest(body).to_vec(),
        };
        match self.letters {
            Letters::Hex => hex(&digest),
            Letters::Base64 => STANDARD.encode(digest),
            Letters::Base64Url => URL_SAFE_NO_PAD.encode(digest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_gives_the_same_key_as_other_programs() {
        let of = |text: &str| KeyHash::parse(text).map(|hash| hash.of(b"abc"));
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (of("sha256(body)").unwrap(), of("hex(sha256(body))").unwrap()),
            (sum.to_owned(), sum.to_owned())
        );
        assert_eq!(
            of("base64(sha256(body))").unwrap(),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        );
        assert_eq!(
            of("base64url(sha256(body))").unwrap(),
            "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"
        );
        assert!(of("sha512(body)").unwrap().starts_with("ddaf35a193617aba"));
        for wrong in ["md5(body)", "sha256", "sha256(url)", "base64(body)", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
