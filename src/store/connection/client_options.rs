//! Optional requests to a server, and which of them it refuses. A refused one is not sent
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use redis::Value;

use super::reply;
use crate::store::error::StoreError;

/// The name that `CLIENT LIST` shows for idemctl's connections.
const CLIENT_NAME: &str = "idemctl";

/// How long the role in the reply to HELLO is taken for the server's role, so that a short command
/// need not ask for it.
const ROLE_IS_FRESH: Duration = Duration::from_secs(1);

/// The state that all connections of a run share, on a cluster those to all nodes. All instances
/// compare as equal, because this state does not identify a server.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions(Arc<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    no_name: AtomicBool,
    may_no_touch: AtomicBool,
    agreed_to_no_touch: AtomicBool,
    said_hello: AtomicBool,
    /// When the server's reply to HELLO said that it is a master.
    was_master_at: OnceLock<Instant>,
    looked_closer: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum ClientOption {
    /// `CLIENT SETNAME`, so that others can see whose connection it is.
    Name,
    /// `CLIENT NO-TOUCH` (Redis 7.2 or later), so that reading keys does not affect which of them
    /// are evicted. idemctl never sends it to cluster nodes: Redis 8.0 to 8.2 crashes when such a
    /// client names a key of a slot that is being moved.
    NoTouch,
}

impl ClientOptions {
    /// True on the first call. An unresponsive server is diagnosed only once, because that takes
    /// time.
    pub(in crate::store) fn claim_first_lookup(&self) -> bool {
        !self.0.looked_closer.swap(true, Ordering::Relaxed)
    }

    /// True on the first call. idemctl must know the kind of server before it sends
    /// [`ClientOption::NoTouch`].
    pub(in crate::store) fn claim_first_hello(&self) -> bool {
        !self.0.said_hello.swap(true, Ordering::Relaxed)
    }

    /// Records the server's reply to HELLO. A server of unknown kind does not get requests that
    /// might harm it.
    pub(in crate::store) fn record_hello(&self, greeting: Option<Value>) {
        let mut role = None;
        let mut kind = None;
        if let Some(greeting) = greeting {
            role = hello_field(greeting.clone(), "role");
            kind = mode(greeting);
        }
        if role.as_deref() == Some("master") {
            self.0.was_master_at.get_or_init(Instant::now);
        }
        let is_safe = kind.is_some_and(|kind| kind != "cluster");
        self.0.may_no_touch.store(is_safe, Ordering::Relaxed);
    }

    /// True if the server said a moment ago that it is a master. A short command then need not ask
    /// again.
    pub(in crate::store) fn was_just_master(&self) -> bool {
        self.0.was_master_at.get().is_some_and(|at| at.elapsed() < ROLE_IS_FRESH)
    }

    /// False if the server refused the option before, or must not be asked.
    pub(in crate::store) fn is_enabled(&self, option: ClientOption) -> bool {
        match option {
            ClientOption::Name => !self.0.no_name.load(Ordering::Relaxed),
            ClientOption::NoTouch => self.0.may_no_touch.load(Ordering::Relaxed),
        }
    }

    /// True if idemctl's reads do not change the idle times of keys, because the server accepted
    /// [`ClientOption::NoTouch`].
    pub(in crate::store) fn keeps_idle_times(&self) -> bool {
        self.is_enabled(ClientOption::NoTouch) && self.0.agreed_to_no_touch.load(Ordering::Relaxed)
    }

    /// Records the server's reply to an option.
    ///
    /// # Errors
    /// Any error that does not concern the option, such as a missing log-in or a busy server.
    pub(in crate::store) fn record_reply<T>(
        &self,
        option: ClientOption,
        reply: Result<T, StoreError>,
    ) -> Result<(), StoreError> {
        match reply {
            Ok(_) => {
                if matches!(option, ClientOption::NoTouch) {
                    self.0.agreed_to_no_touch.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
            Err(error) if error.is_permission() || error.is_unknown_command() => {
                match option {
                    ClientOption::Name => self.0.no_name.store(true, Ordering::Relaxed),
                    ClientOption::NoTouch => self.0.may_no_touch.store(false, Ordering::Relaxed),
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl PartialEq for ClientOptions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ClientOptions {}

impl ClientOption {
    pub(in crate::store) fn words(self) -> [&'static str; 3] {
        match self {
            Self::Name => ["CLIENT", "SETNAME", CLIENT_NAME],
            Self::NoTouch => ["CLIENT", "NO-TOUCH", "ON"],
        }
    }
}

/// The mode in a server's reply to HELLO: `standalone`, `cluster` or `sentinel`.
pub(in crate::store) fn mode(greeting: Value) -> Option<String> {
    hello_field(greeting, "mode")
}

/// A field of the reply to HELLO, e.g. `role`, which is `master` or `replica`.
pub(in crate::store) fn hello_field(greeting: Value, field: &str) -> Option<String> {
    let mut words = Vec::new();
    match greeting {
        Value::Map(pairs) => {
            for (name, value) in pairs {
                words.push(reply::word(name));
                words.push(reply::word(value));
            }
        }
        // Protocol version 2 has no maps, so names and values follow each other.
        other => {
            for part in reply::array(other).unwrap_or_default() {
                words.push(reply::word(part));
            }
        }
    }
    for pair in words.chunks_exact(2) {
        if pair[0].as_deref() == Some(field) {
            return pair[1].clone();
        }
    }
    None
}
