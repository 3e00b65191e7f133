//! Hints: what the user can do about an error.

use super::error::StoreError;

/// The hint for a client certificate that the server rejected.
const CLIENT_CERTIFICATE: &str = "--cert FILE --key FILE are the client's certificate, of an issuer that the server trusts, and its key";

impl StoreError {
    /// The hint for this error, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownService { .. } => {
                "SENTINEL MASTERS, sent to one of them, names the services"
            }
            Self::Unreachable { .. } => {
                "name the server with -u redis://HOST:PORT, -h HOST -p PORT or -s SOCKET; --sandbox needs none"
            }
            Self::TimedOut { .. } => "--connect-timeout 10s and --timeout 30s wait longer",
            Self::NoTls { .. } => {
                "leave out --tls (redis:// in place of rediss://), or name the port that speaks TLS"
            }
            Self::OnlyTls { .. } => "--tls, or rediss:// in place of redis://",
            Self::Tls { hint, .. } => hint,
            Self::ClientCertificate { .. } => CLIENT_CERTIFICATE,
            Self::TlsFile { .. } => {
                "nothing was sent; check --cacert, --cert, --key and --sni, or what the context says"
            }
            Self::NotRedis { .. } => "check host and port",
            Self::Unasked { .. } => "run it again; if it happens again, connect without the proxy",
            Self::Authentication { why, .. } if why.contains("NOAUTH") => {
                "give the password with --askpass, --pass-file or REDISCLI_AUTH"
            }
            Self::Authentication { .. } => {
                "check --user and the password (--askpass, --pass-file or REDISCLI_AUTH)"
            }
            Self::SentinelLogIn { .. } => {
                "Sentinels have a log-in of their own: --sentinel-user, --sentinel-pass-file or IDEMCTL_SENTINEL_AUTH"
            }
            Self::Permission { .. } | Self::NeedsSlots { .. } => {
                "docs/connecting.md, ACL users, has two that are ready to use"
            }
            Self::Apart { .. } => "force-unlock removes the lock alone; nothing else was tried",
            Self::Refused { code, why, .. } => return refused(code, why),
            Self::NotReplicated { .. } => {
                "--wait-timeout waits longer; INFO replication tells how the replicas are"
            }
            Self::MasterUnknown { .. } => {
                "once the Sentinels agree, inspect tells whether it is done there"
            }
            Self::FailedOver { .. } => {
                "the same command again changes what has come back, and goes on"
            }
            Self::Missed { .. } => "run the same command again once all of it can be read",
            Self::OutcomeUnknown { .. } => "inspect the key: what it is now tells",
            Self::File { .. } => "nothing was changed; check the folder's rights and free space",
            Self::UnexpectedReply { .. } => {
                "run it again; if it happens again, connect without the proxy"
            }
        })
    }
}

/// The hint for a refusal with this code and this message.
fn refused(code: &str, why: &str) -> Option<&'static str> {
    Some(match code {
        "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "ASK" | "MOVED" => {
            "try again in a moment"
        }
        "TRYAGAIN" => {
            "try again when the slot has moved; `redis-cli --cluster fix` ends a move that was interrupted"
        }
        "READONLY" => "this server is a replica: connect to its master",
        "OOM" => "the server is out of memory: free some, or raise maxmemory",
        "MISCONF" => "the server cannot save to disk and refuses writes: look at its log",
        "NOREPLICAS" => {
            "the master sees too few of its replicas (min-replicas-to-write) and refuses writes till then"
        }
        "DENIED" => {
            "the server takes no clients from other hosts without a password (protected-mode)"
        }
        _ if why.starts_with("max number of clients") => {
            "the server has no room for another client: close some, or raise maxclients"
        }
        _ if why.contains("not allowed in cluster mode") => {
            "a cluster has database 0 alone: leave out -n"
        }
        _ if why.contains("DB index is out of range") => {
            "the server has no such database: see -n, or the URL"
        }
        _ if why.contains("unknown command 'SCAN'") => {
            "if this is a Sentinel: --sentinel HOST:PORT --master-name SERVICE"
        }
        _ => return None,
    })
}
