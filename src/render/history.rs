//! Operations of the audit log, as a table, as a page, and as JSON. The log already escapes bytes
//! that are not UTF-8.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Serialize;

use super::style::View;
use super::{columns, escape, table, words};
use crate::domain::history::{AuditEntry, Operation, OperationState};
use crate::domain::record::KeyIdentity;

/// The columns of the table and the terminal width that each needs. `log show` prints the values of
/// hidden columns.
const COLUMNS: [(&str, usize); 8] = [
    ("OP", 0),
    ("TIME", 60),
    ("COMMAND", 0),
    ("KEYS", 0),
    ("BACKUP", 100),
    ("WHO", 80),
    ("SERVER", 80),
    ("REASON", 80),
];

/// An operation, and whether its backup still exists; `None` if it has none.
#[derive(Serialize)]
pub struct ShownOperation<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    redis_keys: u64,
    unknown: u64,
    backup: Option<&'a str>,
    says_what_was_left: bool,
    backup_is_there: Option<bool>,
    /// The context with this server.
    #[serde(skip)]
    context: Option<String>,
}

impl<'a> ShownOperation<'a> {
    /// An operation without the name of a context.
    pub fn of(operation: &'a Operation, backup_is_there: Option<bool>) -> Self {
        let totals = &operation.totals;
        Self {
            operation,
            redis_keys: totals.redis_keys,
            unknown: totals.unknown,
            backup: totals.backup.as_deref(),
            says_what_was_left: totals.says_what_was_left,
            backup_is_there,
            context: None,
        }
    }

    /// Adds the name of the context that has the server, because a name is shorter than an address.
    #[must_use]
    pub fn in_context(self, contexts: &[(String, String, i64)]) -> Self {
        // Two contexts may use one address with different databases, so both must match.
        let Some(place) = self.operation.totals.places.first() else { return self };
        for (name, address, db) in contexts {
            if place.address == *address && place.db == *db {
                return Self { context: Some(name.clone()), ..self };
            }
        }
        self
    }

    fn server(&self) -> String {
        match &self.context {
            Some(name) => escape::text(name.as_bytes()),
            None => escape::again(&self.operation.server),
        }
    }

    fn who(&self) -> String {
        let Operation { who, sudo_user, .. } = self.operation;
        match sudo_user {
            Some(caller) => format!("{} as {}", escape::again(caller), escape::again(who)),
            None => escape::again(who),
        }
    }

    fn command(&self) -> String {
        let command = escape::again(&self.operation.command);
        match &self.operation.undoes {
            Some(op) => format!("{command} of {}", escape::again(op)),
            None => command,
        }
    }

    /// How it ended, and whether it was undone, each after a comma.
    fn state(&self) -> String {
        let Operation { undone_by, partly_undone_by, state, .. } = self.operation;
        let undone = match (undone_by, partly_undone_by) {
            (Some(_), _) => ", undone",
            (None, Some(_)) => ", partly undone",
            (None, None) => "",
        };
        let ended = match state {
            OperationState::Unended => ", unended",
            OperationState::Interrupted => ", interrupted",
            OperationState::Ended => "",
        };
        format!("{ended}{undone}")
    }

    fn backup(&self) -> &'static str {
        match self.backup_is_there {
            Some(true) => "kept",
            Some(false) => "gone",
            None => "-",
        }
    }
}

/// What of the audit log in this folder is not read: so many damaged lines, and the file that
/// idemctl 0.2 left beside the folder.
pub fn unread(folder: &Path, damaged: u64) -> Vec<String> {
    let path = escape::text(folder.as_os_str().as_bytes());
    let mut unread = Vec::new();
    if damaged > 0 {
        let lines = words::counted(damaged, "line");
        unread.push(format!("{path}/log.jsonl: {lines} cannot be read"));
    }
    if folder.with_extension("jsonl").exists() {
        unread.push(format!("{path}.jsonl is of an earlier version of idemctl and is not read"));
    }
    unread
}

/// The warning about an operation of whose details lines are damaged or missing.
pub fn damaged_details(operation: &Operation) -> String {
    let name = escape::again(&operation.name());
    format!("the details of {name} are damaged, so some of its changes may be missing")
}

/// A time to the second.
fn second(at: &str) -> String {
    match at.split_once('.') {
        Some((seconds, _)) => escape::again(seconds) + "Z",
        None => escape::again(at),
    }
}

