//! Operations of the audit log, as a table, as a page, as JSON. The log has escaped what is not UTF-8 already.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::style::View;
use super::{escape, table};
use crate::domain::history::{Entry, Operation};
use crate::domain::record::KeyIdentity;

/// Below so many columns the backups are left to `log show`.
const WIDE: usize = 100;

/// An operation, and whether its backup is still there; `None` where it has none.
#[derive(Serialize)]
pub struct Shown<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    backup_is_there: Option<bool>,
}

impl<'a> Shown<'a> {
    pub fn of(operation: &'a Operation, backup_is_there: Option<bool>) -> Self {
        Self { operation, backup_is_there }
    }

    /// How many Redis keys the operation changed.
    pub fn redis_keys(&self) -> u64 {
        self.operation.redis_keys
    }

    fn who(&self) -> String {
        let Operation { who, sudo_user, .. } = self.operation;
        match sudo_user {
            Some(caller) => format!("{} as {}", escape::again(caller), escape::again(who)),
            None => escape::again(who),
        }
    }

    fn command(&self) -> String {
        let Operation { command, undoes, undone_by, .. } = self.operation;
        let of = undoes.as_ref().map(|op| format!(" of {}", escape::again(op))).unwrap_or_default();
        let undone = if undone_by.is_some() { ", undone" } else { "" };
        format!("{}{of}{undone}", escape::again(command))
    }

    fn backup(&self) -> &'static str {
        match self.backup_is_there {
            Some(true) => "kept",
            Some(false) => "gone",
            None => "-",
        }
    }
}

/// Times to the second.
fn second(at: &str) -> String {
    at.split_once('.').map_or_else(|| escape::again(at), |(seconds, _)| escape::again(seconds) + "Z")
}

pub fn table(view: View, operations: &[Shown<'_>]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    let is_wide = view.width.is_none_or(|width| width >= WIDE);
    let rows = operations.iter().map(|shown| {
        let Operation { op, at, server, redis_keys, reason, .. } = shown.operation;
        let reason = reason.as_deref().map_or_else(|| "-".to_owned(), escape::again);
        let keys = redis_keys.to_string();
        let mut row =
            vec![escape::again(op), second(at), shown.command(), keys, shown.who(), escape::again(server), reason];
        if is_wide {
            row.insert(4, shown.backup().to_owned());
        }
        row
    });
    let mut heading = vec!["OP", "TIME", "COMMAND", "KEYS", "WHO", "SERVER", "REASON"];
    if is_wide {
        heading.insert(4, "BACKUP");
    }
    table::grid_folding(view, &heading, rows.collect(), &["COMMAND", "WHO", "SERVER", "REASON"])
}

/// One operation with its records.
pub fn page(view: View, shown: &Shown<'_>, records: &[Entry<'_>]) -> String {
    let of = shown.operation;
    let mut lines = vec![
        ("Operation", escape::again(&of.op)),
        ("Time", second(&of.at)),
        ("Who", format!("{} on {}", shown.who(), escape::again(&of.host))),
        ("Server", escape::again(&of.server)),
        ("Command", shown.command()),
        ("Redis keys", of.redis_keys.to_string()),
    ];
    lines.extend((of.unknown > 0).then(|| ("Unknown", format!("of {} nobody knows what became", of.unknown))));
    lines.extend(of.reason.as_deref().map(|reason| ("Reason", escape::again(reason))));
    let gone = if shown.backup_is_there == Some(false) { " (gone)" } else { "" };
    lines.extend(of.backup.as_deref().map(|file| ("Backup", escape::again(file) + gone)));
    lines.extend(of.undone_by.as_deref().map(|op| ("Undone by", escape::again(op))));
    let head: String = lines.iter().map(|(name, text)| format!("{name:<11} {text}\n")).collect();
    let rows = records.iter().map(|entry| {
        let cells = [&*entry.what, &*entry.schema].map(escape::again).into_iter();
        let left = entry.after.as_ref().map_or_else(|| "unknown".to_owned(), left);
        cells.chain([left, escape::again(&entry.redis_key)]).collect()
    });
    let heading = ["WHAT", "SCHEMA", "LEFT", "REDIS KEY"];
    format!("{head}\n{}", table::grid_folding(view, &heading, rows.collect(), &["REDIS KEY"]))
}

/// What a change left at a Redis key.
fn left(after: &KeyIdentity) -> String {
    if after.is_absent() {
        return "nothing".to_owned();
    }
    match after.expires_at_ms() {
        Some(at) => {
            let time = UNIX_EPOCH.checked_add(Duration::from_millis(at)).filter(|_| at < 253_402_300_800_000);
            let time = time.map(|time| second(&humantime::format_rfc3339_millis(time).to_string()));
            format!("until {}", time.unwrap_or_else(|| format!("{at} ms")))
        }
        None => "no expiry".to_owned(),
    }
}
