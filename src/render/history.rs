//! Operations of the audit log, as a table, as a page, and as JSON. The log already escapes bytes
//! that are not UTF-8.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::style::View;
use super::{escape, table};
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
    backup_is_there: Option<bool>,
    /// The context with this server.
    #[serde(skip)]
    context: Option<String>,
}

impl<'a> ShownOperation<'a> {
    /// An operation without the name of a context.
    pub fn of(operation: &'a Operation, backup_is_there: Option<bool>) -> Self {
        Self { operation, backup_is_there, context: None }
    }

    /// Adds the name of the context that has the server, because a name is shorter than an address.
    #[must_use]
    pub fn in_context(self, contexts: &[(String, String, i64)]) -> Self {
        // Two contexts may use one address with different databases, so both must match.
        let place = self.operation.places.first();
        let is_there = |(_, address, db): &&(String, String, i64)| {
            place.is_some_and(|place| place.address == *address && place.db == *db)
        };
        let context = contexts.iter().find(is_there).map(|(name, ..)| name.clone());
        Self { context, ..self }
    }

    fn server(&self) -> String {
        match &self.context {
            Some(name) => escape::text(name.as_bytes()),
            None => escape::again(&self.operation.server),
        }
    }

    /// The number of Redis keys that the operation changed.
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
        let Operation { command, undoes, undone_by, partly_undone_by, state, .. } = self.operation;
        let of = undoes.as_ref().map(|op| format!(" of {}", escape::again(op))).unwrap_or_default();
        let undone = match (undone_by, partly_undone_by) {
            (Some(_), _) => ", undone",
            (None, Some(_)) => ", partly undone",
            (None, None) => "",
        };
        let ended = match state {
            Some(OperationState::Unended) => ", unended",
            Some(OperationState::Interrupted) => ", interrupted",
            Some(OperationState::Ended) | None => "",
        };
        format!("{}{of}{ended}{undone}", escape::again(command))
    }

    fn backup(&self) -> &'static str {
        match self.backup_is_there {
            Some(true) => "kept",
            Some(false) => "gone",
            None => "-",
        }
    }
}

/// A time to the second.
fn second(at: &str) -> String {
    at.split_once('.')
        .map_or_else(|| escape::again(at), |(seconds, _)| escape::again(seconds) + "Z")
}

/// The table, one row per operation; empty without operations.
pub fn table(view: View, operations: &[ShownOperation<'_>]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    let has_room = |column: usize| view.width.is_none_or(|width| width >= COLUMNS[column].1);
    let rows = operations.iter().map(|shown| {
        let Operation { op, at, redis_keys, reason, .. } = shown.operation;
        let (command, keys, backup) =
            (shown.command(), redis_keys.to_string(), shown.backup().to_owned());
        let reason = reason.as_deref().map_or_else(|| "-".to_owned(), escape::again);
        let row = [
            escape::again(op),
            second(at),
            command,
            keys,
            backup,
            shown.who(),
            shown.server(),
            reason,
        ];
        row.into_iter()
            .enumerate()
            .filter(|(column, _)| has_room(*column))
            .map(|(_, cell)| cell)
            .collect()
    });
    let heading: Vec<_> = (0..COLUMNS.len())
        .filter(|column| has_room(*column))
        .map(|column| COLUMNS[column].0)
        .collect();
    table::grid_folding(view, &heading, rows.collect(), &["COMMAND", "WHO", "SERVER", "REASON"])
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
    lines.extend(of.filters.as_deref().map(|filters| ("Filters", escape::again(filters))));
    lines.push(("Redis keys", of.redis_keys.to_string()));
    match of.unknown {
        0 => {}
        1 => lines.push(("Unknown", "the outcome of 1 Redis key".to_owned())),
        unknown => lines.push(("Unknown", format!("the outcome of {unknown} Redis keys"))),
    }
    lines.extend(of.reason.as_deref().map(|reason| ("Reason", escape::again(reason))));
    let gone = if shown.backup_is_there == Some(false) { " (gone)" } else { "" };
    lines.extend(of.backup.as_deref().map(|file| ("Backup", escape::again(file) + gone)));
    lines.extend(of.undone_by.as_deref().map(|op| ("Undone by", escape::again(op))));
    lines.extend(
        of.partly_undone_by
            .as_deref()
            .map(|op| ("Undone by", format!("{} (in part)", escape::again(op)))),
    );
    let head: String = lines.iter().map(|(name, text)| format!("{name:<11} {text}\n")).collect();
    let rows = records.iter().map(|entry| {
        let cells = [&*entry.what, &*entry.schema].map(escape::again).into_iter();
        let left = entry.after.as_ref().map_or_else(|| "unknown".to_owned(), left);
        cells.chain([left, escape::again(&entry.redis_key)]).collect()
    });
    let heading = ["WHAT", "SCHEMA", "AFTER", "REDIS KEY"];
    format!("{head}\n{}", table::grid_folding(view, &heading, rows.collect(), &["REDIS KEY"]))
}

/// The user's number, which no variable can change, unless it replaces the name already.
fn user_id(of: &Operation) -> String {
    match of.uid.map(|uid| format!("uid {uid}")) {
        Some(uid) if uid != of.who => format!(" ({uid})"),
        _ => String::new(),
    }
}

/// The value that a change wrote to a Redis key, by its expiry.
fn left(after: &KeyIdentity) -> String {
    if after.is_absent() {
        return "absent".to_owned();
    }
    match after.expires_at_ms() {
        Some(at) => {
            let time = UNIX_EPOCH
                .checked_add(Duration::from_millis(at))
                // RFC 3339 ends with the year 9999.
                .filter(|_| at < 253_402_300_800_000);
            let time = time.map(|time| second(&humantime::format_rfc3339_millis(time).to_string()));
            format!("until {}", time.unwrap_or_else(|| format!("{at} ms")))
        }
        None => "no expiry".to_owned(),
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
            sudo_user: None,
            uid: None,
            host: "ops-1".to_owned(),
            server: "cache.internal.example:6379/0".to_owned(),
            command: "force-unlock".to_owned(),
            filters: None,
            redis_keys: 1,
            unknown: 0,
            reason: Some("INC-1041".to_owned()),
            backup: None,
            undoes: None,
            undone_by: None,
            partly_undone_by: None,
            state: Some(OperationState::Ended),
            why: None,
            says_what_was_left: true,
            is_told: true,
            begun_backup: None,
            is_part: false,
            places: Vec::new(),
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
