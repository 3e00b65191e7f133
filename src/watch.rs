//! Looking again and again, until a state comes, a time is over, or Ctrl-C.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::args::FollowArgs;
use crate::context::Context;
use crate::domain::schema::State;
use crate::domain::select::awaited::Awaited;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;

/// A watch that scans the keyspace waits at least so many times as long as its last scan took: then it costs the server less than
/// a tenth of what scans without a pause cost, however large the keyspace is.
const PAUSE_OF_SCANS: u32 = 10;

/// From this time on a watch says why it waits longer than asked.
const NOTICED: Duration = Duration::from_secs(2);

/// How a watch looks, and when it ends.
pub struct Watch {
    interval: Duration,
    /// True if each look scans the keyspace.
    scans: bool,
    until: Option<State>,
    within: Option<Duration>,
    /// True to paint each look over the one before.
    paints: bool,
}

impl Watch {
    /// A watch as the options say; `None` for one look. Tables are painted where stdout is a terminal.
    ///
    /// # Errors
    /// Usage: a word that is no time.
    pub fn of(
        context: &mut Context,
        args: &FollowArgs,
        is_table: bool,
    ) -> Result<Option<Self>, CommandError> {
        if args.interval()?.is_some() {
            context.ui.end_paging();
        }
        let until = args.until.map(State::from);
        let paints = is_table && context.ui.can_paint();
        Ok(args.interval()?.map(|interval| Self {
            interval,
            scans: false,
            until,
            within: args.within,
            paints,
        }))
    }

    /// The same watch with pauses in proportion to how long a look takes, because each look scans the keyspace.
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

    /// Looks until what is awaited came, or the watch is over.
    ///
    /// # Errors
    /// The error of a look; the awaited state did not come or cannot come; Ctrl-C.
    pub async fn follow(
        &self,
        context: &mut Context,
        interrupt: &Interrupt,
        mut look: impl AsyncFnMut(&mut Context) -> Result<Awaited>,
    ) -> Result<Exit> {
        let end = self.within.map(|within| Instant::now() + within);
        let is_plain = self.within.is_none() && self.until.is_none();
        let mut took = Duration::ZERO;
        loop {
            let started = Instant::now();
            let is_last = end.is_some_and(|end| Instant::now() >= end);
            if self.paints {
                context.ui.begin_frame(&self.heading(context, took));
            }
            let awaited = interrupt.unless_raised(look(context)).await;
            let awaited =
                awaited.unwrap_or_else(|| Err(CommandError::interrupted("interrupted").into()));
            context.ui.end_frame(awaited.is_ok())?;
            // Ctrl-C is how a watch ends that waits for nothing.
            if is_plain && interrupt.is_raised() {
                return Ok(Exit::Done);
            }
            match (awaited?, self.until) {
                (Awaited::Came, _) => return Ok(Exit::Done),
                (Awaited::CannotCome, Some(state)) => {
                    let message = format!(
                        "{} cannot come any more: the lock ended without a result",
                        state.as_str()
                    );
                    return Err(CommandError::new(Exit::No, message)
                        .hint("the next request executes the operation")
                        .into());
                }
                (_, Some(state)) if is_last => return Err(self.too_late(state).into()),
                _ => {}
            }
            took = started.elapsed();
            let next = (started + self.interval).max(Instant::now() + self.pause_after(took));
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

    /// The time to wait at least after a look that took so long.
    fn pause_after(&self, took: Duration) -> Duration {
        if self.scans { took * PAUSE_OF_SCANS } else { Duration::ZERO }
    }

    /// The line above a look; `took` says how long the look before took.
    fn heading(&self, context: &Context, took: Duration) -> String {
        let paused = took + self.pause_after(took);
        let every = if paused > self.interval.max(NOTICED) {
            let seconds = Duration::from_secs(paused.as_secs());
            format!("{}, because a scan takes long", humantime::format_duration(seconds))
        } else {
            humantime::format_duration(self.interval).to_string()
        };
        let until =
            self.until.map(|state| format!(" until {}", state.as_str())).unwrap_or_default();
        let time = humantime::format_rfc3339_seconds(context.now());
        context.ui.view().palette.dim(&format!("{time}, every {every}{until}"))
    }

    fn too_late(&self, state: State) -> CommandError {
        let within = humantime::format_duration(self.within.unwrap_or_default());
        CommandError::new(Exit::No, format!("not {} within {within}", state.as_str()))
    }
}

/// The error of a watch that is to give one JSON document.
pub fn endless() -> anyhow::Error {
    CommandError::usage("--watch has no end to close a JSON document at")
        .hint("use -o jsonl: an object a line")
        .into()
}
