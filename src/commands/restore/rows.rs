//! The rows of `restore`: what became of each Redis key, shown as soon as it is known.

use std::io;

use serde_json::Map;

use crate::args::Output;
use crate::context::Context;
use crate::domain::record::Expiry;
use crate::domain::schema::Role;
use crate::render::change::restored;
use crate::render::document::Streamed;
use crate::store::backup::Held;
use crate::store::{Became, Fate, StoreError};

/// What became of a Redis key, in the order in which the counts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Restored,
    /// It was there already.
    Present,
    /// A result, kept away by a lock beside it.
    Locked,
    /// A lock, kept away by the result that its record has by now.
    Completed,
    Expired,
}

/// The endings of Redis keys that did not come back, with the reasons.
const LEFT: [(Ending, &str); 4] = [
    (Ending::Present, "there already, left as they are"),
    (Ending::Locked, "kept away by a lock: a retry is at work (--replace-locked restores the result all the same)"),
    (Ending::Completed, "kept away by a result: completed since"),
    (Ending::Expired, "expired since"),
];

impl Ending {
    fn of(held: &Held, fate: Fate) -> Self {
        // What keeps a lock away is a result, and what keeps a result away is a lock.
        let is_lock = held.beside.as_ref().is_some_and(|beside| beside.role == Role::Result);
        match fate {
            Fate::Restored(_) | Fate::FoundBack(_) => Self::Restored,
            Fate::Present => Self::Present,
            Fate::Barred if is_lock => Self::Completed,
            Fate::Barred => Self::Locked,
            Fate::Expired => Self::Expired,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Present => "present",
            Self::Locked => "locked",
            Self::Completed => "completed",
            Self::Expired => "expired",
        }
    }
}

/// Rows on their way to stdout, and their counts.
pub(super) struct Rows {
    output: Output,
    document: Streamed,
    dry_run: bool,
    /// By [`Ending`].
    counts: [u64; 5],
    /// Restored Redis keys whose reply was lost: reading back showed that they are back.
    pub read_back: u64,
    /// The error of a stdout that went away: the work goes on without it.
    shown: io::Result<()>,
}

impl Rows {
    pub(super) fn new(output: Output, dry_run: bool) -> Self {
        Self { output, document: Streamed::new("redis_keys"), dry_run, counts: [0; 5], read_back: 0, shown: Ok(()) }
    }

    fn count(&self, ending: Ending) -> u64 {
        self.counts[ending as usize]
    }

    /// Redis keys whose ending is known.
    pub(super) fn seen(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn restored(&self) -> u64 {
        self.count(Ending::Restored)
    }

    /// Redis keys that did not come back because of what stands at them, or beside them.
    pub(super) fn kept_away(&self) -> u64 {
        self.seen() - self.restored() - self.count(Ending::Expired)
    }

    /// Takes a batch; gives the worst error in the batch: an unknown outcome, else the first refusal.
    pub(super) fn add(&mut self, context: &mut Context, batch: &[Held], fates: Vec<Became>) -> Option<StoreError> {
        let mut refusal = None;
        let mut text = String::new();
        for (held, fate) in batch.iter().zip(fates) {
            match fate {
                Ok(fate) => {
                    let ending = Ending::of(held, fate);
                    text.push_str(&self.row(held, fate, ending));
                    self.counts[ending as usize] += 1;
                    self.read_back += u64::from(matches!(fate, Fate::FoundBack(_)));
                }
                Err(error @ StoreError::OutcomeUnknown { .. }) => refusal = Some(error),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        if self.shown.is_ok() {
            self.shown = context.ui.data(text).and_then(|()| context.ui.flush());
        }
        refusal
    }

    fn row(&mut self, held: &Held, fate: Fate, ending: Ending) -> String {
        let left = match fate {
            Fate::Restored(left) | Fate::FoundBack(left) => Some(left.map_or(Expiry::Never, Expiry::In)),
            _ => None,
        };
        let would = self.dry_run && matches!(fate, Fate::Restored(_));
        let row = restored::Row {
            outcome: if would { "would-restore" } else { ending.as_str() },
            redis_key: &held.saved.redis_key,
            schema: &held.schema,
            key: &held.key,
            state: &held.state,
            left,
        };
        match self.output {
            Output::Table if self.seen() == 0 => restored::heading() + &restored::line(&row),
            Output::Table => restored::line(&row),
            Output::Json => self.document.before_value() + &restored::json(&row),
            Output::Jsonl => restored::json(&row) + "\n",
        }
    }

    /// Closes the document. The error is the first of stdout's.
    pub(super) fn close(&mut self, context: &mut Context, whole: bool, left_out: u64) -> io::Result<()> {
        std::mem::replace(&mut self.shown, Ok(()))?;
        if self.output == Output::Json {
            let restored = if self.dry_run { "would_restore" } else { "restored" };
            let counts = [(restored, self.restored())].into_iter();
            let counts = counts.chain(LEFT.map(|(ending, _)| (ending.as_str(), self.count(ending))));
            let counts = counts.chain([("lines_left_out", left_out)]);
            let mut of_all: Map<_, _> = counts.map(|(name, count)| (name.to_owned(), count.into())).collect();
            of_all.insert("complete".to_owned(), whole.into());
            context.ui.data(self.document.end(&of_all))?;
        }
        context.ui.flush()
    }

    /// How far the restore got, as a sentence without its full stop.
    pub(super) fn summary(&self, count: u64) -> String {
        let verb = if self.dry_run { "Would restore" } else { "Restored" };
        let mut text = format!("{verb} {} of {count} Redis keys", self.restored());
        for (count, why) in LEFT.map(|(ending, why)| (self.count(ending), why)) {
            if count > 0 {
                text.push_str(&format!("; {count} {why}"));
            }
        }
        text
    }
}
