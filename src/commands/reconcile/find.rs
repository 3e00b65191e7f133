//! The locks that are reconciled: of a scan, or of the keys that the operator named.

use std::collections::HashMap;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::lock::{Fate, Hold, ReconciledLock};
use crate::domain::diagnosis::Thresholds;
use crate::domain::history::{EXTENDED, RECONCILE};
use crate::domain::reconcile::{Eligibility, eligibility, reconcilable};
use crate::domain::record::{
    Candidate, GivenKey, Identity, KeyIdentity, KeyState, Record, ValueField, locate,
};
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::schema::{Catalog, State};
use crate::domain::select::{Coverage, Missing, Selected, Selection};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::owner_check::{OwnerAnswer, OwnerCheck};
use crate::render::{columns, document, escape, name, record_json};
use crate::scan::{Lengths, RecordFilter, Scan, ScanQuery};
use crate::session::Session;
use crate::session::operations::unreadable;
use crate::store::audit::expiries;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{ReadLimit, RecordReader, StoreError};

/// Locks that are reconciled in one run. All of them are in memory, and are held at the same time.
pub(super) const MOST: usize = 10_000;

/// Locks that are read at a time, so few that other clients do not wait.
const PAGE: usize = 200;

/// What is searched.
pub(super) struct LockSearch<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) selection: Selection,
    pub(super) older_than_ms: u64,
    pub(super) extensions: Extensions,
    /// True if the owners of all locks are asked for, so that also young ones matter.
    pub(super) asks_owners: bool,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) locks: Vec<ReconciledLock>,
    pub(super) left_out: Vec<UnreconciledKey>,
    /// Locks that are known to be younger.
    pub(super) young: u64,
    /// Locks that only their deadlines make younger. A run with another audit log may have extended
    /// them.
    pub(super) young_by_deadline: u64,
    /// Locks that wait for what --owner-alive says about their owners.
    waiting: Vec<CheckedLock>,
    /// Locks that a scan found and whose owners are alive.
    pub(super) alive: u64,
    /// Locks that end later than their TTL allows.
    pub(super) renewed: u64,
    /// Redis keys that were scanned, or keys that were looked up.
    pub(super) keys: u64,
    pub(super) coverage: Coverage,
    /// A warning about records that the Redis user may not read.
    pub(super) forbidden: Option<String>,
    /// Why some nodes of a cluster could not be read.
    pub(super) unreachable: Option<StoreError>,
    /// True if a scan found the locks.
    pub(super) is_scan: bool,
    /// The index of the key that names a record, by the record's first Redis key.
    pub(super) named_by: HashMap<Vec<u8>, usize>,
}

/// A lock, and whether it is reconciled.
struct CheckedLock {
    record: Record,
    key_index: usize,
    eligibility: Eligibility,
    /// The deadline before earlier runs extended it, in milliseconds since the epoch.
    former_ms: Option<u64>,
    /// True if its deadline is not that of its worker.
    is_extended: bool,
}

/// A key whose lock is not reconciled, and why.
pub(super) struct UnreconciledKey {
    pub(super) key: Vec<u8>,
    pub(super) schema: Option<String>,
    pub(super) why: String,
}

/// The deadlines that locks had before earlier runs of `reconcile` extended them, from the audit
/// log.
#[derive(Default)]
pub(super) struct Extensions {
    own: HashMap<Vec<u8>, Vec<(KeyIdentity, KeyIdentity)>>,
    /// The deadlines that other commands gave.
    by_hand: HashMap<Vec<u8>, Vec<KeyIdentity>>,
}

impl Extensions {
    /// Reads the expiries that operators gave.
    ///
    /// # Errors
    /// Usage: it exists and cannot be read.
    pub(super) fn read(session: &Session) -> Result<Self, CommandError> {
        let Ok(folder) = session.settings.audit_dir() else { return Ok(Self::default()) };
        let mut extensions = Self::default();
        for entry in expiries::read(&folder).map_err(|error| unreadable(&folder, &error))? {
            let redis_key = entry.redis_key_bytes();
            let Some(after) = entry.after.filter(|_| entry.what == EXTENDED) else { continue };
            if entry.command != RECONCILE {
                extensions.by_hand.entry(redis_key).or_default().push(after);
            } else if let Some(before) = entry.before {
                extensions.own.entry(redis_key).or_default().push((before, after));
            }
        }
        Ok(extensions)
    }

