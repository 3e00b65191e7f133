//! Operations of the audit log, as a table, as a page, and as JSON. The log already escapes bytes
//! that are not UTF-8.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Serialize;

use super::style::View;
use super::table::{Column, of_columns};
use super::{columns, escape, words};
use crate::domain::history::{AuditEntry, Operation, OperationState};
use crate::domain::record::KeyIdentity;

/// The first letters of an operation's ID that a terminal shows. Commands accept them.
const SHORT_OP: usize = 8;

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

    fn command(&self, is_short: bool) -> String {
        let command = escape::again(&self.operation.command);
        match &self.operation.undoes {
            Some(op) => format!("{command} of {}", op_id(op, is_short)),
            None => command,
        }
    }

    /// How it ended, and whether it was undone; `-` if it ended and stays.
    fn state(&self) -> String {
        let Operation { undone_by, partly_undone_by, state, .. } = self.operation;
        let mut words = Vec::new();
        match state {
            OperationState::Unended => words.push("unended"),
            OperationState::Interrupted => words.push("interrupted"),
            OperationState::Ended => {}
        }
        match (undone_by, partly_undone_by) {
            (Some(_), _) => words.push("undone"),
            (None, Some(_)) => words.push("partly undone"),
            (None, None) => {}
        }
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
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
pub(super) fn second(at: &str) -> String {
    match at.split_once('.') {
        Some((seconds, _)) => escape::again(seconds) + "Z",
        None => escape::again(at),
    }
}

/// A row of the table. A terminal shows short IDs, and times to the minute.
struct Row<'a> {
    shown: &'a ShownOperation<'a>,
    is_short: bool,
}

/// The table, one row per operation; empty without operations. `log show` prints what a narrow
/// terminal leaves out.
pub fn table(view: View, operations: &[ShownOperation<'_>]) -> String {
    let columns = [
        Column::text("OP", 0, |row: &Row<'_>| op_id(&row.shown.operation.op, row.is_short)),
        Column::text("TIME", 2, |row| {
            let at = second(&row.shown.operation.at);
            if row.is_short {
                at.chars().take(16).collect::<String>().replace('T', " ") + "Z"
            } else {
                at
            }
        }),
        Column::text("COMMAND", 0, |row| row.shown.command(row.is_short)),
        Column::number("KEYS", 0, |row| row.shown.redis_keys.to_string()),
        Column::text("STATE", 0, |row| row.shown.state()),
        Column::text("BACKUP", 6, |row| row.shown.backup().to_owned()),
        Column::shortened("WHO", 5, |row| row.shown.who()),
        Column::shortened("SERVER", 4, |row| row.shown.server()),
        Column::folded("REASON", 3, |row| match &row.shown.operation.reason {
            Some(reason) => escape::again(reason),
            None => "-".to_owned(),
        }),
    ];
    let is_short = view.width.is_some();
    let rows: Vec<_> = operations.iter().map(|shown| Row { shown, is_short }).collect();
    of_columns(view, &columns, &rows)
}

pub(super) fn op_id(op: &str, is_short: bool) -> String {
    let op = escape::again(op);
    if is_short { op.chars().take(SHORT_OP).collect() } else { op }
}

/// The page of one operation with its changes.
pub fn page(view: View, shown: &ShownOperation<'_>, records: &[AuditEntry<'_>]) -> String {
    let of = shown.operation;
    let mut lines = vec![
        ("Operation", escape::again(&of.op)),
        ("Time", second(&of.at)),
        ("Who", format!("{}{} on {}", shown.who(), user_id(of), escape::again(&of.host))),
        ("Server", escape::again(&of.server)),
        ("Command", shown.command(false)),
        ("State", shown.state()),
    ];
    if let Some(filters) = &of.filters {
        lines.push(("Filters", escape::again(filters)));
    }
    lines.push(("Changes", shown.redis_keys.to_string()));
    if shown.unknown > 0 {
        let keys = words::counted(shown.unknown, "Redis key");
        lines.push(("Unknown", format!("the outcome of {keys}")));
    }
    if let Some(planner) = &of.planner {
        lines.push(("Planned by", escape::again(planner)));
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
    let columns = [
        Column::text("WHAT", 0, |entry: &AuditEntry<'_>| escape::again(&entry.what)),
        Column::text("SCHEMA", 2, |entry| escape::again(&entry.schema)),
        Column::text("AFTER", 1, |entry| match &entry.after {
            Some(after) => left(after),
            None => "unknown".to_owned(),
        }),
        Column::shortened("REDIS KEY", 0, |entry| escape::again(&entry.redis_key)),
    ];
    format!("{text}\n{}", of_columns(view, &columns, records))
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
        for (width, columns) in [(40, 4), (60, 5), (80, 8), (100, 9), (200, 9)] {
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
