//! What can go wrong with a server, typed, so that exit codes come from types.

pub use super::without_effect::Place;

use super::acl;

/// What a node of a cluster says of a command that belongs to another node, or another moment, and was not executed.
pub(super) const REDIRECTS: [&str; 3] = ["MOVED", "ASK", "TRYAGAIN"];

/// What to do about a client's certificate that was refused.
const CLIENT_CERTIFICATE: &str =
    "--cert FILE --key FILE are the client's certificate, of an issuer that the server trusts, and its key";

/// An error of the store: what was tried, on what, and why it failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No connection, or it broke; nothing was changed.
    #[error("cannot reach Redis at {target}: {why}")]
    Unreachable {
        /// The server.
        target: String,
        /// Why.
        why: String,
    },
    /// The server did not answer in time.
    #[error("Redis at {target} did not answer within {seconds}s")]
    TimedOut {
        /// The server.
        target: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// What answered does not speak the Redis protocol.
    #[error("what answers at {target} is not a Redis server: {why}")]
    NotRedis {
        /// The server.
        target: String,
        /// What came.
        why: String,
    },
    /// TLS is wanted, and what is there speaks the Redis protocol in the clear.
    #[error("what answers at {target} is a Redis server without TLS")]
    NoTls {
        /// The server.
        target: String,
    },
    /// TLS is not wanted, and what is there speaks nothing else.
    #[error("what answers at {target} speaks TLS only")]
    OnlyTls {
        /// The server.
        target: String,
    },
    /// No TLS: a certificate that is not to be trusted, no version or cipher in common.
    #[error("no TLS with Redis at {target}: {why}")]
    Tls {
        /// The server.
        target: String,
        /// Why.
        why: String,
        /// What to do next.
        hint: &'static str,
    },
    /// The server does not take the client's certificate, or wants one.
    #[error("Redis at {target} turned this client away: {why}")]
    ClientCertificate {
        /// The server.
        target: String,
        /// Why.
        why: String,
    },
    /// A certificate, a key or a name is not what TLS needs; nothing was sent.
    #[error("TLS: {what}: {why}")]
    TlsFile {
        /// The file, or whatever it is.
        what: String,
        /// Why.
        why: String,
    },
    /// Log-in failed or is missing.
    #[error("Redis at {target} refused the log-in: {why}")]
    Authentication {
        /// The server.
        target: String,
        /// The server's words.
        why: String,
    },
    /// The log-in at a Sentinel failed or is missing.
    #[error("the Sentinel at {target} refused the log-in: {why}")]
    SentinelLogIn {
        /// The Sentinel.
        target: String,
        /// Its words.
        why: String,
    },
    /// The user may not do that.
    #[error("Redis at {target} does not permit it: {why}")]
    Permission {
        /// The server.
        target: String,
        /// The server's words.
        why: String,
    },
    /// The server refuses, now or in its present state.
    #[error("Redis at {target} refused: {code} {why}")]
    Refused {
        /// The server.
        target: String,
        /// The error's code, e.g. `LOADING`.
        code: String,
        /// The rest of its words.
        why: String,
        /// Where the server ran into the reason.
        place: Place,
    },
    /// A change was sent, no reply tells what became of it, and reading back could not tell either.
    #[error("outcome unknown: {what} was sent to Redis at {target}, but no reply tells what became of it ({why})")]
    OutcomeUnknown {
        /// The server.
        target: String,
        /// The change.
        what: String,
        /// What came in place of a reply that tells.
        why: String,
    },
    /// A record's Redis keys are in several slots, and what is to be done takes them at one moment.
    #[error("{why}: no step of the service can be guarded on both (at {target})")]
    Apart {
        /// The server.
        target: String,
        /// The slots.
        why: String,
    },
    /// Some nodes of a cluster could not be walked; what the others hold was read.
    #[error("{missed} of {masters} masters could not be read to the end: {why}")]
    Missed {
        /// How many.
        missed: usize,
        /// Of how many.
        masters: usize,
        /// Which, and why.
        why: String,
    },
    /// The service got another master in the middle of changes.
    #[error("a failover came in between, from {from} to {to}: what was changed shortly before may have come back")]
    FailedOver {
        /// The master before.
        from: String,
        /// The master now.
        to: String,
    },
    /// Changes were made, and who the service's master is cannot be found out since.
    #[error("done at {target}, but whether it is the master still cannot be said: {why}")]
    MasterUnknown {
        /// The server that took the changes.
        target: String,
        /// Why.
        why: String,
    },
    /// Changes were made that not so many replicas have as were asked for.
    #[error("done at {target}, but only {have} of {wanted} replicas had it in time: a failover now may lose it")]
    NotReplicated {
        /// The server.
        target: String,
        /// How many replicas have it.
        have: i64,
        /// How many were to have it.
        wanted: u32,
    },
    /// A file of idemctl's own could not be written.
    #[error("cannot write {path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The server answered something no Redis answers.
    #[error("unexpected reply from Redis at {target} to {asked}")]
    UnexpectedReply {
        /// The server.
        target: String,
        /// The command.
        asked: String,
    },
}

