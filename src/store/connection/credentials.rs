//! A log-in that expires, from a program that gives a new one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

/// What the program gave.
#[derive(Clone)]
pub struct LogIn {
    /// The ACL user, if it is not that of the [`super::Target`].
    pub user: Option<String>,
    pub password: String,
    pub expires_in: Option<Duration>,
}

/// The newest log-in, which all connections of a run share, and how to get another one. All
/// instances compare as equal, because a log-in does not identify a server.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

struct Shared {
    run: Box<dyn Fn() -> BoxFuture<'static, Result<LogIn, String>> + Send + Sync>,
    newest: Mutex<Option<Numbered>>,
}

/// A log-in with its number in the run, which begins at 1.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) log_in: LogIn,
    renew_at: Option<Instant>,
}

impl Credentials {
    pub fn new(
        run: impl Fn() -> BoxFuture<'static, Result<LogIn, String>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { run: Box::new(run), newest: Mutex::default() }))
    }

    /// The newest log-in. Runs the program if there is none, if four fifths of its time have
    /// passed, or if the server refused the one with this number.
    pub(super) async fn newest(&self, refused: Option<u64>) -> Result<Numbered, String> {
        // Locked while the program runs, so that connections which open at once share its answer.
        let mut newest = self.0.newest.lock().await;
        let mut number = 1;
        if let Some(known) = &*newest {
            let is_due = known.renew_at.is_some_and(|at| at <= Instant::now());
            if !is_due && refused != Some(known.number) {
                return Ok(known.clone());
            }
            number = known.number + 1;
        }
        let asked_at = Instant::now();
        let log_in = (self.0.run)().await?;
        let renew_at = log_in.expires_in.and_then(|span| asked_at.checked_add(span / 5 * 4));
        Ok(newest.insert(Numbered { number, log_in, renew_at }).clone())
    }
}

impl PartialEq for Credentials {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Credentials {}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}
