//! What a server was asked for politeness' sake and does not do, or not for this user: it is asked once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::StoreError;

/// Remembers for every connection to one server. All are equal: what is remembered says nothing of which server it is.
#[derive(Debug, Clone, Default)]
pub struct Manners(Arc<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    no_name: AtomicBool,
    no_no_touch: AtomicBool,
    looked_closer: AtomicBool,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Courtesy {
    /// `CLIENT SETNAME`: so that others see whose connection it is.
    Name,
    /// `CLIENT NO-TOUCH`, from 7.2: so that reading does not keep keys from being evicted.
    NoTouch,
}

impl Manners {
    /// True the first time: a server that gives no answer is looked at more closely once, for that takes time.
    pub(super) fn is_first_look(&self) -> bool {
        !self.0.looked_closer.swap(true, Ordering::Relaxed)
    }

    /// False when the server refused it before.
    pub(super) fn does(&self, courtesy: Courtesy) -> bool {
        !self.flag(courtesy).load(Ordering::Relaxed)
    }

    /// Notes what the server said to it.
    ///
    /// # Errors
    /// Whatever has nothing to do with it: the log-in is missing, the server refuses service.
    pub(super) fn heard<T>(&self, courtesy: Courtesy, reply: Result<T, StoreError>) -> Result<(), StoreError> {
        match reply {
            Ok(_) => Ok(()),
            Err(error) if error.is_permission() || error.is_unknown_command() => {
                self.flag(courtesy).store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn flag(&self, courtesy: Courtesy) -> &AtomicBool {
        match courtesy {
            Courtesy::Name => &self.0.no_name,
            Courtesy::NoTouch => &self.0.no_no_touch,
        }
    }
}

impl PartialEq for Manners {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Manners {}

impl Courtesy {
    /// The command.
    pub(super) fn words(self) -> [&'static str; 3] {
        match self {
            Self::Name => ["CLIENT", "SETNAME", super::connect::CLIENT_NAME],
            Self::NoTouch => ["CLIENT", "NO-TOUCH", "ON"],
        }
    }
}
