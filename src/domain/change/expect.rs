//! The operator's expectation before a change: an owner, or the identity of the lock's Redis key.

use sha2::{Digest as _, Sha256};

use crate::domain::hex::hex;
use crate::domain::record::{Content, Deadline, KeyState, Record};

/// Stands for the expiry of a lock that never expires.
const NO_EXPIRY: &str = "none";

/// The value of `--expect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// The lock has this owner. When it was taken does not matter.
    Owner(Vec<u8>),
    /// The lock is the one for which idemctl printed this token.
    Token {
        /// The SHA-256 of the lock's value, in lower-case hex.
        sha256: String,
        /// Milliseconds since the epoch by the server's clock; `None` for a lock without expiry.
        expires_at_ms: Option<u64>,
    },
}

impl Expectation {
    /// Parses `sha256:<64 hex digits>@<milliseconds>` and `sha256:<64 hex digits>@none`, as idemctl
    /// prints them. Any other text is an owner.
    ///
    /// # Errors
    /// If the hash is not 64 hex digits, or the expiry is missing or neither a number nor `none`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(token) = text.strip_prefix("sha256:") else {
            return Ok(Self::Owner(text.as_bytes().to_vec()));
        };
        let (hex, expiry) = match token.split_once('@') {
            Some((hex, expiry)) => (hex, Some(expiry)),
            None => (token, None),
        };
        let sha256 = hex.to_ascii_lowercase();
        if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("sha256: is followed by 64 hex digits, @, and the lock's expiry".to_owned());
        }
        let expires_at_ms = match expiry {
            Some(NO_EXPIRY) => None,
            Some(at) => {
                let at = at.parse().map_err(|_| {
                    "@ is followed by the milliseconds of the expiry, or none".to_owned()
                })?;
                Some(at)
            }
            // The bytes alone do not tell this lock from one that was taken again with the same
            // value.
            None => return Err("the token has no expiry; print it again with --dry-run".to_owned()),
        };
        Ok(Self::Token { sha256, expires_at_ms })
    }

    /// True if the record is the expected one.
    pub(crate) fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Owner(owner) => record.owner() == Some(owner),
            Self::Token { sha256, expires_at_ms } => {
                let Some(lock) = record.lock() else { return false };
                let has_expiry = match expires_at_ms {
                    None => lock.deadline == Deadline::Never,
                    Some(at) => lock.deadline.is_at(*at),
                };
                has_expiry && hash(lock).as_ref() == Some(sha256)
            }
        }
    }
}

/// The token that identifies the record's lock, and not a later lock on the same key:
/// `sha256:<hex>@<milliseconds>`, or `@none` for a lock without expiry. `None` if there is no lock,
/// if the value was not read whole, or if the Redis user may not ask for the expiry.
pub(crate) fn token(record: &Record) -> Option<String> {
    let lock = record.lock()?;
    let expiry = match lock.deadline {
        Deadline::Never => NO_EXPIRY.to_owned(),
        deadline => deadline.millis()?.to_string(),
    };
    Some(format!("sha256:{}@{expiry}", hash(lock)?))
}

fn hash(lock: &KeyState) -> Option<String> {
    match &lock.content {
        Content::Text { head, .. } if lock.content.is_whole() => Some(hex(&Sha256::digest(head))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    const OF_1: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";

    fn consumer(lock: Content, result: Content) -> Record {
        record("event-consumer", &[(lock, TimeLeft::NoExpiry), (result, TimeLeft::NoExpiry)])
    }

    fn driven(owner: &str) -> Record {
        record(
            "event-driven",
            &[(text(owner), TimeLeft::NoExpiry), (Content::Absent, TimeLeft::NoExpiry)],
        )
    }

    fn of_1(expiry: &str) -> Expectation {
        Expectation::parse(&format!("sha256:{OF_1}@{expiry}")).expect("a token")
    }

    #[test]
    fn a_hash_is_64_hex_digits_in_either_case() {
        assert_eq!(
            Expectation::parse(&format!("sha256:{}@none", OF_1.to_uppercase())),
            Ok(of_1("none"))
        );
        for wrong in ["", "6b86", &format!("{OF_1}0"), &format!("g{}", &OF_1[1..])] {
            assert!(Expectation::parse(&format!("sha256:{wrong}@none")).is_err(), "{wrong}");
        }
        for wrong in ["@", "@-1", "@1.5", "@None", "@none ", "@1@2"] {
            assert!(Expectation::parse(&format!("sha256:{OF_1}{wrong}")).is_err(), "{wrong}");
        }
        assert!(matches!(Expectation::parse("worker-1"), Ok(Expectation::Owner(_))));
    }

    /// Rule: the bytes alone do not name a lock, because a lock that was taken again can have the
    /// same ones.
    #[test]
    fn a_token_without_an_expiry_is_refused() {
        let why = Expectation::parse(&format!("sha256:{OF_1}")).unwrap_err();
        assert!(why.contains("print it again"), "{why}");
    }

    #[test]
    fn the_hash_is_that_of_the_lock_alone() {
        let expected = of_1("none");
        assert!(expected.holds(&consumer(text("1"), text("2"))));
        assert!(!expected.holds(&consumer(text("2"), text("1"))));
        assert!(!expected.holds(&consumer(Content::Absent, text("1"))));
        assert!(!expected.holds(&consumer(text("1 "), Content::Absent)));
    }

    #[test]
    fn the_expiry_is_that_of_the_lock_that_was_printed() {
        // Read at 1,000,000 ms.
        let lock = |expiry| {
            record("event-consumer", &[(text("1"), expiry), (Content::Absent, TimeLeft::NoExpiry)])
        };
        let (held, stuck) = (lock(TimeLeft::Millis(5_000)), lock(TimeLeft::NoExpiry));
        assert_eq!(token(&held), Some(format!("sha256:{OF_1}@1005000")));
        assert_eq!(token(&stuck), Some(format!("sha256:{OF_1}@none")));
        assert!(of_1("1005000").holds(&held));
        for wrong in ["1004999", "1005001", "none"] {
            assert!(!of_1(wrong).holds(&held), "{wrong}");
        }
        assert!(of_1("none").holds(&stuck) && !of_1("1005000").holds(&stuck));
    }

    #[test]
    fn what_is_printed_parses() {
        let printed = token(&driven("worker-1")).expect("a token");
        assert!(Expectation::parse(&printed).expect("a token").holds(&driven("worker-1")));
    }

    #[test]
    fn there_is_no_token_of_a_part_of_a_result_or_of_another_type() {
        let part = Content::Text { head: b"1".to_vec(), length: Some(2) };
        assert_eq!(token(&consumer(part, Content::Absent)), None);
        assert_eq!(token(&consumer(Content::Other("hash".into()), Content::Absent)), None);
        assert_eq!(token(&chi(CHI_RESULT, TimeLeft::NoExpiry)), None);
    }

    #[test]
    fn an_owner_is_compared_whole() {
        let expected = Expectation::Owner(b"worker-1".to_vec());
        assert!(expected.holds(&driven("worker-1")));
        assert!(!expected.holds(&driven("worker-12")));
        assert!(
            !expected.holds(&consumer(text("worker-1"), Content::Absent)),
            "its locks name no owner"
        );
    }
}
