//! Changes to the records of this run's own keys: the faults of `--faults`, and the removal of the
//! records at the end. Each change compares with the record as it was read, backs it up, and is noted
//! in the audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::records::{RecordLookup, present_keys};
use crate::args::{ChangeArgs, ConfirmArgs};
use crate::change::{Journal, JournalStep};
use crate::domain::history::OUTCOME_UNKNOWN;
use crate::domain::probe::RecordFault;
use crate::domain::record::age::millis;
use crate::domain::record::{Content, Record};
use crate::domain::schema::State;
use crate::render::escape;
use crate::session::Session;
use crate::store::backup::RecordLabel;
use crate::store::{Change, GuardedOutcome, KeyAction, Outcome, Writer, set_words};

/// What `ReplaceResult` writes. No schema has such a value.
const FOREIGN: &[u8] = b"idemctl probe: not a record";

/// The TTL of that value, whatever the result had. It must not expire before it is read again, but
/// end by itself if idemctl is killed.
const FOREIGN_TTL: Duration = Duration::from_secs(600);

/// How many keys are looked up at a time, so few that other clients do not wait.
const KEYS_AT_A_TIME: usize = 50;

/// The time in which a handler that was left running may still store its result.
const CALM: Duration = Duration::from_millis(300);

/// Changes records of keys that this run sent.
pub(super) struct RecordChanges {
    records: RecordLookup,
    writer: Writer,
    journal: Journal,
    /// The keys of the requests, all without quotation marks, before they are sent.
    pub(super) sent: BTreeSet<String>,
    /// Those that the service answered with a success, and has probably stored.
    pub(super) answered: BTreeSet<String>,
    /// The keys of the records that were found.
    found: BTreeSet<String>,
    /// When the first value was replaced by `FOREIGN`.
    first_replaced: Option<Instant>,
    began: (SystemTime, Instant),
}

/// How the removal at the end went.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// How many records were removed.
    pub(super) removed: usize,
    /// The keys whose records are still there, or may be, and why.
    pub(super) kept: BTreeMap<String, String>,
    /// The keys that the service answered with a success, and of which no record was found.
    pub(super) not_found: Vec<String>,
    /// The file with the removed records.
    pub(super) backup: Option<String>,
    /// Why something is not in the audit log or the backup.
    pub(super) problem: Option<String>,
}

impl Removal {
    /// The removal as JSON.
    pub(super) fn json(&self) -> Value {
        let kept = self.kept.iter().map(|(key, why)| json!({ "key": key, "why": why }));
        json!({
            "removed": self.removed,
            "kept": kept.collect::<Vec<_>>(),
            "not_found": self.not_found,
            "backup": self.backup,
        })
    }
}

impl RecordChanges {
    /// Connects for changes, and opens the backup and the audit log.
    ///
    /// # Errors
    /// The context permits no changes; else those of a connection, or of a file.
    pub(super) async fn open(session: &mut Session, records: RecordLookup) -> Result<Self> {
        let confirm_args = ConfirmArgs {
            reason: Some("records of probe's own keys".to_owned()),
            ..ConfirmArgs::default()
        };
        let writer = session.connect_writer(&confirm_args).await?;
        let args = ChangeArgs { confirm_args, ..ChangeArgs::default() };
        let journal = Journal::open(session, &args, "probe", true)?;
        Ok(Self {
            records,
            writer,
            journal,
            sent: BTreeSet::new(),
            answered: BTreeSet::new(),
            found: BTreeSet::new(),
            first_replaced: None,
            began: (session.now(), Instant::now()),
        })
    }

    fn now(&self) -> SystemTime {
        self.began.0 + self.began.1.elapsed()
    }

    /// Makes a fault in the one record of this key.
    ///
    /// # Errors
    /// Why it was not made, or may not have been.
    pub(super) async fn make(&mut self, key: &str, fault: RecordFault) -> Result<(), String> {
        let record = self.record_of(key).await?;
        let (wanted, key_index) = match fault {
            RecordFault::ExpireLock => (State::InProgress, record.schema.lock_key_index()),
            RecordFault::ExpireResult | RecordFault::ReplaceResult => {
                (State::Completed, record.schema.result_key_index())
            }
        };
        if record.state != wanted {
            return Err(format!("it was {} when idemctl read it", record.state.as_str()));
        }
        match fault {
            RecordFault::ExpireLock | RecordFault::ExpireResult => {
                self.apply(&record, vec![key_index], KeyAction::Remove, "removed").await
            }
            RecordFault::ReplaceResult => self.replace(&record, key_index).await,
        }
    }

