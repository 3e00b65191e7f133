//! What can go wrong with a server, typed, so that exit codes come from types.

/// Where a server ran into what it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedAt {
    /// Before it executed the command.
    Command,
    /// Inside a script, in front of a command of the script's.
    Script,
}

/// An error of the store: what was tried, on what, and why it failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No connection, or it broke; nothing was changed.
    #[error("cannot reach Redis at {target}: {why}")]
    Unreachable { target: String, why: String },
    /// No Sentinel knows the service.
    #[error("cannot reach Redis at {target}: no service is called `{service}` there")]
    UnknownService { target: String, service: String },
    /// The server did not answer in time.
    #[error("Redis at {target} did not answer within {seconds}s")]
    TimedOut { target: String, seconds: f64 },
    /// What answered does not speak the Redis protocol.
    #[error("what answers at {target} is not a Redis server: {why}")]
    NotRedis { target: String, why: String },
    /// Bytes came that nothing had asked for: whatever is asked next would get the wrong reply. The request was not sent.
    #[error(
        "Redis at {target}, or a proxy on the way, sent a reply that nothing had asked for: nothing more was sent"
    )]
    Unasked { target: String },
    /// TLS is wanted, and what is there speaks the Redis protocol in the clear.
    #[error("what answers at {target} is a Redis server without TLS")]
    NoTls { target: String },
    /// TLS is not wanted, and what is there speaks nothing else.
    #[error("what answers at {target} speaks TLS only")]
    OnlyTls { target: String },
    /// No TLS: a certificate that is not to be trusted, no version or cipher in common.
    #[error("no TLS with Redis at {target}: {why}")]
    Tls { target: String, why: String, hint: &'static str },
    /// The server does not take the client's certificate, or wants one.
    #[error("Redis at {target} turned this client away: {why}")]
    ClientCertificate { target: String, why: String },
    /// A certificate, a key or a name is not what TLS needs; nothing was sent.
    #[error("TLS: {what}: {why}")]
    TlsFile { what: String, why: String },
    #[error("Redis at {target} refused the log-in: {why}")]
    Authentication { target: String, why: String },
    /// The log-in at a Sentinel failed or is missing.
    #[error("the Sentinel at {target} refused the log-in: {why}")]
    SentinelLogIn { target: String, why: String },
    #[error("Redis at {target} does not permit it: {why}")]
    Permission { target: String, why: String },
    /// The server is a node of a cluster, and the user may not ask which node serves a Redis key.
    #[error(
        "Redis at {target} does not permit it: this is a node of a cluster, and the user may not ask which node serves a \
         key: it needs +cluster|slots"
    )]
    NeedsSlots { target: String },
    /// The server refuses, now or in its present state.
    #[error("Redis at {target} refused: {code} {why}")]
    Refused {
        target: String,
        /// The error's code, e.g. `LOADING`.
        code: String,
        why: String,
        place: RefusedAt,
    },
    /// A change was sent, no reply tells what became of it, and reading back could not tell either.
    #[error(
        "outcome unknown: {what} was sent to Redis at {target}, but no reply tells what became of it ({why})"
    )]
    OutcomeUnknown {
        target: String,
        what: String,
        /// What came in place of a reply that tells.
        why: String,
    },
    /// A record's Redis keys are in several slots, and what is to be done takes them at one moment.
    #[error("{why}: no step of the service can be guarded on both (at {target})")]
    Apart { target: String, why: String },
    /// Some nodes, slots or records of a cluster could not be read; the others were.
    #[error("{why}")]
    Missed {
        /// Which, and why.
        why: String,
    },
    /// The service got another master in the middle of changes.
    #[error(
        "a failover came in between, from {from} to {to}: what was changed shortly before may have come back"
    )]
    FailedOver { from: String, to: String },
    /// Changes were made, and who the service's master is cannot be found out since.
    #[error("done at {target}, but whether it is the master still cannot be said: {why}")]
    MasterUnknown { target: String, why: String },
    /// Changes were made that not so many replicas have as were asked for.
    #[error(
        "done at {target}, but only {have} of {wanted} replicas had it in time: a failover now may lose it"
    )]
    NotReplicated { target: String, have: i64, wanted: u32 },
    /// A file of idemctl's own could not be written.
    #[error("cannot write {path}: {why}")]
    File { path: String, why: String },
    /// The server answered something no Redis answers.
    #[error("unexpected reply from Redis at {target} to {asked}")]
    UnexpectedReply { target: String, asked: String },
}

/// What kind of error it is; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    Permission,
    /// Unreachable or timed out, nothing sent.
    Unreachable,
    /// The server refuses for now.
    Refused,
    Partial,
    /// A change may or may not have been made.
    OutcomeUnknown,
    File,
    /// It cannot be done there, ever.
    Unfit,
}

impl StoreError {
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Authentication { .. } | Self::SentinelLogIn { .. } => ErrorClass::Permission,
            Self::Permission { .. } | Self::NeedsSlots { .. } | Self::ClientCertificate { .. } => {
                ErrorClass::Permission
            }
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::NotRedis { .. }
            | Self::Unasked { .. } => ErrorClass::Unreachable,
            // A proxy that mixes up replies, or another kind of server.
            Self::UnexpectedReply { .. } => ErrorClass::Unreachable,
            Self::NoTls { .. }
            | Self::OnlyTls { .. }
            | Self::Tls { .. }
            | Self::UnknownService { .. } => ErrorClass::Unreachable,
            Self::Refused { .. } => ErrorClass::Refused,
            Self::Missed { .. } | Self::FailedOver { .. } => ErrorClass::Partial,
            Self::NotReplicated { .. } | Self::MasterUnknown { .. } => ErrorClass::Partial,
            Self::OutcomeUnknown { .. } => ErrorClass::OutcomeUnknown,
            Self::File { .. } | Self::TlsFile { .. } => ErrorClass::File,
            Self::Apart { .. } => ErrorClass::Unfit,
        }
    }
}
