//! The rows of `restore` and `undo`: what became of each Redis key, shown as soon as it is known.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::args::Output;
use crate::domain::as_str::as_str;
use crate::domain::record::TimeLeft;
use crate::domain::schema::{Role, Schema, State};
use crate::render::change::restored;
use crate::render::document::Streamed;
use crate::render::{escape, words};
use crate::session::Session;
use crate::store::backup::{Held, HeldKey};
use crate::store::{KeyResult, RestoreOutcome, StoreError};

pub use crate::render::change::restored::RestoredKey;

/// What became of a Redis key, in the order in which the counts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Ending {
    Restored,
    /// Nothing was there before, or what was there has expired since: an undo removed what is there
    /// now.
    Removed,
    /// It was there already.
    Present,
    /// A result, kept away by a lock beside it.
    Locked,
    /// A lock, kept away by the result that its record has by now.
    Completed,
    Expired,
    /// It is no longer what the operation left.
    Changed,
    /// Nobody knows what the operation left, or no backup holds what was before.
    Untold,
    /// No node of the cluster serves its slot as a whole, because the slot is being moved.
    Moving,
    /// The server cannot read the format of a value of its record.
    Refused,
    /// It could not be read: its node does not answer, or the Redis user may not read it.
    Unread,
}

as_str!(Ending);

/// The endings of Redis keys that did not come back, with the reasons.
const LEFT: [(Ending, &str); 9] = [
    (Ending::Present, "already present, left unchanged"),
    (
        Ending::Locked,
        "not restored because of a lock, so a retry may be running (--replace-locked restores the \
        result anyway)",
    ),
    (Ending::Completed, "not restored, because a result is stored"),
    (Ending::Expired, "expired since"),
    (Ending::Moving, "not restored, because their cluster slot is being moved"),
    (
        Ending::Refused,
        "not restored, because the server cannot read the format of their values, which come from \
        a newer Redis or another kind of server",
    ),
    (Ending::Changed, "changed since the operation, left unchanged"),
    (
        Ending::Untold,
        "left unchanged, because no backup contains them or the outcome of the operation is unknown",
    ),
    (Ending::Unread, "not restored, because they could not be read"),
];

/// How many of them a restore knows: the others are of an undo.
const OF_RESTORE: usize = 6;

/// Redis keys of one ending that are named with their errors at most.
const MAX_NAMED: u64 = 5;

/// The most records that are remembered.
const MAX_RECORDS: usize = 5;

impl Ending {
    /// The ending of a Redis key.
    fn of(key: &HeldKey, outcome: RestoreOutcome) -> Self {
        // What keeps a lock away is a result, and what keeps a result away is a lock.
        let is_lock = key.role == Some(Role::Lock);
        match outcome {
            RestoreOutcome::Restored(_) | RestoreOutcome::FoundBack(_) => Self::Restored,
            RestoreOutcome::Present => Self::Present,
            RestoreOutcome::Barred if is_lock => Self::Completed,
            RestoreOutcome::Barred => Self::Locked,
            RestoreOutcome::Expired => Self::Expired,
        }
    }

    /// True if the row of an undo has the state that its record has afterwards.
    fn is_of_current_state(self) -> bool {
        matches!(self, Self::Restored | Self::Removed | Self::Changed | Self::Untold)
    }

    /// What a look calls it that changes nothing.
    fn predicted(self) -> &'static str {
        match self {
            Self::Restored => "would-restore",
            Self::Removed => "would-remove",
            other => other.as_str(),
        }
    }
}

/// Rows on their way to stdout, and their counts.
pub struct RestoredRows {
    output: Output,
    document: Streamed,
    dry_run: bool,
    /// The operation that is taken back, where one is.
    undoes: Option<String>,
    /// So many rows are shown at most.
    most: u64,
    /// By [`Ending`].
    counts: [u64; 11],
    /// Restored Redis keys whose reply was lost: reading back showed that they are back.
    pub read_back: u64,
    /// Locks without expiry among the restored Redis keys, if somebody has to remove them.
    endless: u64,
    /// For each known schema: true if somebody has to remove a lock without TTL.
    needs_ttl: HashMap<String, bool>,
    /// The first records that came back: schema and idempotency key.
    records: Vec<(String, Vec<u8>)>,
    /// The error of a stdout that went away: the work goes on without it.
    shown: io::Result<()>,
}

impl RestoredRows {
    pub fn new(output: Output, dry_run: bool) -> Self {
        let document = Streamed::new("redis_keys");
        Self {
            output,
            document,
            dry_run,
            undoes: None,
            most: u64::MAX,
            counts: [0; 11],
            read_back: 0,
            endless: 0,
            needs_ttl: HashMap::new(),
            records: Vec::new(),
            shown: Ok(()),
        }
    }

