//! The mistakes that the payment service makes on request, one at a time.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    NoLock,
    CheckThenLock,
    StoresAfterAnswering,
    ReplaysWithoutHeaders,
    ReplaysAnotherStatus,
    AnyCaller,
    IgnoresPayload,
    IgnoresPath,
    IgnoresMembers,
    ReleasesOthersLock,
    ReleasesOnHangUp,
    ShortLock,
    ShortResult,
    ForgetsResults,
    KeepsFailures,
    ReplaysAnotherError,
    ReleasesAfterFailure,
    AcceptsMissingKey,
    SameOwner,
}

/// Every variant: its name, and how it comes about.
pub const VARIANTS: [(Variant, &str, &str); 19] = [
    (Variant::NoLock, "no-lock", "stores results, but takes no lock while the handler runs"),
    (
        Variant::CheckThenLock,
        "check-then-lock",
        "looks for a record with GET, and then takes the lock with a plain SET",
    ),
    (
        Variant::StoresAfterAnswering,
        "stores-after-answering",
        "answers first and stores the result 300 ms later, so a crash in between loses it",
    ),
    (
        Variant::ReplaysWithoutHeaders,
        "replays-without-headers",
        "replays the status and the body, but no header",
    ),
    (
        Variant::ReplaysAnotherStatus,
        "replays-another-status",
        "replays a 201 with status 200, because it stores only the body",
    ),
    (Variant::AnyCaller, "any-caller", "does not bind the key to the caller"),
    (Variant::IgnoresPayload, "ignores-payload", "replays whatever the payload is"),
    (Variant::IgnoresPath, "ignores-path", "compares the payload of a key, but not its path"),
    (
        Variant::IgnoresMembers,
        "ignores-members",
        "compares only the amount, and no other member of the payload",
    ),
    (
        Variant::ReleasesOthersLock,
        "releases-others-lock",
        "deletes the lock whenever a request ends with an error, also with a 409",
    ),
    (
        Variant::ReleasesOnHangUp,
        "releases-on-hang-up",
        "deletes the lock when the client hangs up, while the handler still runs",
    ),
    (Variant::ShortLock, "short-lock", "takes a lock of 200 ms for a handler that needs 400 ms"),
    (Variant::ShortResult, "short-result", "stores the result with the TTL of the lock"),
    (Variant::ForgetsResults, "forgets-results", "stores the result with a TTL of 2 s"),
    (
        Variant::KeepsFailures,
        "keeps-failures",
        "stores a 5xx as the result, without TTL, so that no retry ever succeeds",
    ),
    (
        Variant::ReplaysAnotherError,
        "replays-another-error",
        "answers with 422 and replays it as a 500, because it stores the error without its class",
    ),
    (
        Variant::ReleasesAfterFailure,
        "releases-after-failure",
        "releases the lock after a 5xx, even if the payment was already made",
    ),
    (Variant::AcceptsMissingKey, "accepts-missing-key", "executes requests that have no key"),
    (Variant::SameOwner, "same-owner", "writes the name of its worker as the owner of every lock"),
];

impl Variant {
    /// The variant of this name.
    pub fn named(name: &str) -> Option<Self> {
        let (variant, ..) = VARIANTS.iter().find(|(_, known, _)| *known == name)?;
        Some(*variant)
    }
}
