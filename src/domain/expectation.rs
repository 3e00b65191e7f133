//! What an operator expects to find before a change: an owner, or the hash of the bytes.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::domain::observation::Content;
use crate::domain::record::Record;

/// What `--expect` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// The lock is this owner's.
    Owner(Vec<u8>),
    /// The lock's value has this SHA-256, in lower-case hex.
    Sha256(String),
}

impl Expectation {
    /// Parses `sha256:<64 hex digits>`; anything else is an owner.
    ///
    /// # Errors
    /// When the hash is not 64 hex digits.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(hex) = text.strip_prefix("sha256:") else { return Ok(Self::Owner(text.as_bytes().to_vec())) };
        let hex = hex.to_ascii_lowercase();
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("sha256: is followed by 64 hex digits".to_owned());
        }
        Ok(Self::Sha256(hex))
    }

    /// True when the record's lock is as expected.
    pub fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Owner(owner) => record.owner() == Some(owner),
            Self::Sha256(hex) => lock_hash(record).as_deref() == Some(hex),
        }
    }
}

/// The SHA-256 of the lock's value in lower-case hex; `None` without a lock, or when the value was not read whole.
pub fn lock_hash(record: &Record) -> Option<String> {
    let content = &record.lock()?.content;
    match content {
        Content::Text { head, .. } if content.is_whole() => Some(sha256_hex(head)),
        _ => None,
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::Expiry;
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    const OF_1: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";

    fn consumer(lock: Content, result: Content) -> Record {
        record("event-consumer", &[(lock, Expiry::Never), (result, Expiry::Never)])
    }

    fn driven(owner: &str) -> Record {
        record("event-driven", &[(text(owner), Expiry::Never), (Content::Absent, Expiry::Never)])
    }

    #[test]
    fn a_hash_is_64_hex_digits_in_either_case() {
        assert_eq!(
            Expectation::parse(&format!("sha256:{}", OF_1.to_uppercase())),
            Ok(Expectation::Sha256(OF_1.into()))
        );
        for wrong in ["sha256:", "sha256:6b86", &format!("sha256:{OF_1}0"), &format!("sha256:g{}", &OF_1[1..])] {
            assert!(Expectation::parse(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(Expectation::parse("worker-1"), Ok(Expectation::Owner(_))));
    }

    #[test]
    fn the_hash_is_that_of_the_lock_alone() {
        let expected = Expectation::Sha256(OF_1.into());
        assert!(expected.holds(&consumer(text("1"), text("2"))));
        assert!(!expected.holds(&consumer(text("2"), text("1"))));
        assert!(!expected.holds(&consumer(Content::Absent, text("1"))));
        assert!(!expected.holds(&consumer(text("1 "), Content::Absent)));
    }

    #[test]
    fn there_is_no_hash_of_a_part_of_a_result_or_of_another_type() {
        let part = Content::Text { head: b"1".to_vec(), length: Some(2) };
        assert_eq!(lock_hash(&consumer(part, Content::Absent)), None);
        assert_eq!(lock_hash(&consumer(Content::Other("hash".into()), Content::Absent)), None);
        assert_eq!(lock_hash(&chi(CHI_RESULT, Expiry::Never)), None);
    }

    #[test]
    fn an_owner_is_compared_whole() {
        let expected = Expectation::Owner(b"worker-1".to_vec());
        assert!(expected.holds(&driven("worker-1")));
        assert!(!expected.holds(&driven("worker-12")));
        assert!(!expected.holds(&consumer(text("worker-1"), Content::Absent)), "its locks name no owner");
    }
}