    /// The same for taking an operation back.
    #[must_use]
    pub fn of_undo(self, op: &str) -> Self {
        Self { undoes: Some(op.to_owned()), ..self }
    }

    /// The same, which knows which locks are meant to have no TTL.
    #[must_use]
    pub fn knowing(self, schemas: &[Arc<Schema>]) -> Self {
        let mut needs_ttl = HashMap::new();
        for schema in schemas {
            needs_ttl.insert(schema.name.clone(), schema.locks_need_ttl());
        }
        Self { needs_ttl, ..self }
    }

    /// The same, which shows no more rows than these.
    #[must_use]
    pub fn showing(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// What a look counted, as the end of a run that had nothing to change.
    #[must_use]
    pub fn changed_nothing(&self) -> Self {
        let rows = Self {
            counts: self.counts,
            undoes: self.undoes.clone(),
            ..Self::new(self.output, false)
        };
        rows.showing(0)
    }

    /// Warns before a change that brings back locks which only a person ends.
    pub fn warn_of_endless(&self, session: &mut Session) {
        if self.endless > 0 {
            let locks = words::counted(self.endless, "lock");
            session.ui.warning(&format!(
                "{locks} without expiry and without a result: each may block its key until it is \
                removed"
            ));
        }
    }

    /// The schema and idempotency key of the records that came back, at most a few.
    pub fn records(&self) -> &[(String, Vec<u8>)] {
        &self.records
    }

    fn count(&self, ending: Ending) -> u64 {
        self.counts[ending as usize]
    }

    /// Redis keys whose ending is known.
    pub fn seen(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Redis keys that were changed.
    pub fn restored(&self) -> u64 {
        self.count(Ending::Restored) + self.count(Ending::Removed)
    }

    /// Redis keys that did not come back because of what stands at them, or beside them.
    pub fn kept_away(&self) -> u64 {
        self.seen() - self.restored() - self.count(Ending::Expired)
    }

    /// True if a Redis key did not come back because of its node: a later run may bring it back.
    pub fn may_go_on(&self) -> bool {
        self.count(Ending::Moving) + self.count(Ending::Refused) + self.count(Ending::Unread) > 0
    }

    /// Names a Redis key that did not come back because of an error. Called before its row is
    /// added.
    pub fn say_error(
        &self,
        session: &mut Session,
        ending: Ending,
        redis_key: &[u8],
        error: &StoreError,
    ) {
        if self.count(ending) < MAX_NAMED {
            session.ui.warning(&format!("{}: {error}", escape::text(redis_key)));
        }
    }

    /// Takes a batch; gives the worst error in the batch: an unknown outcome, else the first
    /// refusal. A Redis key whose slot is being moved, or whose value the server cannot read, is
    /// told of in its row: the others may do well.
    pub fn add(
        &mut self,
        session: &mut Session,
        batch: &[Held],
        outcomes: Vec<KeyResult>,
    ) -> Option<StoreError> {
        let mut refusal = None;
        let mut text = String::new();
        for ((held, key), outcome) in keys_of(batch).zip(outcomes) {
            let (ending, outcome) = match outcome {
                Ok(outcome) => {
                    self.read_back += u64::from(matches!(outcome, RestoreOutcome::FoundBack(_)));
                    (Ending::of(key, outcome), Some(outcome))
                }
                Err(error) => {
                    let ending = if error.is_of_the_slot() {
                        Ending::Moving
                    } else if error.is_of_the_payload() {
                        Ending::Refused
                    } else {
                        refusal = StoreError::prefer_unknown_outcome_or_first(refusal, Some(error));
                        continue;
                    };
                    self.say_error(session, ending, &key.saved.redis_key, &error);
                    (ending, None)
                }
            };
            let row = row_of(held, key, outcome);
            text.push_str(&self.row(row, ending, session.ui.view().width));
        }
        self.show(session, text);
        refusal
    }

    /// Takes one Redis key.
    pub fn add_one(&mut self, session: &mut Session, row: RestoredKey<'_>, ending: Ending) {
        let text = self.row(row, ending, session.ui.view().width);
        self.show(session, text);
    }

    fn show(&mut self, session: &mut Session, text: String) {
        if self.shown.is_ok() && !text.is_empty() {
            self.shown = session.ui.data(text).and_then(|()| session.ui.flush());
        }
    }

    /// Counts a row, and gives its text where the row is shown.
    fn row(&mut self, row: RestoredKey<'_>, ending: Ending, width: Option<usize>) -> String {
        let seen = self.seen();
        let comes_back = row.becomes.unwrap_or(row.state);
        if ending == Ending::Restored
            && row.left == Some(TimeLeft::NoExpiry)
            && comes_back == State::InProgress.as_str()
        {
            // Of an unknown schema, nobody knows whether anything else ends such a lock.
            let needs_ttl = self.needs_ttl.get(row.schema).copied().unwrap_or(true);
            self.endless += u64::from(needs_ttl);
        }
        if matches!(ending, Ending::Restored | Ending::Removed)
            && self.records.len() < MAX_RECORDS
            && !self.records.iter().any(|(schema, key)| schema == row.schema && key == row.key)
        {
            self.records.push((row.schema.to_owned(), row.key.to_vec()));
        }
        self.counts[ending as usize] += 1;
        if seen >= self.most {
            return String::new();
        }
        let row = RestoredKey {
            outcome: if self.dry_run { ending.predicted() } else { ending.as_str() },
            ..row
        };
        match self.output {
            Output::Text => {
                let is_undo = self.undoes.is_some();
                let heading = if seen == 0 { restored::heading(is_undo) } else { String::new() };
                // The state in a backup is not that of a record which the backup does not change.
                let state = if !is_undo || ending.is_of_current_state() {
                    row.becomes.unwrap_or(row.state)
                } else {
                    "-"
                };
                // `undo --yes` prints the plan too, and then does it.
                let outcome = row.outcome.trim_start_matches("would-");
                heading + &restored::line(&RestoredKey { outcome, ..row }, state, width)
            }
            Output::Json => self.document.before_value() + &restored::json(&row),
            Output::Jsonl => restored::json(&row) + "\n",
        }
    }

    /// Passes if stdout took every row so far. The error is the first of stdout's.
    pub fn were_shown(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.shown, Ok(()))
    }

    /// Closes the document; fails as [`RestoredRows::were_shown`] does.
    pub fn close(&mut self, session: &mut Session, whole: bool, left_out: u64) -> io::Result<()> {
        self.were_shown()?;
        if self.output == Output::Json {
            let of_all = self.of_all(whole, left_out);
            session.ui.data(self.document.end(&of_all))?;
        }
        session.ui.flush()
    }

    fn of_all(&self, whole: bool, left_out: u64) -> Map<String, Value> {
        let field = |ending: Ending, predicted: &str| {
            (
                if self.dry_run { predicted } else { ending.as_str() }.to_owned(),
                Value::from(self.count(ending)),
            )
        };
        let mut of_all: Map<_, _> =
            [field(Ending::Restored, "would_restore")].into_iter().collect();
        if self.undoes.is_some() {
            of_all.extend([field(Ending::Removed, "would_remove")]);
        }
        of_all.extend(self.left().map(|(ending, _)| field(ending, ending.as_str())));
        of_all.insert("lines_left_out".to_owned(), left_out.into());
        if let Some(op) = &self.undoes {
            of_all.insert("undoes".to_owned(), op.as_str().into());
        }
        of_all.insert("complete".to_owned(), whole.into());
        of_all
    }

    fn left(&self) -> impl Iterator<Item = (Ending, &'static str)> {
        let count = if self.undoes.is_some() { LEFT.len() } else { OF_RESTORE };
        LEFT.into_iter().take(count)
    }

    /// How one goes on after an end in the middle. Without its name an undo would be of whatever is
    /// the last operation then.
    pub fn goes_on(&self) -> String {
        let command = match &self.undoes {
            Some(op) => format!("run `idemctl undo {}` with the same options", escape::again(op)),
            None => "run the same command again".to_owned(),
        };
        format!("{command} to continue; keys that were restored stay as they are")
    }

    /// How far it got, as a sentence without its full stop.
    pub fn summary(&self, count: u64) -> String {
        let verb = match (&self.undoes, self.dry_run) {
            (Some(_), true) => "Would revert",
            (Some(_), false) => "Reverted",
            (None, true) => "Would restore",
            (None, false) => "Restored",
        };
        let keys = words::counted(count, "Redis key");
        let mut text = format!("{verb} {} of {keys}", self.restored());
        for (count, why) in self.left().map(|(ending, why)| (self.count(ending), why)) {
            if count > 0 {
                text.push_str(&format!("; {count} {why}"));
            }
        }
        text
    }
}

/// The Redis keys of a batch, each with its record.
pub(super) fn keys_of(batch: &[Held]) -> impl Iterator<Item = (&Held, &HeldKey)> {
    batch.iter().flat_map(|held| held.keys.iter().map(move |key| (held, key)))
}

fn row_of<'a>(
    held: &'a Held,
    key: &'a HeldKey,
    outcome: Option<RestoreOutcome>,
) -> RestoredKey<'a> {
    let left = match outcome {
        Some(RestoreOutcome::Restored(left) | RestoreOutcome::FoundBack(left)) => {
            Some(left.map_or(TimeLeft::NoExpiry, TimeLeft::Millis))
        }
        _ => None,
    };
    RestoredKey {
        outcome: "",
        redis_key: &key.saved.redis_key,
        schema: &held.name.schema,
        key: &held.name.key,
        state: &held.state,
        becomes: None,
        left,
    }
}