    /// True if an operator gave the lock its current deadline by another command, or the one before
    /// earlier runs extended it.
    fn is_by_hand(&self, lock: &KeyState, former_ms: Option<u64>) -> bool {
        let Some(given) = self.by_hand.get(&lock.redis_key) else { return false };
        given.iter().any(|after| {
            let is_former = match (after.expires_at_ms(), former_ms) {
                (Some(at), Some(former)) => at.abs_diff(former) <= SLACK_MS,
                _ => false,
            };
            is_former || after.is_still(lock)
        })
    }

    /// The deadline that the lock had before earlier runs extended it, in milliseconds since the
    /// epoch; `None` if its current deadline is not one that a run gave it.
    fn former_ms(&self, lock: &KeyState) -> Option<u64> {
        let all = self.own.get(&lock.redis_key)?;
        let (before, _) = all.iter().rev().find(|(_, after)| after.is_still(lock))?;
        let mut first = before;
        // The latest extension may have followed others, each of which is in the log once.
        for _ in 0..all.len() {
            let Some(at) = first.expires_at_ms() else { break };
            let earlier = all.iter().rev().find(|(_, after)| {
                after.has_same_value(first)
                    && after.expires_at_ms().is_some_and(|given| given.abs_diff(at) <= SLACK_MS)
            });
            match earlier {
                Some((before, _)) => first = before,
                None => break,
            }
        }
        first.expires_at_ms()
    }
}

/// Why a lock is left that an operator extended.
const EXTENDED_BY_HAND: &str = "an operator extended it, so its worker may be alive";

/// Why a key of a provider's file is left that names a record in another way.
const NOT_A_KEY: &str = "no record has this idempotency key";

/// The deadline in the log was computed, and differs by at most this from the one that was read.
const SLACK_MS: u64 = 2;

/// Why a young lock is left.
const YOUNG: &str = "it is younger than --older-than";

/// Selects locks, and records whose beginning does not tell.
struct LocksOnly<'a>(&'a Selection);

impl RecordFilter for LocksOnly<'_> {
    type Plan = ();

    fn passes_key(&self, key: &[u8]) -> bool {
        self.0.passes_key(key)
    }

    fn select(&self, record: &Record) -> Selected {
        if record.is_undecided() {
            return Selected::Unproven(Missing::Format);
        }
        // A lock whose contained expiry has passed is absent for its service; it is named and left.
        if record.state == State::InProgress
            || record.lock_contains_expiry() && !record.state.is_result()
        {
            return self.0.selects(record);
        }
        Selected::No
    }
}

