//! What a server was asked for politeness' sake and does not do, or not for this user: it is asked once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;

use super::reply;
use crate::store::error::StoreError;

/// The name that `CLIENT LIST` shows for idemctl's connections.
const CLIENT_NAME: &str = "idemctl";

/// Remembers for every connection to one server. All are equal: what is remembered says nothing of which server it is.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions(Arc<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    no_name: AtomicBool,
    may_no_touch: AtomicBool,
    agreed_to_no_touch: AtomicBool,
    said_hello: AtomicBool,
    looked_closer: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum ClientOption {
    /// `CLIENT SETNAME`: so that others see whose connection it is.
    Name,
    /// `CLIENT NO-TOUCH`, from 7.2: so that reading does not keep keys from being evicted. A cluster's nodes are never
    /// asked: releases 8.0 to 8.2 of Redis crash when such a client names a key of a slot that is being moved.
    NoTouch,
}

impl ClientOptions {
    /// True the first time: a server that gives no answer is looked at more closely once, for that takes time.
    pub(in crate::store) fn is_first_look(&self) -> bool {
        !self.0.looked_closer.swap(true, Ordering::Relaxed)
    }

    /// True the first time: what a server is has to be known before it is asked for [`ClientOption::NoTouch`].
    pub(in crate::store) fn is_first_hello(&self) -> bool {
        !self.0.said_hello.swap(true, Ordering::Relaxed)
    }

    /// Notes how the server answered HELLO. Of one that does not say what it is nothing is asked that might harm it.
    pub(in crate::store) fn met(&self, greeting: Option<Value>) {
        let mode = greeting.and_then(mode);
        self.0.may_no_touch.store(mode.is_some_and(|mode| mode != "cluster"), Ordering::Relaxed);
    }

    /// False when the server refused it before, or may not be asked.
    pub(in crate::store) fn does(&self, option: ClientOption) -> bool {
        match option {
            ClientOption::Name => !self.0.no_name.load(Ordering::Relaxed),
            ClientOption::NoTouch => self.0.may_no_touch.load(Ordering::Relaxed),
        }
    }

    /// True if idemctl's own reads leave the idle times of keys alone: the server agreed to [`ClientOption::NoTouch`].
    pub(in crate::store) fn keeps_idle_times(&self) -> bool {
        self.does(ClientOption::NoTouch) && self.0.agreed_to_no_touch.load(Ordering::Relaxed)
    }

    /// Notes what the server said to it.
    ///
    /// # Errors
    /// Whatever has nothing to do with it: the log-in is missing, the server refuses service.
    pub(in crate::store) fn heard<T>(
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

/// What a server says that it is in its answer to HELLO: `standalone`, `cluster`, `sentinel`.
pub(in crate::store) fn mode(greeting: Value) -> Option<String> {
    told(greeting, "mode")
}

/// A field of the answer to HELLO, e.g. `role`, which is `master` or `replica`.
pub(in crate::store) fn told(greeting: Value, field: &str) -> Option<String> {
    let parts = match greeting {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        other => reply::array(other).unwrap_or_default(),
    };
    let words: Vec<_> = parts.into_iter().map(reply::word).collect();
    words.windows(2).find(|pair| pair[0].as_deref() == Some(field)).and_then(|pair| pair[1].clone())
}
