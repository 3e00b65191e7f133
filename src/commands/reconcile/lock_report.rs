//! What a run reports: the table before the question, and what became of each lock.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::find::{Found, UnreconciledKey};
use super::lock::{Fate, Hold, ReconciledLock};
use crate::change::freeing_hint;
use crate::domain::change::outcome_counts::Ended;
use crate::domain::record::{TimeLeft, age};
use crate::render::invocation::name_of;
use crate::render::style::View;
use crate::render::table::{Column, of_columns};
use crate::render::{columns, document, escape, words};
use crate::session::Session;

/// How many locks have each fate.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) completed: usize,
    pub(super) released: usize,
    pub(super) to_complete: usize,
    pub(super) to_release: usize,
    pub(super) left: usize,
    pub(super) changed: usize,
    pub(super) unknown: usize,
    pub(super) failed: usize,
}

impl Counts {
    pub(super) fn of(locks: &[ReconciledLock]) -> Self {
        let mut counts = Self::default();
        for lock in locks {
            let count = match lock.fate {
                Fate::Completed(_) => &mut counts.completed,
                Fate::Released(_) => &mut counts.released,
                Fate::ToComplete(_) => &mut counts.to_complete,
                Fate::ToRelease => &mut counts.to_release,
                Fate::Open | Fate::Left(_) | Fate::Refused(_) => &mut counts.left,
                Fate::Changed(_) => &mut counts.changed,
                Fate::OutcomeUnknown(_) => &mut counts.unknown,
                Fate::Failed(_) => &mut counts.failed,
            };
            *count += 1;
        }
        counts
    }

    pub(super) fn done(&self) -> usize {
        self.completed + self.released
    }

    /// `complete 12, release 3, leave 5, changed meanwhile 1`.
    pub(super) fn planned(&self, left_out: usize) -> String {
        list(&[
            ("complete", self.to_complete),
            ("release", self.to_release),
            ("leave", self.left + self.unknown + self.failed),
            ("changed meanwhile", self.changed),
            ("not reconciled", left_out),
        ])
    }

    /// `completed 12, released 3, left 5, changed meanwhile 1`.
    pub(super) fn words(&self, left_out: usize) -> String {
        list(&[
            ("completed", self.completed),
            ("released", self.released),
            ("left", self.left + self.to_complete + self.to_release),
            ("changed meanwhile", self.changed),
            ("failed", self.failed),
            ("outcome unknown", self.unknown),
            ("not reconciled", left_out),
        ])
    }
}

/// The first four counts, and each other one that is not 0.
fn list(counts: &[(&str, usize)]) -> String {
    let mut words = Vec::new();
    for (index, (what, count)) in counts.iter().enumerate() {
        if index < 4 || *count > 0 {
            words.push(format!("{what} {count}"));
        }
    }
    words.join(", ")
}

/// The most keys of which the same is said that are named.
const SAMPLE: usize = 3;

/// One lock, or locks of which all the same is known and planned.
#[derive(PartialEq)]
struct LockRow<'a> {
    schema: &'a str,
    lock: String,
    answer: &'a str,
    plan: String,
}

