//! The errors of a server as types, so that exit codes follow from types.

/// The place at which a server refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedAt {
    /// Before the server executed the command.
    Command,
    /// Inside a script, before the script executed one of its commands.
    Script,
}

/// An error of the store: what was attempted, on which server, and why it failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// There is no connection, or it broke. Nothing was changed.
    #[error("cannot reach Redis at {target}: {why}")]
    Unreachable { target: String, why: String },
    /// No Sentinel monitors a service with this name.
    #[error("cannot reach Redis through {target}: it knows no service `{service}`")]
    UnknownService { target: String, service: String },
    /// The server did not answer in time.
    #[error("Redis at {target} did not answer within {seconds}s")]
    TimedOut { target: String, seconds: f64 },
    /// The peer does not speak the Redis protocol.
    #[error("the server at {target} is not a Redis server: {why}")]
    NotRedis { target: String, why: String },
    /// The server sent bytes without a request, so the next request would get the wrong reply.
    /// idemctl did not send the request.
    #[error(
        "Redis at {target}, or a proxy before it, sent an unexpected extra reply, so idemctl sent \
        nothing more"
    )]
    Unasked { target: String },
    /// TLS was requested, but the peer speaks the Redis protocol without TLS.
    #[error("the Redis server at {target} does not use TLS")]
    NoTls { target: String },
    /// TLS was not requested, but the peer speaks only TLS.
    #[error("the server at {target} accepts only TLS connections")]
    OnlyTls { target: String },
    /// The TLS handshake failed: the certificate is not trusted, or there is no common version or
    /// cipher.
    #[error("cannot establish TLS with Redis at {target}: {why}")]
    Tls { target: String, why: String, hint: &'static str },
    /// The server rejected the client's certificate, or requires one.
    #[error("Redis at {target} rejected this client: {why}")]
    ClientCertificate { target: String, why: String },
    /// A certificate, a key or a name is not valid for TLS; nothing was sent.
    #[error("TLS: {what}: {why}")]
    TlsFile { what: String, why: String },
    #[error("Redis at {target} rejected the login: {why}")]
    Authentication { target: String, why: String },
    /// The program that gives the password failed; nothing was sent.
    #[error("there is no password for Redis at {target}: {why}")]
    NoPassword { target: String, why: String },
    /// The log-in at a Sentinel failed, or a password is missing.
    #[error("the Sentinel at {target} rejected the login: {why}")]
    SentinelLogIn { target: String, why: String },
    #[error("Redis at {target} denied permission: {why}")]
    Permission { target: String, why: String },
    /// The server is a cluster node, and the Redis user may not ask which node serves a Redis key.
    #[error(
        "Redis at {target} denied permission: this is a cluster node, and the user needs \
        +cluster|slots to find the node of a key"
    )]
    NeedsSlots { target: String },
    /// The server refuses the command, temporarily or in its present state.
    #[error("Redis at {target} returned an error: {code} {why}")]
    ErrorReply {
        target: String,
        /// The error code, e.g. `LOADING`.
        code: String,
        why: String,
        refused_at: RefusedAt,
    },
    /// A change was sent, no reply shows its outcome, and reading back did not show it either.
    #[error(
        "outcome unknown: {what} was sent to Redis at {target}, but the reply was lost ({why})"
    )]
    OutcomeUnknown {
        target: String,
        what: String,
        /// The error that was received instead of a conclusive reply.
        why: String,
    },
    /// A record's Redis keys are in several slots, but the operation needs them in one atomic step.
    #[error("{why}, so idemctl cannot guard a step on both atomically (at {target})")]
    Apart { target: String, why: String },
    /// Some nodes, slots or records of a cluster could not be read; the others were read.
    #[error("{why}")]
    Missed {
        /// The parts that could not be read, and the reasons.
        why: String,
    },
    /// A failover happened while changes were being made.
    #[error(
        "a failover from {from} to {to} happened in between, so the latest changes may be lost"
    )]
    FailedOver { from: String, to: String },
    /// Changes were made, but idemctl cannot find out which server is the master now.
    #[error("done at {target}, but idemctl cannot tell whether it is still the master: {why}")]
    MasterUnknown { target: String, why: String },
    /// Changes were made, but fewer replicas than requested acknowledged them.
    #[error(
        "done at {target}, but only {have} of {wanted} replicas confirmed it in time, so a failover \
        now may lose it"
    )]
    NotReplicated { target: String, have: i64, wanted: u32 },
    /// idemctl could not write one of its own files.
    #[error("cannot write {path}: {why}")]
    File { path: String, why: String },
    /// The server sent a reply that Redis never sends for this command.
    #[error("unexpected reply from Redis at {target} to {asked}")]
    UnexpectedReply { target: String, asked: String },
}

/// The class of an error, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    Permission,
    /// The server is unreachable or timed out; nothing was sent.
    Unreachable,
    /// The server temporarily refuses commands.
    RefusedForNow,
    Partial,
    /// A change may or may not have been made.
    OutcomeUnknown,
    File,
    /// The operation is impossible on this server.
    Unfit,
}

impl StoreError {
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Authentication { .. } | Self::SentinelLogIn { .. } | Self::NoPassword { .. } => {
                ErrorClass::Permission
            }
            Self::Permission { .. } | Self::NeedsSlots { .. } | Self::ClientCertificate { .. } => {
                ErrorClass::Permission
            }
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::NotRedis { .. }
            | Self::Unasked { .. } => ErrorClass::Unreachable,
            // A proxy that mixes up replies, or a server of another kind.
            Self::UnexpectedReply { .. } => ErrorClass::Unreachable,
            Self::NoTls { .. }
            | Self::OnlyTls { .. }
            | Self::Tls { .. }
            | Self::UnknownService { .. } => ErrorClass::Unreachable,
            Self::ErrorReply { .. } => ErrorClass::RefusedForNow,
            Self::Missed { .. } | Self::FailedOver { .. } => ErrorClass::Partial,
            Self::NotReplicated { .. } | Self::MasterUnknown { .. } => ErrorClass::Partial,
            Self::OutcomeUnknown { .. } => ErrorClass::OutcomeUnknown,
            Self::File { .. } | Self::TlsFile { .. } => ErrorClass::File,
            Self::Apart { .. } => ErrorClass::Unfit,
        }
    }
}
