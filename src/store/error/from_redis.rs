//! Converts the errors of the client crate and of the TLS handshake into [`StoreError`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerError};

use super::acl;
use super::error::{RefusedAt, StoreError};
use super::from_tls;
use super::kind::REDIRECTS;
use crate::store::connection::Target;

/// Error codes about the server or the user, not about one record: they end the whole operation.
pub(super) const REFUSALS: [&str; 14] = [
    "READONLY",
    "OOM",
    "MISCONF",
    "LOADING",
    "BUSY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "NOREPLICAS",
    "NOPERM",
    "NOAUTH",
];

/// Why a server is none of Redis.
pub(in crate::store) const NOT_RESP: &str = "its reply is not in the Redis protocol";

impl StoreError {
    /// Converts an error of the client crate for a request to `target`.
    pub(in crate::store) fn at(target: &Target, error: &RedisError) -> Self {
        Self::from_redis(error, &target.to_string(), target.timeout)
    }

    /// Converts an error of the client crate.
    pub fn from_redis(error: &RedisError, target: &str, timeout: Duration) -> Self {
        let io_error = io_error(error);
        // A TLS error arrives as an I/O error, and explains more.
        if let Some(io_error) = io_error
            && let Some(trouble) = from_tls::trouble(target, io_error)
        {
            return trouble;
        }
        let target = target.to_owned();
        if error.is_timeout() {
            return Self::TimedOut { target, seconds: timeout.as_secs_f64() };
        }
        if let Some(io_error) = io_error
            && io_error.kind() == io::ErrorKind::InvalidData
        {
            return Self::NotRedis { target, why: NOT_RESP.to_owned() };
        }
        if error.is_io_error() || error.is_connection_dropped() {
            return Self::Unreachable { target, why: io_reason(error) };
        }
        if error.kind() == ErrorKind::Parse {
            return Self::NotRedis { target, why: NOT_RESP.to_owned() };
        }
        let message = error.detail().unwrap_or_default();
        let refused_at = if is_of_script(message) { RefusedAt::Script } else { RefusedAt::Command };
        let (code, why) = match out_of_script(message) {
            Some(inside) => inside,
            None => (error.code().unwrap_or("ERR"), message),
        };
        let code = printable(code);
        let why = printable(why);
        let wrong_login = matches!(code.as_str(), "NOAUTH" | "WRONGPASS")
            || error.kind() == ErrorKind::AuthenticationFailed;
        if wrong_login || (code == "ERR" && why.contains("AUTH")) {
            let why = match error.code() {
                // HELLO explains at length what every other command answers with these words.
                Some("NOAUTH") => "NOAUTH Authentication required.".to_owned(),
                Some(_) => format!("{code} {why}"),
                None => error.to_string(),
            };
            return Self::Authentication { target, why };
        }
        if code == "NOPERM" || is_script_not_permitted(&why) {
            return Self::Permission { target, why: acl::named(why) };
        }
        if code == "DENIED" {
            // The first sentence is enough: a page of advice for the server's operator follows it.
            let first = why.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned();
            return Self::ErrorReply { target, code, why: first, refused_at };
        }
        Self::ErrorReply {
            target,
            code,
            why: if why.is_empty() { error.to_string() } else { why },
            refused_at,
        }
    }

    /// Converts an error of the TLS handshake that is not an error of TLS itself.
    pub(in crate::store) fn from_handshake(error: &io::Error, target: &Target) -> Self {
        let name = target.to_string();
        match error.kind() {
            io::ErrorKind::TimedOut => {
                Self::TimedOut { target: name, seconds: target.connect_timeout.as_secs_f64() }
            }
            io::ErrorKind::InvalidData => {
                Self::NotRedis { target: name, why: "its answer is not TLS".to_owned() }
            }
            _ => Self::Unreachable {
                target: name,
                why: format!("it ended the TLS handshake: {error}"),
            },
        }
    }
}

/// Escapes control characters in a server's message, because idemctl's output lets its own colour
/// sequences pass.
fn printable(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for character in words.chars() {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

/// The code and the message of an error inside a script. Redis 6.2 wraps such errors, so the code
/// is not the first word.
pub(in crate::store) fn out_of_script(why: &str) -> Option<(&str, &str)> {
    let (_, said) = why.strip_prefix("Error running script")?.split_once(" -")?;
    let (code, rest) = said.split_once(' ').unwrap_or((said, ""));
    // A redirect inside a script is not unwrapped: the script may have made changes, so it must not
    // be sent again.
    let is_code = !code.is_empty()
        && code.bytes().all(|byte| byte.is_ascii_uppercase())
        && !REDIRECTS.contains(&code);
    if is_code { Some((code, rest)) } else { None }
}

/// True for an error inside a script, which Redis 6.2 marks at the beginning and later versions at
/// the end.
fn is_of_script(why: &str) -> bool {
    why.starts_with("Error running script") || why.contains("@user_script")
}

/// Recognises the errors of Redis 6.2, 7.0 and later when a script runs a command that its user may
/// not run.
fn is_script_not_permitted(why: &str) -> bool {
    why.contains("NOPERM")
        || why.contains("The user executing the script")
        || why.contains("ACL failure in script")
}

/// The I/O error that the client crate wraps in a shared pointer.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let source = std::error::Error::source(error)?;
    match source.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>() {
        Some(shared) => shared.downcast_ref(),
        None => source.downcast_ref(),
    }
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

/// True for an error about the server or the user.
pub(in crate::store) fn is_refusal(error: &ServerError) -> bool {
    let code = match error.details().and_then(out_of_script) {
        Some((code, _)) => code,
        None => error.code(),
    };
    REFUSALS.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_ran_into_is_found_inside_its_error() {
        let wrapped = "Error running script (call to f_1): @user_script:17: @user_script: 17: -OOM command not allowed";
        assert_eq!(out_of_script(wrapped), Some(("OOM", "command not allowed")));
        assert_eq!(
            out_of_script("Error running script (call to f_1): @user_script:1: a - b"),
            None
        );
        assert_eq!(out_of_script("something -BUSY"), None);
        assert_eq!(out_of_script("Error running script (call to f_1): -TRYAGAIN later"), None);
    }

    /// Rule: nothing from Redis sets a colour or moves a cursor, an error of the server included.
    #[test]
    fn words_of_the_server_are_printable() {
        let line = b"-\x1b[8mERR \x1b[31mhidden\x1b[2J \"quoted\" \xc2\x9b1m\r\n";
        let redis::Value::ServerError(error) =
            redis::parse_redis_value(line).unwrap_or(redis::Value::Nil)
        else {
            panic!("it is an error");
        };
        let told = StoreError::from_redis(&error.into(), "cache:6379/0", Duration::from_secs(1))
            .to_string();
        assert!(
            !told.contains(char::is_control)
                && told.contains("hidden")
                && told.contains("\"quoted\""),
            "{told}"
        );
    }

    #[test]
    fn an_error_of_the_server_is_told_from_one_of_the_record() {
        let of = |text: &[u8]| match redis::parse_redis_value(text).unwrap() {
            redis::Value::ServerError(error) => is_refusal(&error),
            other => panic!("{other:?}"),
        };
        assert!(of(b"-READONLY You can't write against a read only replica.\r\n"));
        let wrapped = b"-ERR Error running script (call to f_1): @user_script:17: -OOM command not allowed\r\n";
        assert!(of(wrapped));
        assert!(!of(b"-LOCKED the key is held\r\n"));
        assert!(!of(b"-ERR something BUSY\r\n"));
    }
}