impl LockSearch<'_> {
    /// Finds the locks by a scan of the keyspace.
    ///
    /// # Errors
    /// The server could not be asked; Ctrl-C; usage: there are too many locks.
    pub(super) async fn scan(
        &self,
        session: &mut Session,
        reader: RecordReader,
        interrupt: &Interrupt,
    ) -> Result<Found> {
        let mut needed = self.selection.needed_fields();
        needed.insert(ValueField::Time);
        let query = ScanQuery {
            catalog: self.catalog,
            thresholds: Thresholds::default(),
            first_read: ReadLimit::Bytes(LOCK_BYTES),
            needed,
            lengths: Lengths::None,
        };
        let progress = session.ui.progress("keys scanned");
        let mut scan = Scan::start(reader.clone(), query, interrupt, progress).await?;
        let mut found = Found { is_scan: true, ..Found::default() };
        let filter = LocksOnly(&self.selection);
        let mut reader = reader;
        while let Some(page) = scan.next_page(&filter).await {
            let mut candidates = Vec::new();
            let mut identities = Vec::new();
            for (record, ()) in page.selected {
                identities.push(Identity::of(&record.seen));
                candidates.push(Candidate::from(record));
            }
            self.add_all(&mut reader, candidates, &identities, &mut found).await?;
            if found.locks.len() > MOST {
                return Err(CommandError::usage(format!(
                    "more than {MOST} locks would be reconciled"
                ))
                .hint("narrow the selection, for example with --match")
                .into());
            }
        }
        scan.require_end()?;
        let report = scan.finish();
        if let Some(forbidden) = &report.forbidden {
            session.ui.warning(forbidden);
        }
        found.forbidden = report.forbidden;
        found.keys = report.keys;
        found.coverage = report.coverage;
        if let crate::scan::ScanEnd::Incomplete(error) = report.end {
            found.unreachable = Some(error);
        }
        Ok(found)
    }

    /// Reads the records that a scan found once more, whole.
    async fn add_all(
        &self,
        reader: &mut RecordReader,
        candidates: Vec<Candidate>,
        identities: &[Identity],
        found: &mut Found,
    ) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> =
            candidates.iter().map(|candidate| candidate.redis_keys.clone()).collect();
        let read = reader.read_or_fail(&wanted, ReadLimit::Whole).await?;
        for ((candidate, identity), seen) in candidates.into_iter().zip(identities).zip(read) {
            let seen = match seen {
                Ok(seen) => seen,
                Err(error) => {
                    let (key, why) = (candidate.key, error.to_string());
                    found.left_out.push(UnreconciledKey { key, schema: None, why });
                    continue;
                }
            };
            if identity.differs(&seen) {
                // It ended, or its worker lives. Neither is a lock that was forgotten.
                found.young += 1;
                continue;
            }
            let thresholds = Thresholds::default();
            if let Some(record) = locate::first_record(self.catalog, candidate, seen, &thresholds) {
                self.add(record, found);
            }
        }
        Ok(())
    }

    /// Finds the locks of keys that the operator or a provider's file named. A provider does not know
    /// Redis keys, so those of its file are only idempotency keys (`is_provided`).
    ///
    /// # Errors
    /// The server could not be asked.
    pub(super) async fn look_up(
        &self,
        reader: &mut RecordReader,
        keys: &[GivenKey],
        is_provided: bool,
    ) -> Result<Found> {
        let lookup = Lookup {
            first_read: ReadLimit::Whole,
            thresholds: Thresholds::default(),
            includes_less_specific_results: false,
            keeps_unrecognised: true,
        };
        let mut found = Found { keys: keys.len() as u64, ..Found::default() };
        for (page, some) in keys.chunks(PAGE).enumerate() {
            let results = lookup.find(reader, self.catalog, some.to_vec()).await?;
            for (index, mut result) in results.into_iter().enumerate() {
                let record = match record_of(&mut result, self.catalog, is_provided) {
                    Ok(record) => record,
                    Err(why) => {
                        let (key, schema) = (result.given, None);
                        found.left_out.push(UnreconciledKey { key, schema, why });
                        continue;
                    }
                };
                let redis_key = record.seen.keys[0].redis_key.clone();
                if found.named_by.insert(redis_key, page * PAGE + index).is_some() {
                    continue;
                }
                match self.selection.selects(&record) {
                    Selected::Yes(()) => self.add(record, &mut found),
                    _ => found.leave(&record, "the options exclude it".to_owned()),
                }
            }
        }
        Ok(found)
    }

    fn add(&self, record: Record, found: &mut Found) {
        let key_index = match reconcilable(&record) {
            Ok(key_index) => key_index,
            Err(why) => return found.leave(&record, why),
        };
        let lock = &record.seen.keys[key_index];
        let former_ms = self.extensions.former_ms(lock);
        // Whoever extends a lock by hand may know that its worker is alive.
        let is_by_hand = self.extensions.is_by_hand(lock, former_ms);
        let mut eligibility = if is_by_hand {
            Eligibility::Left(EXTENDED_BY_HAND.to_owned())
        } else {
            eligibility(&record, key_index, self.older_than_ms, former_ms)
        };
        // The log has the deadline that it had before.
        if eligibility == Eligibility::YoungByDeadline && former_ms.is_some() {
            eligibility = Eligibility::Young;
        }
        let is_extended = is_by_hand || former_ms.is_some();
        let lock = CheckedLock { record, key_index, eligibility, former_ms, is_extended };
        if self.asks_owners {
            found.waiting.push(lock);
        } else {
            found.settle(lock);
        }
    }
}

impl Found {
    fn leave(&mut self, record: &Record, why: String) {
        let (key, schema) = (record.key.clone(), Some(record.schema.name.clone()));
        self.left_out.push(UnreconciledKey { key, schema, why });
    }

