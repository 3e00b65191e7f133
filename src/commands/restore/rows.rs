//! The rows of `restore`: what became of each Redis key, shown as it is known.

use std::io;

use crate::args::Output;
use crate::context::Context;
use crate::domain::record::observation::Expiry;
use crate::domain::schema::Slot;
use crate::render::change::restored;
use crate::store::backup::writer::Held;
use crate::store::{Became, Fate, StoreError};

/// Rows on their way to stdout, and their count.
pub(super) struct Rows {
    output: Output,
    dry_run: bool,
    restored: u64,
    /// Those among them whose reply was lost, and of which reading back told.
    pub read_back: u64,
    present: u64,
    /// Results beside which a lock stands.
    locked: u64,
    /// Locks whose records have a result by now.
    completed: u64,
    expired: u64,
    /// stdout may go away in the middle: the work goes on without it.
    shown: io::Result<()>,
}

impl Rows {
    pub(super) fn new(output: Output, dry_run: bool) -> Self {
        Self {
            output,
            dry_run,
            restored: 0,
            read_back: 0,
            present: 0,
            locked: 0,
            completed: 0,
            expired: 0,
            shown: Ok(()),
        }
    }

    /// Redis keys of which it is known what became.
    pub(super) fn seen(&self) -> u64 {
        self.restored + self.kept_away() + self.expired
    }

    /// Redis keys that did not come back for what stands there, or beside.
    pub(super) fn kept_away(&self) -> u64 {
        self.present + self.locked + self.completed
    }

    /// Takes a batch; gives the worst error in it: that nobody knows what became of some, else the first refusal.
    pub(super) fn add(&mut self, context: &mut Context, batch: &[Held], fates: Vec<Became>) -> Option<StoreError> {
        let mut refusal = None;
        let mut text = String::new();
        for (held, fate) in batch.iter().zip(fates) {
            match fate {
                Ok(fate) => {
                    text.push_str(&self.row(held, fate));
                    self.count(held, fate);
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

    fn row(&self, held: &Held, fate: Fate) -> String {
        let (word, left) = match fate {
            Fate::Restored(left) if self.dry_run => ("would-restore", Some(left.map_or(Expiry::Never, Expiry::In))),
            Fate::Restored(left) | Fate::FoundBack(left) => ("restored", Some(left.map_or(Expiry::Never, Expiry::In))),
            Fate::Present => ("present", None),
            Fate::Barred if is_lock(held) => ("completed", None),
            Fate::Barred => ("locked", None),
            Fate::Expired => ("expired", None),
        };
        let shown = restored::Row {
            outcome: word,
            redis_key: &held.saved.redis_key,
            schema: &held.schema,
            key: &held.key,
            state: &held.state,
            left,
        };
        let first = self.seen() == 0;
        match self.output {
            Output::Table if first => restored::heading() + &restored::line(&shown),
            Output::Table => restored::line(&shown),
            Output::Json if first => format!("{{\"format\":1,\"redis_keys\":[\n{}", restored::json(&shown)),
            Output::Json => format!(",\n{}", restored::json(&shown)),
            Output::Jsonl => restored::json(&shown) + "\n",
        }
    }

    fn count(&mut self, held: &Held, fate: Fate) {
        match fate {
            Fate::Restored(_) => self.restored += 1,
            Fate::FoundBack(_) => {
                self.restored += 1;
                self.read_back += 1;
            }
            Fate::Present => self.present += 1,
            Fate::Barred if is_lock(held) => self.completed += 1,
            Fate::Barred => self.locked += 1,
            Fate::Expired => self.expired += 1,
        }
    }

    /// Closes the document.
    pub(super) fn close(&mut self, context: &mut Context, whole: bool, left_out: u64) -> io::Result<()> {
        std::mem::replace(&mut self.shown, Ok(()))?;
        if self.output == Output::Json {
            let open = if self.seen() == 0 { "{\"format\":1,\"redis_keys\":[" } else { "\n" };
            let word = if self.dry_run { "would_restore" } else { "restored" };
            let Self { restored, present, locked, completed, expired, .. } = self;
            context.ui.data(format!(
                "{open}],\"{word}\":{restored},\"present\":{present},\"locked\":{locked},\"completed\":{completed},\
                 \"expired\":{expired},\"lines_left_out\":{left_out},\"complete\":{whole}}}\n"
            ))?;
        }
        context.ui.flush()
    }

    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// How far it got, as a sentence without its full stop.
    pub(super) fn summary(&self, count: u64) -> String {
        let verb = if self.dry_run { "Would restore" } else { "Restored" };
        let mut text = format!("{verb} {} of {count} Redis keys", self.restored);
        for (count, why) in [
            (self.present, "there already, left as they are"),
            (
                self.locked,
                "kept away by a lock: a retry is at work (--replace-locked restores the result all the same)",
            ),
            (self.completed, "kept away by a result: completed since"),
            (self.expired, "expired since"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {count} {why}"));
            }
        }
        text
    }
}

/// What keeps a lock away is a result, and the other way round.
fn is_lock(held: &Held) -> bool {
    held.beside.as_ref().is_some_and(|beside| beside.role == Slot::Result)
}