/// The table, one row per operation; empty without operations.
pub fn table(view: View, operations: &[ShownOperation<'_>]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    // Without a terminal, lines may have any length, so every column has room.
    let width = view.width.unwrap_or(usize::MAX);
    let mut heading = Vec::new();
    for (name, min_width) in COLUMNS {
        if width >= min_width {
            heading.push(name);
        }
    }
    let mut rows = Vec::new();
    for shown in operations {
        let Operation { op, at, reason, .. } = shown.operation;
        let reason = match reason {
            Some(reason) => escape::again(reason),
            None => "-".to_owned(),
        };
        let cells = [
            escape::again(op),
            second(at),
            shown.command() + &shown.state(),
            shown.redis_keys.to_string(),
            shown.backup().to_owned(),
            shown.who(),
            shown.server(),
            reason,
        ];
        let mut row = Vec::new();
        for ((_, min_width), cell) in COLUMNS.into_iter().zip(cells) {
            if width >= min_width {
                row.push(cell);
            }
        }
        rows.push(row);
    }
    table::grid_folding(view, &heading, rows, &["COMMAND", "WHO", "SERVER", "REASON"])
}

/// The page of one operation with its changes.
pub fn page(view: View, shown: &ShownOperation<'_>, records: &[AuditEntry<'_>]) -> String {
    let of = shown.operation;
    let mut lines = vec![
        ("Operation", escape::again(&of.op)),
        ("Time", second(&of.at)),
        ("Who", format!("{}{} on {}", shown.who(), user_id(of), escape::again(&of.host))),
        ("Server", escape::again(&of.server)),
        ("Command", shown.command()),
    ];
    if let Some(state) = shown.state().strip_prefix(", ") {
        lines.push(("State", state.to_owned()));
    }
    if let Some(filters) = &of.filters {
        lines.push(("Filters", escape::again(filters)));
    }
    lines.push(("Changes", shown.redis_keys.to_string()));
    if shown.unknown > 0 {
        let keys = words::counted(shown.unknown, "Redis key");
        lines.push(("Unknown", format!("the outcome of {keys}")));
    }
    if let Some(reason) = &of.reason {
        lines.push(("Reason", escape::again(reason)));
    }
    if let Some(file) = shown.backup {
        let gone = if shown.backup_is_there == Some(false) { " (gone)" } else { "" };
        lines.push(("Backup", escape::again(file) + gone));
    }
    if let Some(op) = &of.undone_by {
        lines.push(("Undone by", escape::again(op)));
    }
    if let Some(op) = &of.partly_undone_by {
        lines.push(("Undone by", format!("{} (in part)", escape::again(op))));
    }
    let mut text = String::new();
    for (name, value) in lines {
        text += &format!("{name:<11} {value}\n");
    }
    let mut rows = Vec::new();
    for entry in records {
        let after = match &entry.after {
            Some(after) => left(after),
            None => "unknown".to_owned(),
        };
        rows.push(vec![
            escape::again(&entry.what),
            escape::again(&entry.schema),
            after,
            escape::again(&entry.redis_key),
        ]);
    }
    let heading = ["WHAT", "SCHEMA", "AFTER", "REDIS KEY"];
    format!("{text}\n{}", table::grid_folding(view, &heading, rows, &["REDIS KEY"]))
}

/// The user's number, which no variable can change, unless it replaces the name already.
fn user_id(of: &Operation) -> String {
    let Some(uid) = of.uid else { return String::new() };
    let uid = format!("uid {uid}");
    if uid == of.who { String::new() } else { format!(" ({uid})") }
}

/// The value that a change wrote to a Redis key, by its expiry.
fn left(after: &KeyIdentity) -> String {
    if after.is_absent() {
        return "absent".to_owned();
    }
    let Some(at) = after.expires_at_ms() else { return "no expiry".to_owned() };
    match columns::rfc3339(at) {
        Some(time) => format!("until {}", second(&time)),
        None => format!("until {at} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::Palette;

    /// Rule: a narrow terminal hides columns, and never breaks a word.
    #[test]
    fn an_operation_is_readable_at_any_width() {
        let operation = Operation {
            op: "499bae85".to_owned(),
            at: "2026-11-22T23:27:55.100Z".to_owned(),
            who: "uid 0".to_owned(),
            host: "ops-1".to_owned(),
            server: "cache.internal.example:6379/0".to_owned(),
            command: "force-unlock".to_owned(),
            reason: Some("INC-1041".to_owned()),
            state: OperationState::Ended,
            ..Operation::default()
        };
        for (width, columns) in [(40, 3), (60, 4), (80, 7), (100, 8), (200, 8)] {
            let table = table(
                View { palette: Palette::new(false), width: Some(width) },
                &[ShownOperation::of(&operation, Some(true))],
            );
            assert!(table.lines().all(|line| line.chars().count() <= width), "{table}");
            let heading = table.lines().next().unwrap();
            assert_eq!(heading.split_whitespace().count(), columns, "{table}");
            assert!(table.contains("499bae85  ") && table.contains("force-unlock"), "{table}");
        }
    }
}