    /// Takes a lock, or notes why not.
    fn settle(&mut self, lock: CheckedLock) {
        let CheckedLock { record, key_index, eligibility, former_ms, is_extended } = lock;
        let why = match eligibility {
            Eligibility::Taken(because) => {
                let question = question(&record, is_extended);
                // An earlier run was ended before it could give the lock its deadline back.
                let deadline = record.seen.keys[key_index].deadline;
                let hold = match (former_ms, deadline.millis()) {
                    (Some(former_ms), Some(until_ms)) => Hold::Extended { former_ms, until_ms },
                    _ => Hold::None,
                };
                self.locks.push(ReconciledLock {
                    record,
                    key_index,
                    read_at: Instant::now(),
                    because,
                    question,
                    hold,
                    lost_until_ms: None,
                    earlier_ms: Vec::new(),
                    not_back: None,
                    answer: None,
                    untested: None,
                    fate: Fate::Open,
                });
                return;
            }
            Eligibility::YoungByDeadline => {
                self.young_by_deadline += 1;
                YOUNG.to_owned()
            }
            Eligibility::Young => YOUNG.to_owned(),
            Eligibility::Renewed(why) => {
                self.renewed += 1;
                return self.leave(&record, why);
            }
            Eligibility::Left(why) => return self.leave(&record, why),
        };
        // If the operator named this key, the report says why it is left alone.
        if self.is_scan {
            self.young += 1;
        } else {
            self.leave(&record, why);
        }
    }

    /// Asks whether the owners of the locks are alive. A dead owner makes a lock old, and a living
    /// one keeps it. An owner of whom nothing is known counts as alive.
    ///
    /// # Errors
    /// Usage: the command cannot be run.
    pub(super) async fn ask_owners(&mut self, owners: &mut OwnerCheck) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        owners.ask(waiting.iter().map(|lock| &lock.record)).await?;
        for mut lock in waiting {
            let answer = lock.record.owner().map(|owner| owners.answer(&lock.record, owner));
            lock.eligibility = match answer {
                None => lock.eligibility,
                Some(OwnerAnswer::Dead) => Eligibility::Taken("its owner is dead".to_owned()),
                // The operator named this key, so the report says why it is left alone.
                Some(OwnerAnswer::Alive) if !self.is_scan => {
                    Eligibility::Left("its owner is alive".to_owned())
                }
                Some(OwnerAnswer::Alive) => {
                    self.alive += 1;
                    continue;
                }
                Some(OwnerAnswer::Unknown(why)) => {
                    Eligibility::Left(format!("--owner-alive gave no result ({why})"))
                }
            };
            self.settle(lock);
        }
        Ok(())
    }
}

/// The one record that a key names.
///
/// # Errors
/// Why there is none, or which one is unknown.
fn record_of(
    found: &mut LookupResult,
    catalog: &Catalog,
    is_provided: bool,
) -> Result<Record, String> {
    if is_provided && !found.records.is_empty() {
        let LookupResult { given, records, .. } = &mut *found;
        records.retain(|record| record.key == *given);
        if records.is_empty() {
            return Err(NOT_A_KEY.to_owned());
        }
    }
    if let Some(names) = found.several() {
        return Err(format!("ambiguous: it names {}", name::choices(&found.given, &names)));
    }
    if let Some(unread) = found.may_name_another(catalog) {
        return Err(format!("unknown: {unread}"));
    }
    let mut records = std::mem::take(&mut found.records);
    if records.len() > 1 {
        records.retain(|record| reconcilable(record).is_ok());
    }
    match (records.len(), &found.why_unread) {
        (1, _) => {}
        (0, Some(error)) => return Err(error.to_string()),
        (0, None) => {
            return Err(match GivenKey::word(&found.given[..]).excluded_because(catalog) {
                Some((why, hint)) => format!("{why}; {hint}"),
                None => "no record".to_owned(),
            });
        }
        _ => return Err("it has records of several schemas; choose one with --schema".to_owned()),
    }
    let record = records.remove(0);
    if !record.schema.has_fixed_prefix()
        && !catalog.includes_unprefixed()
        && !found.says_schema_of(&record)
    {
        return Err(format!(
            "any Redis key could match {}; name it with --schema",
            record.schema.name
        ));
    }
    Ok(record)
}

/// The question about a lock, as the program gets it. If an operator extended the lock, its TTL
/// does not tell its age.
fn question(record: &Record, is_extended: bool) -> Value {
    let mut record = record.clone();
    if is_extended && record.age.is_some_and(|age| !age.is_of_record()) {
        record.age = None;
    }
    let mut question = json!({
        "format": 1,
        "key": document::text(&record.key),
        "schema": record.schema.name,
        "owner": record.owner().map(escape::text),
        "created_at": columns::created_at(&record),
        "created_at_evidence": record.age.map(|age| age.evidence.as_str()),
        "fingerprint": record.fingerprint(),
        "record": record_json::value(&record),
    });
    if let Some(base64) = document::base64_unless_text(&record.key) {
        question["key_base64"] = base64.into();
    }
    question
}
