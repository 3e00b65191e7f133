//! The placeholders of a schema's texts, by the texts that may have them.

use super::forms::Timestamp;
use super::role::Role;
use super::ttl::TtlOf;

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::domain) enum Place {
    Key,
    /// The key without the groups of its template.
    ClientKey,
    Prefix,
    RedisKey(Role),
    Owner,
    LockTtl,
    ResultTtl,
    LockValue,
    ResultValue,
    Status,
    HeaderLists,
    Headers,
    Body,
    BodyBase64,
    BodyJson,
    BodyText,
    ErrorText,
    Response,
    Outcome,
    Fingerprint,
    Now,
    NowMilliseconds,
    NowSeconds,
    NowRfc3339,
    NowTicks,
    /// When the lock, or the result, ends that is written now.
    Expires(TtlOf, Timestamp),
    BodyHex,
    /// The response's content type as a JSON string, or null.
    ContentType,
    /// Every field of the value of before that the schema does not name.
    KeptFields,
}

pub(super) const IN_CALLS: &[(&str, Place)] = &[
    ("key", Place::Key),
    ("prefix", Place::Prefix),
    ("record", Place::RedisKey(Role::Record)),
    ("lock", Place::RedisKey(Role::Lock)),
    ("result", Place::RedisKey(Role::Result)),
    ("owner", Place::Owner),
    ("lock_ttl", Place::LockTtl),
    ("result_ttl", Place::ResultTtl),
    ("lock_value", Place::LockValue),
    ("result_value", Place::ResultValue),
    ("response", Place::Response),
    ("outcome", Place::Outcome),
    ("fingerprint", Place::Fingerprint),
];

/// What a word of a call can also be from format 2 on.
pub(super) const IN_NEWER_CALLS: &[(&str, Place)] = &[("now_s", Place::NowSeconds), ("now_ms", Place::NowMilliseconds)];

/// What a response is made of, and a value with it.
pub(super) const IN_RESPONSES: &[(&str, Place)] = &[
    ("status", Place::Status),
    ("header_lists", Place::HeaderLists),
    ("headers", Place::Headers),
    ("body", Place::Body),
    ("body_base64", Place::BodyBase64),
    ("body_json", Place::BodyJson),
    ("body_text", Place::BodyText),
    ("error_text", Place::ErrorText),
];

/// What else a value is made of.
pub(super) const IN_VALUES: &[(&str, Place)] =
    &[("owner", Place::Owner), ("response", Place::Response), ("fingerprint", Place::Fingerprint), ("now", Place::Now)];

/// What a value is made of from format 2 on, besides `{kept:/pointer}`.
pub(super) const IN_NEWER_VALUES: &[(&str, Place)] = &[
    ("key", Place::Key),
    ("client_key", Place::ClientKey),
    ("now_s", Place::NowSeconds),
    ("now_ms", Place::NowMilliseconds),
    ("now_rfc3339", Place::NowRfc3339),
    ("now_ticks", Place::NowTicks),
    ("lock_expires_s", Place::Expires(TtlOf::Lock, Timestamp::Seconds)),
    ("lock_expires_ms", Place::Expires(TtlOf::Lock, Timestamp::Milliseconds)),
    ("lock_expires_rfc3339", Place::Expires(TtlOf::Lock, Timestamp::Rfc3339)),
    ("lock_expires_ticks", Place::Expires(TtlOf::Lock, Timestamp::Ticks)),
    ("result_expires_s", Place::Expires(TtlOf::Result, Timestamp::Seconds)),
    ("result_expires_ms", Place::Expires(TtlOf::Result, Timestamp::Milliseconds)),
    ("result_expires_rfc3339", Place::Expires(TtlOf::Result, Timestamp::Rfc3339)),
    ("result_expires_ticks", Place::Expires(TtlOf::Result, Timestamp::Ticks)),
    ("body_hex", Place::BodyHex),
    ("content_type", Place::ContentType),
    ("kept", Place::KeptFields),
];
