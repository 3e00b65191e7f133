//! Hints: what the user can do about an error.

use super::error::StoreError;

/// The hint for a client certificate that the server rejected.
const CLIENT_CERTIFICATE: &str = "pass a client certificate from an issuer that the server trusts, \
    and its key, with --cert FILE --key FILE";

impl StoreError {
    /// The hint for this error, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownService { .. } => {
                "to list the services, send SENTINEL MASTERS to one of the Sentinels"
            }
            Self::Unreachable { .. } => {
                "name the server with -u redis://HOST:PORT, -h HOST -p PORT or -s SOCKET, or use \
                --sandbox"
            }
            Self::TimedOut { .. } => "to wait longer, pass --connect-timeout 10s or --timeout 30s",
            Self::NoTls { .. } => {
                "omit --tls (use redis:// instead of rediss://), or name the port for TLS"
            }
            Self::OnlyTls { .. } => "pass --tls, or use rediss:// instead of redis://",
            Self::Tls { hint, .. } => hint,
            Self::ClientCertificate { .. } => CLIENT_CERTIFICATE,
            Self::TlsFile { .. } => {
                "nothing was sent; check --cacert, --cert, --key and --sni, or these settings in \
                the context"
            }
            Self::NotRedis { .. } => "check host and port",
            Self::Unasked { .. } | Self::UnexpectedReply { .. } => {
                "run it again; if it happens again, connect without the proxy"
            }
            Self::Authentication { why, .. } if why.contains("NOAUTH") => {
                "pass the password with --askpass, --pass-file or REDISCLI_AUTH"
            }
            Self::Authentication { .. } => {
                "check --user and the password (`config show --origin` names their origin)"
            }
            Self::NoPassword { .. } => {
                "nothing was sent; the command has 10s, and exits with 0 after it printed a \
                password or JSON (docs/connecting.md)"
            }
            Self::SentinelLogIn { .. } => {
                "Sentinels have their own login; pass --sentinel-user, --sentinel-pass-file or \
                IDEMCTL_SENTINEL_AUTH"
            }
            Self::Permission { .. } | Self::NeedsSlots { .. } => {
                "docs/connecting.md (ACL users) has two ready-made users"
            }
            Self::Apart { .. } => {
                "use force-unlock to remove only the lock; nothing else was tried"
            }
            Self::ErrorReply { code, why, .. } => return refused(code, why),
            Self::NotReplicated { .. } => {
                "to wait longer, pass --wait-timeout; to see the state of the replicas, send INFO \
                replication"
            }
            Self::MasterUnknown { .. } => {
                "after the Sentinels agree, inspect the record to see whether the change exists \
                there"
            }
            Self::FailedOver { .. } => {
                "run the same command again to repeat lost changes and continue"
            }
            Self::Missed { .. } => "run the same command again once all of it can be read",
            Self::OutcomeUnknown { .. } => "inspect the key to see its current state",
            Self::File { .. } => {
                "nothing was changed; check the folder's permissions and free space"
            }
        })
    }
}

/// The hint for a refusal with this code and this message.
fn refused(code: &str, why: &str) -> Option<&'static str> {
    Some(match code {
        "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "ASK" | "MOVED" => "try again shortly",
        "TRYAGAIN" => {
            "try again when the slot has moved; `redis-cli --cluster fix` ends a move that was \
            interrupted"
        }
        "READONLY" => "this server is a replica; connect to its master",
        "OOM" => "the server is out of memory; free some, or raise maxmemory",
        "MISCONF" => "the server cannot save to disk and refuses writes; check its log",
        "NOREPLICAS" => {
            "the master refuses writes until it has enough replicas (min-replicas-to-write)"
        }
        "DENIED" => {
            "the server accepts clients from other hosts only with a password (protected-mode)"
        }
        _ if why.starts_with("max number of clients") => {
            "the server has reached its client limit; close some clients, or raise maxclients"
        }
        _ if why.contains("not allowed in cluster mode") => {
            "a cluster has only database 0; omit -n"
        }
        _ if why.contains("DB index is out of range") => {
            "the server has no such database; check -n or the URL"
        }
        _ if why.contains("unknown command 'SCAN'") => {
            "if this is a Sentinel, pass --sentinel HOST:PORT --master-name SERVICE"
        }
        _ => return None,
    })
}
