//! The identity of one Redis key, and its form in the audit log.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::deadline::Deadline;
use super::observation::{Content, Hash, KeyState};
use crate::domain::hex::{hex, unhex};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WrittenIdentity", try_from = "WrittenIdentity")]
pub(crate) struct KeyIdentity {
    pub(super) value: ValueDigest,
    pub(super) deadline: Deadline,
}

/// A value, identified by the bytes of it that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueDigest {
    Absent,
    Text {
        read: usize,
        length: Option<u64>,
        checksum: Option<[u8; 8]>,
        digest: [u8; 32],
    },
    /// A value that is not a string. An empty type matches any type.
    Other {
        kind: String,
        checksum: Option<[u8; 8]>,
        /// The SHA-256 of all fields of a hash, in the order of their names. The checksum depends
        /// on the order in which the server keeps them, which changes when it restarts. `None` if
        /// the fields have a TTL, which only the checksum covers.
        fields: Option<[u8; 32]>,
    },
}

impl KeyIdentity {
    pub(crate) const ABSENT: Self = Self { value: ValueDigest::Absent, deadline: Deadline::Never };

    /// The identity of a Redis key as it was read. If a value was read in part, only that part is
    /// compared.
    pub(crate) fn of(key: &KeyState) -> Self {
        Self { value: ValueDigest::of(key, usize::MAX), deadline: key.deadline }
    }

    /// The same value, with an expiry at about this time, because the caller computed it from an
    /// earlier TIME.
    pub(crate) fn expiring_about(self, at: u64) -> Self {
        Self { deadline: Deadline::Between(at, at), ..self }
    }

    /// The same value, with an expiry at exactly this time.
    pub(crate) fn expiring_at(self, at: u64) -> Self {
        Self { deadline: Deadline::At(at), ..self }
    }

    /// A value that was restored from the output of DUMP, to expire at this time; `None` never
    /// expires.
    pub(crate) fn of_dump(dump: &[u8], expires_at_ms: Option<u64>) -> Self {
        // A dump ends with the checksum of the whole value, which later reads can be compared with.
        let checksum = dump.last_chunk().copied();
        let value = match type_of_dump(dump) {
            Some(kind) => ValueDigest::Other { kind: kind.to_owned(), checksum, fields: None },
            None => ValueDigest::Text {
                read: 0,
                length: None,
                checksum,
                digest: Sha256::digest(b"").into(),
            },
        };
        let deadline = match expires_at_ms {
            Some(at) => Deadline::At(at),
            None => Deadline::Never,
        };
        Self { value, deadline }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.value == ValueDigest::Absent
    }

    pub(crate) fn has_same_value(&self, other: &Self) -> bool {
        self.value == other.value
    }

    /// True if the Redis key now expires at this time.
    pub(crate) fn ends_as(&self, now: &KeyState) -> bool {
        self.deadline.is_same(now.deadline)
    }

    /// When the Redis key expires, in milliseconds since the epoch; `None` if it never expires.
    pub(crate) fn expires_at_ms(&self) -> Option<u64> {
        self.deadline.millis()
    }

    /// How many bytes a read needs to be comparable. See [`Self::needs_checksum`] for values that
    /// need the checksum of DUMP as well.
    pub(crate) fn read_bytes(&self) -> usize {
        if let ValueDigest::Text { read, .. } = self.value { read } else { 0 }
    }

    pub(crate) fn needs_checksum(&self) -> bool {
        matches!(
            self.value,
            ValueDigest::Text { checksum: Some(_), .. } | ValueDigest::Other { .. }
        )
    }

    /// True if the Redis key still has this identity. Unknown parts count as different.
    pub(crate) fn is_still(&self, now: &KeyState) -> bool {
        // A read of only some bytes shows that the rest is the same only with the checksum of DUMP.
        let is_told = match (&self.value, &now.content) {
            (ValueDigest::Text { checksum: Some(_), .. }, Content::Text { .. }) => {
                now.checksum.is_some()
            }
            (ValueDigest::Text { read, length, .. }, Content::Text { length: now, .. }) => {
                *length == Some(*read as u64) && now.is_some()
            }
            (ValueDigest::Other { checksum, .. }, _) => {
                checksum.is_some() && now.checksum.is_some()
            }
            _ => true,
        };
        let is_same_value = (is_told && self.value.is_of(now)) || self.has_same_fields(now);
        is_same_value && (self.is_absent() || self.deadline.is_same(now.deadline))
    }