    /// Removes the value of `ReplaceResult`. True if it was still there.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(super) async fn take_back(&mut self, key: &str) -> Result<bool, String> {
        for found in self.records.find(&[key]).await? {
            if let Some(why) = found.why_unread {
                return Err(why.to_string());
            }
            for record in &found.records {
                let Some(key_index) = foreign_index(record) else { continue };
                // The removal at the end tries it again.
                let _ = self.apply(record, vec![key_index], KeyAction::Remove, "removed").await;
                return Ok(true);
            }
        }
        // An expired value shows nothing about the service. No test waits that long.
        match self.first_replaced.is_some_and(|since| since.elapsed() >= FOREIGN_TTL) {
            true => Err("the value of idemctl may have expired before it was read".to_owned()),
            false => Ok(false),
        }
    }

    /// The one record of this key, which the service made.
    ///
    /// # Errors
    /// There is none, or several, or idemctl does not change it.
    async fn record_of(&mut self, key: &str) -> Result<Record, String> {
        let mut own: Option<Record> = None;
        let mut why = "no Redis key of this schema exists for this key".to_owned();
        for found in self.records.find(&[key]).await? {
            if let Some(why) = found.why_unread {
                return Err(why.to_string());
            }
            for record in found.records {
                let redis_key = &record.seen.keys[0].redis_key;
                if record.author.is_foreign() {
                    if !present_keys(&record).is_empty() {
                        why = format!("{} does not recognise its value", record.schema.name);
                    }
                } else if own.as_ref().is_some_and(|own| own.seen.keys[0].redis_key != *redis_key) {
                    return Err("the key has several records".to_owned());
                } else {
                    own = Some(record);
                }
            }
        }
        let record = own.ok_or(why)?;
        self.check_own(&record)?;
        self.found.insert(bare(&record.key));
        Ok(record)
    }

    /// Passes a record that only this run can have made. A lookup also reads a key as the name of a
    /// Redis key, so a record that it finds may have another key.
    ///
    /// # Errors
    /// Why it stays as it is.
    fn check_own(&self, record: &Record) -> Result<(), String> {
        match self.sent.contains(&bare(&record.key)) {
            true => Ok(()),
            false => Err("this run did not send its key".to_owned()),
        }
    }

    async fn apply(
        &mut self,
        record: &Record,
        key_indexes: Vec<usize>,
        action: KeyAction,
        what: &'static str,
    ) -> Result<(), String> {
        let change = Change::new(key_indexes, record.seen.clone(), RecordLabel::of(record));
        let now = self.now();
        let (outcomes, ended) =
            self.journal.apply(&self.writer, &[change], action, what, now).await;
        match (outcomes.first(), ended) {
            (Some(outcome), _) if outcome.is_done() => Ok(()),
            (Some(outcome), Ok(())) => Err(in_words(*outcome).to_owned()),
            (_, Err(error)) => Err(format!("{error:#}")),
            (None, Ok(())) => Err("nothing was sent".to_owned()),
        }
    }

    async fn replace(&mut self, record: &Record, key_index: usize) -> Result<(), String> {
        let label = RecordLabel::of(record);
        let now = self.now();
        let key = &record.seen.keys[key_index];
        let content = Content::text(FOREIGN.to_vec());
        let Some(words) = set_words(&key.redis_key, &content, Some(millis(FOREIGN_TTL))).pop()
        else {
            return Err("there is no command for it".to_owned());
        };
        self.journal
            .back_up(&self.writer, &record.seen, &label, now)
            .await
            .map_err(|error| format!("{error:#}"))?;
        self.first_replaced.get_or_insert_with(Instant::now);
        let hash_key_indexes = record.schema.hash_key_indexes();
        let made = self.writer.call(&record.seen, None, words, &hash_key_indexes).await;
        let (after, outcome, what) = match made {
            Ok(GuardedOutcome::Made { reply: Ok(_), after, .. }) => {
                (Some(after), Ok(()), "replaced")
            }
            Ok(GuardedOutcome::Made { reply: Err(error), .. }) | Err(error) => {
                self.journal.nothing_changed();
                return Err(error.to_string());
            }
            Ok(GuardedOutcome::ChangedMeanwhile) => {
                self.journal.nothing_changed();
                return Err(in_words(Outcome::ChangedMeanwhile).to_owned());
            }
            Ok(GuardedOutcome::Lost { why, .. }) => (None, Err(why.to_string()), OUTCOME_UNKNOWN),
        };
        let step =
            JournalStep { label: &label, before: &record.seen, after: after.as_ref(), key_index };
        let noted = self.journal.note_step(&self.writer, step, what, now).await;
        outcome?;
        noted.map_err(|error| format!("{error:#}"))
    }

    /// Removes the records of all keys that this run sent, each only if it is as it was read.
    pub(super) async fn remove_all(mut self) -> Removal {
        let mut removal = Removal::default();
        let sent = self.sent.clone();
        let keys: Vec<&str> = sent.iter().map(String::as_str).collect();
        if !keys.is_empty() {
            sleep(CALM).await;
            for keys in keys.chunks(KEYS_AT_A_TIME) {
                self.remove(keys, &mut removal).await;
            }
            self.look_again(&keys, &mut removal).await;
            removal.not_found = self.answered.difference(&self.found).cloned().collect();
        }
        let (backup, ended) =
            self.journal.close(Ok(()), self.began.0 + self.began.1.elapsed()).await;
        removal.backup = backup.map(|file| file.display().to_string());
        if let Err(error) = ended {
            removal.problem = Some(format!("{error:#}"));
        }
        removal
    }

    async fn remove(&mut self, keys: &[&str], removal: &mut Removal) {
        let found = match self.records.find(keys).await {
            Ok(found) => found,
            Err(why) => {
                for key in keys {
                    self.note_unread(key.as_bytes(), &why, removal);
                }
                return;
            }
        };
        let mut changes = Vec::new();
        let mut seen = BTreeSet::new();
        for found in found {
            for record in found.records {
                let name = escape::text(&record.key);
                self.found.insert(bare(&record.key));
                // Two schemas may have this Redis key.
                if !seen.insert(record.seen.keys[0].redis_key.clone()) {
                    continue;
                }
                match self.removal_of(&record).await {
                    Ok(change) => changes.push((name, change)),
                    Err(why) => drop(removal.kept.insert(name, why)),
                }
            }
            if let Some(why) = found.why_unread {
                self.note_unread(&found.given, &why.to_string(), removal);
            }
        }
        let (names, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let now = self.now();
        let (outcomes, ended) =
            self.journal.apply(&self.writer, &changes, KeyAction::Remove, "removed", now).await;
        let why = match &ended {
            Ok(()) => "it was not tried".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        for (place, name) in names.into_iter().enumerate() {
            match outcomes.get(place) {
                Some(outcome) if outcome.is_done() => removal.removed += 1,
                Some(Outcome::Gone) => {}
                Some(outcome) => drop(removal.kept.insert(name, in_words(*outcome).to_owned())),
                None => drop(removal.kept.insert(name, why.clone())),
            }
        }
        if let Err(error) = ended {
            removal.problem = Some(format!("{error:#}"));
        }
    }

    /// Notes a key whose record cannot be read.
    fn note_unread(&mut self, key: &[u8], why: &str, removal: &mut Removal) {
        let key = bare(key);
        removal.kept.insert(escape::text(key.as_bytes()), why.to_owned());
        self.found.insert(key);
    }

    /// The change that removes a record.
    ///
    /// # Errors
    /// Why the record stays.
    async fn removal_of(&self, record: &Record) -> Result<Change, String> {
        self.check_own(record)?;
        if record.author.is_foreign() && foreign_index(record).is_none() {
            return Err("its value is not one of the schema".to_owned());
        }
        let keys = record.seen.keys.iter().enumerate();
        let there = keys.filter(|(_, key)| !key.content.is_absent()).map(|(index, _)| index);
        let mut change = Change::new(there.collect(), record.seen.clone(), RecordLabel::of(record));
        match self.writer.split_off_other_slots(&mut change).await {
            Ok(others) if others.is_empty() => Ok(change),
            Ok(_) => Err("its Redis keys are in several slots of the cluster".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Finds records that are still there, or there again.
    async fn look_again(&mut self, keys: &[&str], removal: &mut Removal) {
        for keys in keys.chunks(KEYS_AT_A_TIME) {
            // What cannot be read now is known from the removal.
            let Ok(found) = self.records.find(keys).await else { continue };
            for record in found.into_iter().flat_map(|found| found.records) {
                let why = "it was written after idemctl had removed it".to_owned();
                removal.kept.entry(escape::text(&record.key)).or_insert(why);
            }
        }
    }
}

/// A key without the quotation marks that a service may store with it.
fn bare(key: &[u8]) -> String {
    String::from_utf8_lossy(key).trim_matches('"').to_owned()
}

/// The index of the Redis key that holds the value of `ReplaceResult`. No other run has this key.
fn foreign_index(record: &Record) -> Option<usize> {
    let mut keys = record.seen.keys.iter();
    keys.position(|key| matches!(&key.content, Content::Text { head, .. } if head == FOREIGN))
}

/// Why a change was not made, in words.
fn in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::ChangedMeanwhile => "it changed after idemctl had read it",
        Outcome::Gone => "it no longer existed when idemctl tried to change it",
        Outcome::NotMade => "its node refused the change or did not answer",
        _ => "it is unknown whether all of it was changed",
    }
}