/// The table of the locks and of what is planned for each. On a terminal, equal rows are one row.
pub(super) fn table(locks: &[ReconciledLock], view: View, is_verbose: bool) -> String {
    let is_grouped = view.width.is_some() && !is_verbose;
    let mut rows: Vec<(Vec<String>, LockRow<'_>)> = Vec::new();
    for lock in locks {
        let mut because = lock.because.to_owned();
        if let Some(left) = lock.left()
            && !is_grouped
        {
            let left = words::time_left(TimeLeft::Millis(age::millis(left)));
            because.push_str(&format!(", {left} left"));
        }
        let row = LockRow {
            schema: &lock.record.schema.name,
            lock: because,
            answer: lock.answer.as_ref().map_or("-", |answer| answer.as_str()),
            plan: lock.words(),
        };
        let key = escape::key(&lock.record.key);
        let mut equal = None;
        if is_grouped {
            equal = rows.iter_mut().find(|(_, known)| *known == row);
        }
        match equal {
            Some((keys, _)) => keys.push(key),
            None => rows.push((vec![key], row)),
        }
    }
    let mut columns = vec![
        Column::shortened("KEY", 0, |(keys, _): &(Vec<String>, LockRow<'_>)| {
            let more = if keys.len() > SAMPLE { ", …" } else { "" };
            keys[..keys.len().min(SAMPLE)].join(", ") + more
        }),
        Column::text("SCHEMA", 1, |(_, row)| row.schema.to_owned()),
        Column::text("LOCK", 2, |(_, row)| row.lock.clone()),
        Column::text("ANSWER", 0, |(_, row)| row.answer.to_owned()),
        Column::folded("PLAN", 0, |(_, row)| row.plan.clone()),
    ];
    if is_grouped {
        columns.insert(0, Column::number("LOCKS", 0, |(keys, _)| keys.len().to_string()));
    }
    of_columns(view, &columns, &rows)
}

/// Prints that it was not tested whether the service replays some responses.
pub(super) fn print_untested(session: &mut Session, locks: &[ReconciledLock]) {
    for lock in locks {
        if let (Fate::ToComplete(_), Some(why)) = (&lock.fate, &lock.untested) {
            session.ui.status(&format!(
                "Not tested ({why}): according to the schema, the service replays what is stored."
            ));
            return;
        }
    }
}

/// Prints what became of each lock that was not completed or released, and how long it holds.
pub(super) fn print_locks(session: &mut Session, locks: &[ReconciledLock]) {
    let now_ms = session.now_ms();
    for lock in locks {
        let is_done = matches!(lock.fate, Fate::Completed(_) | Fate::Released(_));
        if is_done && !session.ui.is_verbose() {
            continue;
        }
        let name = escape::text(name_of(&lock.record).as_bytes());
        session.ui.status(&format!("{name}: {}{}", lock.words(), hold_words(lock, now_ms)));
        // The words of a lock that changed say what that means.
        if !lock.is_done_without_result() || matches!(lock.fate, Fate::Changed(_)) {
            continue;
        }
        let can_be_stored = lock.record.schema.complete.is_some() && !lock.is_never_stored();
        let advice = match freeing_hint(&lock.record) {
            Some(freeing) if !can_be_stored => freeing,
            _ => "inspect the key; if it has no result yet, store it with `complete`".to_owned(),
        };
        session.ui.hint(&advice);
    }
}

/// How long a lock holds that was not completed or released, after a semicolon.
fn hold_words(lock: &ReconciledLock, now_ms: u64) -> String {
    if matches!(lock.fate, Fate::Completed(_) | Fate::Released(_) | Fate::Changed(_)) {
        return String::new();
    }
    if lock.hold != Hold::None && lock.has_ended(now_ms) {
        return "; it has ended".to_owned();
    }
    match &lock.hold {
        Hold::None | Hold::Ended | Hold::Unknown { until_ms: None, .. } => String::new(),
        Hold::PutBack => "; it has an earlier deadline again".to_owned(),
        Hold::Extended { until_ms, .. } => {
            let why = match &lock.not_back {
                Some(why) => format!(" ({why})"),
                None => String::new(),
            };
            format!("; extended until {}{why}", time(*until_ms))
        }
        Hold::Unknown { until_ms: Some(until_ms), .. } => {
            format!("; perhaps extended until {}", time(*until_ms))
        }
    }
}

/// Prints which locks are not reconciled, and why.
pub(super) fn print_left_out(session: &mut Session, found: &Found) {
    if found.young > 0 {
        let locks = words::counted(found.young, "lock");
        session.ui.detail(&format!("Younger than --older-than, or changed meanwhile: {locks}"));
    }
    if found.alive > 0 {
        let locks = words::counted(found.alive, "lock");
        session.ui.status(&format!("Left alone: {locks} whose owner is alive"));
    }
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for UnreconciledKey { key, schema, why } in &found.left_out {
        let schema = match schema {
            Some(schema) => format!(" ({schema})"),
            None => String::new(),
        };
        by_reason.entry(why).or_default().push(format!("{}{schema}", escape::key(key)));
    }
    for (why, keys) in by_reason {
        let named = if session.ui.is_verbose() { keys.len() } else { keys.len().min(SAMPLE) };
        let more = match keys.len() - named {
            0 => String::new(),
            more => format!(" and {more} more (-v names them)"),
        };
        session.ui.status(&format!("Not reconciled: {}{more}: {why}", keys[..named].join(", ")));
    }
    let maybe_extended = found.renewed + found.young_by_deadline;
    if maybe_extended > 0 {
        session.ui.hint(&format!(
            "{} may have been extended by a run of reconcile that was killed; run it there again",
            words::counted(maybe_extended, "lock")
        ));
    }
}

fn time(millis: u64) -> String {
    columns::rfc3339(millis).unwrap_or_else(|| format!("{millis} ms"))
}

/// The report as JSON.
pub(super) fn json(
    locks: &[ReconciledLock],
    found: &Found,
    ended: Ended,
    backup: Option<&str>,
    now_ms: u64,
) -> Value {
    let counts = Counts::of(locks);
    let mut entries = Vec::with_capacity(locks.len());
    for lock in locks {
        entries.push(entry(lock, now_ms));
    }
    let mut left_out = Vec::with_capacity(found.left_out.len());
    for left in &found.left_out {
        let mut entry = json!({
            "key": document::text(&left.key),
            "schema": left.schema,
            "message": left.why,
        });
        if let Some(base64) = document::base64_unless_text(&left.key) {
            entry["key_base64"] = base64.into();
        }
        left_out.push(entry);
    }
    json!({
        "format": 1,
        "outcome": ended.as_str(),
        "completed": counts.completed,
        "released": counts.released,
        "to_complete": counts.to_complete,
        "to_release": counts.to_release,
        "left": counts.left,
        "changed": counts.changed,
        "failed": counts.failed,
        "unknown": counts.unknown,
        "locks": entries,
        "left_out": left_out,
        "younger": found.young,
        "younger_by_deadline": found.young_by_deadline,
        "skipped_alive": found.alive,
        "backup": backup,
    })
}

fn entry(lock: &ReconciledLock, now_ms: u64) -> Value {
    let is_done = matches!(lock.fate, Fate::Completed(_) | Fate::Released(_));
    let (hold, until_ms) = match &lock.hold {
        _ if is_done || lock.has_ended(now_ms) => ("ended", None),
        Hold::None => ("none", None),
        Hold::Extended { until_ms, .. } => ("extended", Some(*until_ms)),
        Hold::PutBack => ("put-back", None),
        Hold::Ended => ("ended", None),
        Hold::Unknown { until_ms, .. } => ("unknown", *until_ms),
    };
    let mut entry = json!({
        "key": document::text(&lock.record.key),
        "schema": lock.record.schema.name,
        "because": lock.because,
        "answer": lock.answer.as_ref().map(|answer| answer.as_str()),
        "outcome": lock.fate.as_str(),
        "message": lock.fate.words(),
        "hold": hold,
        "holds_until": until_ms.and_then(columns::rfc3339),
        "untested": lock.untested,
    });
    if let Some(base64) = document::base64_unless_text(&lock.record.key) {
        entry["key_base64"] = base64.into();
    }
    entry
}
