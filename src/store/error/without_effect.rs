//! The only list of errors after which nothing was changed. After any other error, and after a lost
//! or unexpected reply, a change may have been made, so idemctl reads the state back.
//!
//! A proxy may forward a change and then answer with an error of its own. An error therefore counts
//! as one without effect only if Redis itself guarantees that, by its code and by where
//! it occurred.

use super::error::{RefusedAt, StoreError};
use super::from_redis::REFUSALS;

/// Error codes that occur before a command is executed (Redis, `processCommand`), in addition to
/// [`REFUSALS`].
const BEFORE_EXECUTION: [&str; 4] = ["WRONGPASS", "NOSCRIPT", "EXECABORT", "DENIED"];

/// Error codes that a script meets at or before its first write. Their cause does not change while
/// the script runs. idemctl's own scripts compare with commands that only read, and write with one
/// kind of command.
const IN_SCRIPT: [&str; 5] = ["NOPERM", "READONLY", "OOM", "MISCONF", "NOREPLICAS"];

/// Prefixes of errors without a specific code that occur before a command is executed.
const WORDS: [&str; 6] = [
    "unknown command",
    "wrong number of arguments",
    "max number of clients reached",
    "DB index is out of range",
    "Error compiling script",
    "Protocol error",
];

impl StoreError {
    /// True if a change that got this error was not made.
    pub(in crate::store) fn is_without_effect(&self) -> bool {
        match self {
            Self::ErrorReply { code, why, refused_at, .. } => match refused_at {
                RefusedAt::Command if code == "ERR" => {
                    WORDS.iter().any(|words| why.starts_with(words))
                }
                RefusedAt::Command => {
                    BEFORE_EXECUTION.contains(&code.as_str()) || REFUSALS.contains(&code.as_str())
                }
                RefusedAt::Script => IN_SCRIPT.contains(&code.as_str()),
            },
            Self::Authentication { why, .. } => {
                why.starts_with("NOAUTH") || why.starts_with("WRONGPASS")
            }
            Self::Permission { .. }
            | Self::NeedsSlots { .. }
            | Self::SentinelLogIn { .. }
            | Self::NoPassword { .. }
            | Self::Apart { .. } => true,
            Self::File { .. }
            | Self::TlsFile { .. }
            | Self::Missed { .. }
            | Self::Unasked { .. } => true,
            Self::Unreachable { .. } | Self::UnknownService { .. } => false,
            Self::TimedOut { .. } | Self::NotRedis { .. } => false,
            Self::NoTls { .. }
            | Self::OnlyTls { .. }
            | Self::Tls { .. }
            | Self::ClientCertificate { .. } => false,
            Self::OutcomeUnknown { .. } | Self::UnexpectedReply { .. } => false,
            Self::FailedOver { .. } | Self::MasterUnknown { .. } | Self::NotReplicated { .. } => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(refused_at: RefusedAt, code: &str, why: &str) -> bool {
        StoreError::ErrorReply {
            target: String::new(),
            code: code.to_owned(),
            why: why.to_owned(),
            refused_at,
        }
        .is_without_effect()
    }

    #[test]
    fn what_redis_refuses_to_execute_had_no_effect() {
        for code in BEFORE_EXECUTION.into_iter().chain(REFUSALS) {
            assert!(refused(RefusedAt::Command, code, "whatever"), "{code}");
        }
        assert!(refused(
            RefusedAt::Command,
            "ERR",
            "unknown command 'UNLINK', with args beginning with: "
        ));
        assert!(refused(RefusedAt::Command, "ERR", "max number of clients reached"));
    }

    /// Rule: an error counts as "not done" only if Redis guarantees that.
    #[test]
    fn an_error_that_redis_does_not_promise_anything_of_may_have_had_one() {
        for (code, why) in [
            ("upstream", "failure"),
            ("ERR", "Connection timed out"),
            ("ERR", "upstream: unknown command"),
            ("ERR", ""),
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value"),
            ("UNKILLABLE", "Sorry the script already executed write commands"),
            ("oom", "lower case"),
        ] {
            assert!(!refused(RefusedAt::Command, code, why), "{code} {why}");
        }
        assert!(
            !StoreError::UnexpectedReply { target: String::new(), asked: String::new() }
                .is_without_effect()
        );
    }

    #[test]
    fn the_same_code_inside_a_script_may_come_after_its_first_write() {
        for code in
            ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "NOSCRIPT", "ERR", "LOADING"]
        {
            assert!(!refused(RefusedAt::Script, code, "unknown command"), "{code}");
        }
        for code in IN_SCRIPT {
            assert!(refused(RefusedAt::Script, code, ""), "{code}");
        }
    }
}