/// What kind of error it is; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Log-in or permission.
    Permission,
    /// Unreachable or timed out, nothing sent.
    Unreachable,
    /// The server refuses for now.
    Refused,
    /// A part was done.
    Partial,
    /// A change may or may not have been made.
    OutcomeUnknown,
    /// A local file.
    File,
    /// It cannot be done there, ever.
    Unfit,
    /// A bug, ours or the server's.
    Bug,
}

impl StoreError {
    /// What kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Authentication { .. } | Self::SentinelLogIn { .. } => ErrorClass::Permission,
            Self::Permission { .. } | Self::ClientCertificate { .. } => ErrorClass::Permission,
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::NotRedis { .. } => ErrorClass::Unreachable,
            Self::NoTls { .. } | Self::OnlyTls { .. } | Self::Tls { .. } => ErrorClass::Unreachable,
            Self::Refused { .. } => ErrorClass::Refused,
            Self::Missed { .. } | Self::FailedOver { .. } => ErrorClass::Partial,
            Self::NotReplicated { .. } | Self::MasterUnknown { .. } => ErrorClass::Partial,
            Self::OutcomeUnknown { .. } => ErrorClass::OutcomeUnknown,
            Self::File { .. } | Self::TlsFile { .. } => ErrorClass::File,
            Self::Apart { .. } => ErrorClass::Unfit,
            Self::UnexpectedReply { .. } => ErrorClass::Bug,
        }
    }

    /// What to do next, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unreachable { why, .. } if why.starts_with("no service") => {
                "SENTINEL MASTERS, sent to one of them, names the services"
            }
            Self::Unreachable { .. } => {
                "name the server with -u redis://HOST:PORT, -h HOST -p PORT or -s SOCKET; --sandbox needs none"
            }
            Self::TimedOut { .. } => "--connect-timeout 10s and --timeout 30s wait longer",
            Self::NoTls { .. } => "leave out --tls (redis:// in place of rediss://), or name the port that speaks TLS",
            Self::OnlyTls { .. } => "--tls, or rediss:// in place of redis://",
            Self::Tls { hint, .. } => hint,
            Self::ClientCertificate { .. } => CLIENT_CERTIFICATE,
            Self::TlsFile { .. } => {
                "nothing was sent; check --cacert, --cert, --key and --sni, or what the context says"
            }
            Self::NotRedis { .. } => "check host and port",
            Self::Authentication { why, .. } if why.contains("NOAUTH") => {
                "give the password with --askpass, --pass-file or REDISCLI_AUTH"
            }
            Self::Authentication { .. } => "check --user and the password (--askpass, --pass-file or REDISCLI_AUTH)",
            Self::SentinelLogIn { .. } => {
                "Sentinels have a log-in of their own: --sentinel-user, --sentinel-pass-file or IDEMCTL_SENTINEL_AUTH"
            }
            Self::Permission { .. } => "README, ACL users, has two that are ready to use",
            Self::Refused { why, .. } if why.starts_with("max number of clients") => {
                "the server has no room for another client: close some, or raise maxclients"
            }
            Self::Refused { why, .. } if why.contains("not allowed in cluster mode") => {
                "a cluster has database 0 alone: leave out -n"
            }
            Self::Refused { why, .. } if why.contains("DB index is out of range") => {
                "the server has no such database: see -n, or the URL"
            }
            Self::Refused { why, .. } if why.contains("unknown command 'SCAN'") => {
                "if this is a Sentinel: --sentinel HOST:PORT --master-name SERVICE"
            }
            Self::Apart { .. } => "force-unlock removes the lock alone; nothing else was tried",
            Self::Refused { code, .. } => match code.as_str() {
                "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" => "try again in a moment",
                "READONLY" => "this server is a replica: connect to its master",
                "OOM" => "the server is out of memory: free some, or raise maxmemory",
                "MISCONF" => "the server cannot save to disk and refuses writes: look at its log",
                "NOREPLICAS" => {
                    "the master sees too few of its replicas (min-replicas-to-write) and refuses writes till then"
                }
                "DENIED" => "the server takes no clients from other hosts without a password (protected-mode)",
                _ => return None,
            },
            Self::NotReplicated { .. } => "--wait-timeout waits longer; INFO replication tells how the replicas are",
            Self::MasterUnknown { .. } => "once the Sentinels agree, inspect tells whether it is done there",
            Self::FailedOver { .. } => "the same command again changes what has come back, and goes on",
            Self::Missed { .. } => "the same command again, once they are back, sees the rest",
            Self::OutcomeUnknown { .. } => "inspect the key: what it is now tells",
            Self::File { .. } => "nothing was changed; check the folder's rights and free space",
            Self::UnexpectedReply { .. } => return None,
        })
    }

    /// The server that could not be reached or did not answer in time, where that is what went wrong.
    pub(in crate::store) fn silent_server(&self) -> Option<&str> {
        match self {
            Self::Unreachable { target, .. } | Self::TimedOut { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The one of two that says more of what is not done: that an outcome is unknown, else the first.
    pub fn worse(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (&first, &second) {
            (Some(Self::OutcomeUnknown { .. }), _) => first,
            (_, Some(Self::OutcomeUnknown { .. })) => second,
            _ => first.or(second),
        }
    }

    /// An error to stop with, unless the outcome of something is unknown since before.
    pub(in crate::store) fn worst_of(before: Option<Self>, error: Self) -> Self {
        match before {
            Some(unknown @ Self::OutcomeUnknown { .. }) => unknown,
            _ => error,
        }
    }

    /// True when the reason is that the user lacks a right.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Permission { .. })
    }

    /// True when the server takes no client, and closes the connection.
    pub(in crate::store) fn turns_away(&self) -> bool {
        matches!(self, Self::Refused { code, why, .. } if code == "DENIED" || why.starts_with("max number of clients"))
    }

    /// True when the user may not send the command at all, whatever the Redis key.
    pub(in crate::store) fn is_of_command(&self) -> bool {
        matches!(self, Self::Permission { why, .. } if why.contains("command"))
    }

    /// True for what was found out of changes after they were made.
    pub fn came_after(&self) -> bool {
        matches!(self, Self::NotReplicated { .. } | Self::MasterUnknown { .. })
    }

    /// The same, with the rights that a script takes, where the server named none.
    pub(in crate::store) fn naming(self, rights: &str) -> Self {
        match self {
            Self::Permission { target, why } if why.ends_with(acl::OF_SCRIPT) => {
                Self::Permission { target, why: format!("{why}: {rights}") }
            }
            other => other,
        }
    }

    /// True when the user may not ask which node of a cluster serves a key.
    pub(in crate::store) fn wants_slots(&self) -> bool {
        matches!(self, Self::Permission { why, .. } if why.ends_with("+cluster|slots"))
    }

    /// True when the Redis key holds another type than the command works on.
    pub(in crate::store) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "WRONGTYPE")
    }

    /// True when a node of a cluster names another node, or another moment; nothing was done.
    pub(in crate::store) fn is_redirect(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if REDIRECTS.contains(&code.as_str()))
    }

    /// True when the server does not know the command.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused { why, .. } if why.to_ascii_lowercase().contains("unknown command"))
    }

    /// True when no reply came.
    pub fn lost_the_reply(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. } | Self::NotRedis { .. })
    }
}