    /// True if the Redis key is a hash with the same fields, in whatever order the server keeps
    /// them now.
    fn has_same_fields(&self, now: &KeyState) -> bool {
        let ValueDigest::Other { fields: Some(fields), .. } = &self.value else { return false };
        let ValueDigest::Other { fields: Some(fields_now), .. } = ValueDigest::of(now, usize::MAX)
        else {
            return false;
        };
        *fields == fields_now
    }

    /// The identity for the audit log; `None` if the read was too inexact to compare with.
    pub(crate) fn written(self) -> Option<Self> {
        if self.is_absent() || self.deadline.is_comparable() { Some(self) } else { None }
    }
}

impl ValueDigest {
    /// Of at most `most` bytes from the beginning, because the other read may not have read more.
    pub(super) fn of(key: &KeyState, most: usize) -> Self {
        match &key.content {
            Content::Absent => Self::Absent,
            Content::Hash(hash) => Self::Other {
                kind: "hash".to_owned(),
                checksum: key.checksum,
                fields: if key.has_plain_fields && hash.is_whole() {
                    Some(digest_of(hash))
                } else {
                    None
                },
            },
            Content::Other(kind) => {
                Self::Other { kind: kind.clone(), checksum: key.checksum, fields: None }
            }
            Content::Text { head, length } => {
                let head = &head[..head.len().min(most)];
                let digest = Sha256::digest(head).into();
                Self::Text { read: head.len(), length: *length, checksum: key.checksum, digest }
            }
        }
    }

    /// True if the Redis key holds this value now, as far as both reads show.
    pub(super) fn is_of(&self, now: &KeyState) -> bool {
        let Self::Text { read, length, checksum, digest } = self else {
            return match (self, Self::of(now, usize::MAX)) {
                (
                    Self::Other { kind, checksum, .. },
                    Self::Other { kind: kind_now, checksum: checksum_now, .. },
                ) => (kind.is_empty() || *kind == kind_now) && agree(*checksum, checksum_now),
                (_, now) => *self == now,
            };
        };
        let Self::Text {
            read: read_now,
            length: length_now,
            checksum: checksum_now,
            digest: digest_now,
        } = Self::of(now, *read)
        else {
            return false;
        };
        let same_digest = (*read, *digest) == (read_now, digest_now);
        same_digest && agree(*length, length_now) && agree(*checksum, checksum_now)
    }
}

