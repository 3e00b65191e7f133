//! Repeats a command until a state is reached, a time limit expires, or the operator presses
//! Ctrl-C.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::args::FollowArgs;
use crate::domain::schema::State;
use crate::domain::select::awaited::Awaited;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::session::Session;

/// A watch that scans the keyspace pauses at least this many times as long as its last scan took.
/// It therefore causes less than a tenth of the load of continuous scans, however large the
/// keyspace is.
const PAUSE_OF_SCANS: u32 = 10;

/// How often a watch repeats, and when it ends.
pub struct Watch {
    interval: Duration,
    /// True if each repetition scans the keyspace.
    scans: bool,
    until: Option<State>,
    within: Option<Duration>,
    /// True if each screen overwrites the previous one.
    paints: bool,
}

impl Watch {
    /// The watch that the options request; `None` for a single run. Tables are drawn as screens if
    /// stdout is a terminal.
    ///
    /// # Errors
    /// Usage: an invalid time.
    pub fn of(
        session: &Session,
        args: &FollowArgs,
        is_table: bool,
    ) -> Result<Option<Self>, CommandError> {
        let until = args.until.map(State::from);
        let paints = is_table && session.ui.can_paint();
        Ok(args.interval()?.map(|interval| Self {
            interval,
            scans: false,
            until,
            within: args.within,
            paints,
        }))
    }

    /// The same watch with pauses in proportion to the duration of a scan.
    #[must_use]
    pub fn scanning(self) -> Self {
        Self { scans: true, ..self }
    }

    pub fn until(&self) -> Option<State> {
        self.until
    }

    pub fn paints(&self) -> bool {
        self.paints
    }

    /// Repeats `look` until the awaited state is reached or the watch ends.
    ///
    /// # Errors
    /// The error of `look`; the awaited state was not reached or cannot be reached; Ctrl-C.
    pub async fn follow(
        &self,
        session: &mut Session,
        interrupt: &Interrupt,
        mut look: impl AsyncFnMut(&mut Session) -> Result<Awaited>,
    ) -> Result<Exit> {
        let end = self.within.map(|within| Instant::now() + within);
        let is_plain = self.within.is_none() && self.until.is_none();
        loop {
            let started = Instant::now();
            let is_last = end.is_some_and(|end| Instant::now() >= end);
            if self.paints {
                session.ui.begin_frame(&self.heading(session));
            }
            let awaited = interrupt.unless_raised(look(session)).await;
            let awaited =
                awaited.unwrap_or_else(|| Err(CommandError::interrupted("interrupted").into()));
            session.ui.end_frame(awaited.is_ok())?;
            // Ctrl-C is the normal end of a watch that awaits nothing.
            if is_plain && interrupt.is_raised() {
                return Ok(Exit::Done);
            }
            match (awaited?, self.until) {
                (Awaited::Came, _) => return Ok(Exit::Done),
                (Awaited::CannotCome, Some(state)) => {
                    let message = format!(
                        "the record cannot become {} any more, because the lock ended without a \
                        result",
                        state.as_str()
                    );
                    return Err(CommandError::new(Exit::No, message)
                        .hint("the next request executes the operation")
                        .into());
                }
                (_, Some(state)) if is_last => return Err(self.too_late(state).into()),
                _ => {}
            }
            let mut next = started + self.interval;
            if self.scans {
                next = next.max(Instant::now() + started.elapsed() * PAUSE_OF_SCANS);
            }
            let next = end.map_or(next, |end| next.min(end));
            if interrupt.unless_raised(tokio::time::sleep_until(next)).await.is_none() {
                return if is_plain {
                    Ok(Exit::Done)
                } else {
                    Err(CommandError::interrupted("interrupted").into())
                };
            }
        }
    }

    /// The line above a screen.
    fn heading(&self, session: &Session) -> String {
        let every = humantime::format_duration(self.interval);
        let until =
            self.until.map(|state| format!(" until {}", state.as_str())).unwrap_or_default();
        let time = humantime::format_rfc3339_seconds(session.now());
        session.ui.view().palette.dim(&format!("{time}, every {every}{until}"))
    }

    fn too_late(&self, state: State) -> CommandError {
        let within = humantime::format_duration(self.within.unwrap_or_default());
        CommandError::new(
            Exit::No,
            format!("the record did not become {} within {within}", state.as_str()),
        )
    }
}

/// The error for a watch that should print one JSON document.
pub fn endless() -> anyhow::Error {
    CommandError::usage("--watch cannot write a single JSON document, because it has no end")
        .hint("use -o jsonl, which writes one object per line")
        .into()
}
