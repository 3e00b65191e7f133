//! What can go wrong with a server, typed, so that exit codes come from types.

use redis::{ErrorKind, RedisError};

/// What a node of a cluster says of a command that belongs to another node, or another moment, and was not executed.
const REDIRECTS: [&str; 3] = ["MOVED", "ASK", "TRYAGAIN"];

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
    /// Log-in failed or is missing.
    #[error("Redis at {target} refused the log-in: {why}")]
    Authentication {
        /// The server.
        target: String,
        /// The server's words.
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
    },
    /// A change was sent, its reply was lost, and reading back could not tell what became of it.
    #[error("outcome unknown: {what} was sent to Redis at {target}, but the reply was lost ({why})")]
    OutcomeUnknown {
        /// The server.
        target: String,
        /// The change.
        what: String,
        /// Why the reply was lost.
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
    /// A bug, ours or the server's.
    Bug,
}

impl StoreError {
    /// What kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Authentication { .. } | Self::Permission { .. } => ErrorClass::Permission,
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::NotRedis { .. } => ErrorClass::Unreachable,
            Self::Refused { .. } => ErrorClass::Refused,
            Self::Missed { .. } => ErrorClass::Partial,
            Self::OutcomeUnknown { .. } => ErrorClass::OutcomeUnknown,
            Self::File { .. } => ErrorClass::File,
            Self::UnexpectedReply { .. } => ErrorClass::Bug,
        }
    }

    /// What to do next, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unreachable { .. } => {
                "name the server with -u redis://HOST:PORT, -h HOST -p PORT or -s SOCKET; --sandbox needs none"
            }
            Self::TimedOut { .. } => "a TLS port answers nothing to a plain client; --timeout 30s waits longer",
            Self::NotRedis { .. } => "check host and port",
            Self::Authentication { why, .. } if why.contains("NOAUTH") => {
                "give the password with -a, --askpass or REDISCLI_AUTH"
            }
            Self::Authentication { .. } => "check --user and the password (-a, --askpass or REDISCLI_AUTH)",
            Self::Permission { .. } => "README, Least rights, lists what idemctl needs of an ACL user",
            Self::Refused { why, .. } if why.starts_with("max number of clients") => {
                "the server has no room for another client: close some, or raise maxclients"
            }
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
            Self::Missed { .. } => "the same command again, once they are back, sees the rest",
            Self::OutcomeUnknown { .. } => "inspect the key: what it is now tells",
            Self::File { .. } => "nothing was changed; check the folder's rights and free space",
            Self::UnexpectedReply { .. } => return None,
        })
    }

    /// Sorts an error of the client crate.
    pub fn from_redis(error: &RedisError, target: &str, timeout: std::time::Duration) -> Self {
        let target = target.to_owned();
        if error.is_timeout() {
            return Self::TimedOut { target, seconds: timeout.as_secs_f64() };
        }
        if error.is_io_error() || error.is_connection_dropped() {
            return Self::Unreachable { target, why: io_reason(error) };
        }
        if error.kind() == ErrorKind::Parse {
            return Self::NotRedis { target, why: "its reply is not in the Redis protocol".to_owned() };
        }
        let (code, why) = (error.code().unwrap_or("ERR"), error.detail().unwrap_or_default());
        let (code, why) = out_of_script(why).unwrap_or((code, why));
        let (code, why) = (code.to_owned(), why.to_owned());
        let wrong_login =
            matches!(code.as_str(), "NOAUTH" | "WRONGPASS") || error.kind() == ErrorKind::AuthenticationFailed;
        if wrong_login || (code == "ERR" && why.contains("AUTH")) {
            let why = if error.code().is_some() { format!("{code} {why}") } else { error.to_string() };
            return Self::Authentication { target, why };
        }
        if code == "NOPERM" || is_script_not_permitted(&why) {
            return Self::Permission { target, why };
        }
        Self::Refused { target, code, why: if why.is_empty() { error.to_string() } else { why } }
    }

    /// True when the reason is that the user lacks a right.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Permission { .. })
    }

    /// True when the Redis key holds another type than the command works on.
    pub(super) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "WRONGTYPE")
    }

    /// True when a node of a cluster names another node, or another moment; nothing was done.
    pub(super) fn is_redirect(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if REDIRECTS.contains(&code.as_str()))
    }

    /// True when the server does not know the command.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused { why, .. } if why.to_ascii_lowercase().contains("unknown command"))
    }

    /// True when a change may have been made although no reply came.
    pub fn lost_the_reply(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. } | Self::NotRedis { .. })
    }
}

/// Redis 6.2 wraps what a script ran into, so that the code is not the error's first word: the code, and the rest.
pub(super) fn out_of_script(why: &str) -> Option<(&str, &str)> {
    let (_, said) = why.strip_prefix("Error running script")?.split_once(" -")?;
    let (code, rest) = said.split_once(' ').unwrap_or((said, ""));
    // A script that began may have changed something: what it ran into is no reason to send it again.
    let is_code = code.bytes().all(|byte| byte.is_ascii_uppercase()) && !REDIRECTS.contains(&code);
    is_code.then_some((code, rest))
}

/// What servers say when a script runs a command that its user may not: Redis 6.2, 7.0, and since.
fn is_script_not_permitted(why: &str) -> bool {
    ["NOPERM", "The user executing the script", "ACL failure in script"].iter().any(|words| why.contains(words))
}

fn io_reason(error: &RedisError) -> String {
    if error.is_connection_refusal() {
        return "connection refused".to_owned();
    }
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_ran_into_is_found_inside_its_error() {
        let wrapped = "Error running script (call to f_1): @user_script:17: @user_script: 17: -OOM command not allowed";
        assert_eq!(out_of_script(wrapped), Some(("OOM", "command not allowed")));
        assert_eq!(out_of_script("Error running script (call to f_1): @user_script:1: a - b"), None);
        assert_eq!(out_of_script("something -BUSY"), None);
        assert_eq!(out_of_script("Error running script (call to f_1): -TRYAGAIN later"), None);
    }
}