/// The SHA-256 of the names and values of a hash's fields, which are sorted by name.
fn digest_of(hash: &Hash) -> [u8; 32] {
    let mut digest = Sha256::new();
    for field in &hash.fields {
        for text in [&field.name, &field.head] {
            // Lengths separate the texts: without them, `a` + `bc` and `ab` + `c` would be equal.
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
    }
    digest.finalize().into()
}

/// True unless both are known and differ.
fn agree<T: PartialEq>(seen: Option<T>, now: Option<T>) -> bool {
    seen.is_none() || now.is_none() || seen == now
}

/// The fields in the audit log. They contain no byte of the value, because responses do not belong
/// in the log.
#[derive(Serialize, Deserialize)]
struct WrittenIdentity {
    /// `none`, `string`, or another type.
    #[serde(rename = "type")]
    kind: String,
    /// The hash of the first `read` bytes, or of the fields of a Redis hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The last eight bytes of DUMP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dump_checksum: Option<String>,
    /// None if the key never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    /// True if the expiry was computed from TIME and a TTL, to within two milliseconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    about: bool,
}

impl From<KeyIdentity> for WrittenIdentity {
    fn from(of: KeyIdentity) -> Self {
        let expires_at_ms = of.deadline.millis();
        let about = !of.deadline.is_exact();
        let nothing = Self {
            kind: "none".to_owned(),
            sha256: None,
            read: None,
            bytes: None,
            dump_checksum: None,
            expires_at_ms,
            about,
        };
        match of.value {
            ValueDigest::Absent => Self { expires_at_ms: None, about: false, ..nothing },
            ValueDigest::Other { kind, checksum, fields } => Self {
                kind,
                dump_checksum: checksum.map(|sum| hex(&sum)),
                sha256: fields.map(|digest| hex(&digest)),
                ..nothing
            },
            ValueDigest::Text { read, length, checksum, digest } => {
                // No byte of a value restored from a DUMP was read, so there is nothing to hash.
                let is_hashed = read > 0 || length.is_some();
                let is_whole = length == Some(read as u64);
                Self {
                    kind: "string".to_owned(),
                    sha256: if is_hashed { Some(hex(&digest)) } else { None },
                    read: if is_whole { None } else { Some(read) },
                    bytes: length,
                    dump_checksum: checksum.map(|sum| hex(&sum)),
                    ..nothing
                }
            }
        }
    }
}

impl TryFrom<WrittenIdentity> for KeyIdentity {
    type Error = String;

    fn try_from(written: WrittenIdentity) -> Result<Self, String> {
        let WrittenIdentity { kind, sha256, read, bytes, dump_checksum, expires_at_ms, about } =
            written;
        if kind == "none" {
            return Ok(Self::ABSENT);
        }
        let deadline = match expires_at_ms {
            None => Deadline::Never,
            Some(at) if about => Deadline::Between(at, at),
            Some(at) => Deadline::At(at),
        };
        let checksum = match dump_checksum {
            Some(sum) => Some(unhex(&sum)?),
            None => None,
        };
        let digest = match sha256 {
            Some(text) => Some(unhex(&text)?),
            None => None,
        };
        if kind != "string" {
            return Ok(Self {
                value: ValueDigest::Other { kind, checksum, fields: digest },
                deadline,
            });
        }
        let digest = digest.unwrap_or_else(|| Sha256::digest(b"").into());
        // The log leaves out `read` if all bytes were read.
        let read = match (read, bytes) {
            (Some(read), _) => read,
            (None, Some(bytes)) => usize::try_from(bytes).unwrap_or(0),
            (None, None) => 0,
        };
        let value = ValueDigest::Text { read, length: bytes, checksum, digest };
        Ok(Self { value, deadline })
    }
}

/// True for the DUMP of a hash whose fields have no TTL. With TTLs it has another type (from Redis
/// 7.4 and Valkey 9 on).
pub(crate) fn is_plain_hash(dump: &[u8]) -> bool {
    // Those of a hash table, of a zipmap, of a ziplist and of a listpack.
    matches!(dump.first(), Some(4 | 9 | 13 | 16))
}

/// True for the DUMP of a hash whose fields may expire: of the candidates of Redis 7.4, since its
/// release, and of Valkey 9, which has the number of the first.
pub(crate) fn has_expiring_fields(dump: &[u8]) -> bool {
    matches!(dump.first(), Some(22..=25))
}

/// The type of a value that is not a string, from the first byte of its DUMP; empty for an unknown
/// type.
fn type_of_dump(dump: &[u8]) -> Option<&'static str> {
    // A dump begins with the type number of the RDB format. Each encoding of a type has its own.
    match dump.first()? {
        0 => None,
        1 | 10 | 14 | 18 => Some("list"),
        2 | 11 | 20 => Some("set"),
        3 | 5 | 12 | 17 => Some("zset"),
        4 | 9 | 13 | 16 | 22..=25 => Some("hash"),
        15 | 19 | 21 | 26 => Some("stream"),
        _ => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::record::TimeLeft;

    fn seen(content: Content, deadline: Deadline) -> KeyState {
        KeyState::new(b"idem:k", content, TimeLeft::NoExpiry, deadline)
    }

    fn through_the_log(identity: &KeyIdentity) -> KeyIdentity {
        serde_json::from_str(&serde_json::to_string(identity).unwrap()).unwrap()
    }

    #[test]
    fn the_first_byte_tells_the_type() {
        assert_eq!([0, 4, 16, 20, 17, 200].map(|first| type_of_dump(&[first])), {
            [None, Some("hash"), Some("hash"), Some("set"), Some("zset"), Some("")]
        });
        assert_eq!(type_of_dump(b""), None);
    }

    #[test]
    fn the_log_holds_no_byte_of_a_value() {
        let identity = KeyIdentity::of(&seen(Content::text(b"secret".to_vec()), Deadline::At(9)));
        let written = serde_json::to_value(&identity).unwrap();
        let fields: Vec<_> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["type", "sha256", "bytes", "expires_at_ms"]);
        assert_eq!(serde_json::to_string(&KeyIdentity::ABSENT).unwrap(), r#"{"type":"none"}"#);
        for wrong in [
            r#"{"type":"string","sha256":"6b"}"#,
            r#"{"type":"string","dump_checksum":"zz00000000000000"}"#,
        ] {
            assert!(serde_json::from_str::<KeyIdentity>(wrong).is_err(), "{wrong}");
        }
    }

    /// Rule: what comes back is compared by type, bytes and the moment of expiry, and what nobody
    /// knows is no sameness.
    #[test]
    fn only_what_the_change_left_is_still_there() {
        let was = through_the_log(&KeyIdentity::of(&seen(
            Content::text(b"a".to_vec()),
            Deadline::At(500),
        )));
        let part = || Content::Text { head: b"a".to_vec(), length: None };
        assert!(was.is_still(&seen(Content::text(b"a".to_vec()), Deadline::At(500))));
        for now in [
            seen(Content::text(b"b".to_vec()), Deadline::At(500)),
            seen(Content::text(b"ab".to_vec()), Deadline::At(500)),
            seen(Content::text(b"a".to_vec()), Deadline::At(501)),
            seen(Content::text(b"a".to_vec()), Deadline::Never),
            seen(Content::Other("hash".to_owned()), Deadline::At(500)),
            seen(Content::Absent, Deadline::Never),
            seen(part(), Deadline::At(500)),
        ] {
            assert!(!was.is_still(&now), "{now:?}");
        }
        assert!(KeyIdentity::ABSENT.is_still(&seen(Content::Absent, Deadline::Never)));
        assert!(!KeyIdentity::ABSENT.is_still(&seen(part(), Deadline::Never)));
    }

    #[test]
    fn what_was_brought_back_is_known_by_the_checksum_of_its_dump_alone() {
        let was = through_the_log(&KeyIdentity::of_dump(b"\0payload-checksum", Some(500)));
        let mut now = seen(Content::text(b"anything".to_vec()), Deadline::At(500));
        assert!(!was.is_still(&now), "nobody asked for the checksum");
        for (checksum, same) in [(*b"checksum", true), (*b"another!", false)] {
            now.checksum = Some(checksum);
            assert_eq!(was.is_still(&now), same);
        }
        let hash = through_the_log(&KeyIdentity::of_dump(b"\x10payload-checksum", Some(500)));
        let of = |kind: &str, checksum| KeyState {
            checksum,
            ..seen(Content::Other(kind.into()), Deadline::At(500))
        };
        assert!(
            hash.is_still(&of("hash", Some(*b"checksum")))
                && !hash.is_still(&of("set", Some(*b"checksum")))
        );
    }

    /// Rule: a server keeps the fields of a long hash in an order of its own, which a restart
    /// changes.
    #[test]
    fn a_hash_is_known_by_its_fields_in_any_order() {
        let hash = |words: [&str; 4], checksum: u8| KeyState {
            checksum: Some([checksum; 8]),
            has_plain_fields: true,
            ..seen(Content::hash(words.map(|word| word.as_bytes().to_vec())), Deadline::At(500))
        };
        let was = through_the_log(&KeyIdentity::of(&hash(["a", "1", "b", "2"], 1)));
        assert!(was.is_still(&hash(["b", "2", "a", "1"], 2)));
        assert!(!was.is_still(&hash(["b", "1", "a", "2"], 2)));
        assert!(!was.is_still(&hash(["a", "1", "c", "2"], 2)));
        // Fields with a TTL, which may have moved, are not identified by names and values.
        let with_ttl =
            |checksum| KeyState { has_plain_fields: false, ..hash(["a", "1", "b", "2"], checksum) };
        assert!(!was.is_still(&with_ttl(2)));
        assert!(was.is_still(&with_ttl(1)));
        let was_with_ttl = through_the_log(&KeyIdentity::of(&with_ttl(1)));
        assert!(!was_with_ttl.is_still(&hash(["a", "1", "b", "2"], 2)));
        // Within one run, the checksum decides.
        assert!(
            !ValueDigest::of(&hash(["a", "1", "b", "2"], 1), usize::MAX)
                .is_of(&hash(["a", "1", "b", "2"], 2))
        );
        // If the fields were not read, the checksum decides, too.
        let unread = |checksum: u8| KeyState {
            checksum: Some([checksum; 8]),
            ..seen(Content::Other("hash".to_owned()), Deadline::At(500))
        };
        assert!(was.is_still(&unread(1)));
        assert!(!was.is_still(&unread(2)));
    }

    #[test]
    fn an_ordered_moment_is_met_within_the_slack_of_a_reading() {
        let lock = seen(Content::text(b"a".to_vec()), Deadline::At(500));
        let was = through_the_log(&KeyIdentity::of(&lock).expiring_about(9_000));
        for (at, same) in
            [(8_997, false), (8_998, true), (9_000, true), (9_002, true), (9_003, false)]
        {
            assert_eq!(
                was.is_still(&seen(Content::text(b"a".to_vec()), Deadline::At(at))),
                same,
                "{at}"
            );
        }
        assert_eq!(
            KeyIdentity::of(&seen(Content::text(b"a".to_vec()), Deadline::Unknown)).written(),
            None
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(bytes in prop::collection::vec(any::<u8>(), 0..40), at in any::<u32>()) {
            for deadline in [Deadline::Never, Deadline::At(at.into())] {
                let identity = KeyIdentity::of(&seen(Content::text(bytes.clone()), deadline));
                prop_assert_eq!(through_the_log(&identity), identity);
            }
        }
    }
}
