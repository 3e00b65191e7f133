//! What a restore brings back: the backup, which of its lines are damaged, and whether it was taken
//! from this server.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::destination;
use crate::args::ReturnArgs;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::AuditEntry;
use crate::domain::record::{KeyIdentity, Only};
use crate::domain::schema::Role;
use crate::exit::{CommandError, Exit};
use crate::render::invocation::word;
use crate::render::{escape, name, words};
use crate::session::Session;
use crate::session::operations::unreadable;
use crate::store::Return;
use crate::store::audit::log;
use crate::store::backup::folder::is_being_written;
use crate::store::backup::{BackupError, BackupReader, Closing, Damage, Held, HeldKey};

/// The hint about a file that is no backup.
const NAMED_BY_LOG: &str =
    "nothing was restored; `idemctl log show` names the backup of an operation";

/// Which Redis keys of a backup come back.
pub struct KeysToRestore<'a> {
    pub args: &'a ReturnArgs,
    pub only: &'a Only,
    /// Redis keys that do not come back by this way.
    pub but: HashSet<Vec<u8>>,
}

impl KeysToRestore<'_> {
    pub fn holds(&self, held: &Held) -> bool {
        let is_left = held.keys.iter().any(|key| self.but.contains(&key.saved.redis_key));
        let is_meant = |key: &HeldKey| self.only.holds(&held.name, &key.saved.redis_key);
        !is_left && held.keys.iter().any(is_meant)
    }

    /// True if a change that the audit log names is meant.
    fn means(&self, entry: &AuditEntry<'_>) -> bool {
        let redis_key = entry.redis_key_bytes();
        self.only.holds(&entry.name(), &redis_key) && !self.but.contains(&redis_key)
    }

    /// How a record comes back: as a whole, unless a result is to come back although a lock is
    /// there. Then the lock is apart from the result and its parts, which stay together.
    pub(super) fn returns<'a>(&self, held: &'a Held) -> Vec<Return<'a>> {
        let mut bars: Vec<&[u8]> = Vec::new();
        for beside in &held.beside {
            let is_passed = self.args.replace_locked && beside.role == Role::Lock;
            bars.extend(beside.bars().filter(|_| !is_passed));
        }
        // The lock is the first Redis key of a record.
        let is_apart = |key: &&HeldKey| self.args.replace_locked && key.role == Some(Role::Lock);
        let (locks, rest): (Vec<_>, Vec<_>) = held.keys.iter().partition(is_apart);
        if locks.is_empty() || rest.is_empty() {
            return vec![Return { keys: [locks, rest].concat(), bars }];
        }
        let lock = Return { keys: locks, bars: Vec::new() };
        vec![lock, Return { keys: rest, bars }]
    }
}

/// Finds out which records of a backup each `--only` means.
///
/// # Errors
/// Usage: no backup, or a newer one.
pub fn only_of(file: &Path, args: &ReturnArgs) -> Result<Only, CommandError> {
    let mut only = Only::of(args.keys.iter().map(|key| key.as_bytes()));
    if !only.is_all() {
        let note = |held: &Held| {
            for key in &held.keys {
                only.note(&held.name, &key.saved.redis_key);
            }
        };
        BackupReader::open(file, note).map_err(not_a_backup)?;
    }
    Ok(only)
}

/// Names each `--only` that means more than one record, and each that means none. `why` says what
/// that means. Gives whether there is any.
///
/// # Errors
/// No: none means a record. Usage: all mean more than one.
pub fn check_only(session: &mut Session, only: &Only, why: &str) -> Result<bool, CommandError> {
    let hint = other_prefixes(only);
    if only.is_all_unknown() {
        return Err(CommandError { hint, ..CommandError::new(Exit::No, why) });
    }
    let mut is_any = false;
    for (text, names) in only.ambiguous() {
        is_any = true;
        session.ui.warning(&name::ambiguous(text, names));
    }
    if only.is_all_ambiguous() {
        return Err(CommandError::usage("--only names more than one record; nothing was changed")
            .hint(name::HINT));
    }
    for text in only.unknown() {
        is_any = true;
        session.ui.warning(&format!("{}: {why}", escape::text(text)));
    }
    if let Some(hint) = hint {
        session.ui.hint(&hint);
    }
    Ok(is_any)
}

/// The full names of the records that an `--only` would mean under another prefix.
fn other_prefixes(only: &Only) -> Option<String> {
    let names: Vec<_> = only.under_other_prefixes().map(|name| word(&name.text())).collect();
    if names.is_empty() { None } else { Some(format!("under another prefix: {}", names.join(" "))) }
}

/// A backup that was checked from its beginning to its end.
pub struct CheckedBackup {
    pub wanted: u64,
    /// Lines that are left out although they may hold a Redis key that was changed.
    pub left_out: u64,
    /// Redis keys that the audit log says were removed, and that the backup does not hold.
    pub missing: u64,
    pub file: String,
    reader: BackupReader,
    /// Where the wanted Redis keys were taken from, each server once.
    places: Vec<Arc<Provenance>>,
    /// Wanted Redis keys of which the backup does not say where they were taken from.
    from_nowhere: u64,
}

impl CheckedBackup {
    /// Checks the whole backup, and says which of its lines are left out. `op` is the operation
    /// whose backup it is, if that is known.
    ///
    /// # Errors
    /// Usage: no backup, one that is still written, a newer one, one that is damaged in the middle,
    /// one of another operation.
    pub fn open(
        session: &mut Session,
        file: &Path,
        of: &KeysToRestore<'_>,
        op: Option<&str>,
    ) -> Result<Self, CommandError> {
        if is_being_written(file) {
            return Err(CommandError::usage(format!(
                "{} is still being written, because its operation has not ended yet",
                file.display()
            ))
            .hint("nothing was restored; wait until the operation ends, or stop it with Ctrl-C"));
        }
        let mut wanted = 0;
        let mut from_nowhere = 0;
        let mut places = Vec::new();
        let look = |held: &Held| {
            if !of.holds(held) {
                return;
            }
            let count = held.keys.len() as u64;
            wanted += count;
            match &held.from {
                Some(from) if places.contains(from) => {}
                Some(from) => places.push(Arc::clone(from)),
                None => from_nowhere += count,
            }
        };
        let reader = BackupReader::open(file, look).map_err(not_a_backup)?;
        if let Some(op) = op {
            is_of_operation(file, &reader, op)?;
        }
        // The log names the file, and is read from other folders.
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let file = path.display().to_string();
        let mut left_out = left_out(session, of.args, &file, reader.damage())?;
        let told_missing = missing_by_log(session, of, &reader, &path, op)?;
        let missing = told_missing.unwrap_or(0);
        if reader.is_blank() && missing == 0 {
            let message =
                format!("{file} contains no lines of a backup; it is empty or lost its content");
            return Err(CommandError::usage(message).hint(NAMED_BY_LOG));
        }
        if missing > 0 {
            let keys = words::counted(missing, "Redis key");
            session.ui.warning(&format!(
                "missing from {file} are {keys} that the operation removed according to the audit \
                log"
            ));
        }
        match reader.closing() {
            Closing::Whole => {}
            Closing::Missing => {
                session.ui.warning(&format!(
                    "{file} has no closing line, because the run was killed or the file is \
                    truncated"
                ));
                // The log of another machine may name more.
                left_out += u64::from(told_missing.is_none() && left_out == 0);
            }
            Closing::Differs => {
                session.ui.warning(&format!(
                    "{file} is incomplete, because its number of lines differs from the one in its \
                    closing line"
                ));
                left_out = left_out.max(1);
            }
        }
        Ok(Self { wanted, left_out, missing, file, reader, places, from_nowhere })
    }

    /// Passes where the backup was taken from this server, or the operator allows another one.
    ///
    /// # Errors
    /// Refused for safety: it was taken somewhere else.
    pub fn may_go_to(
        &self,
        session: &mut Session,
        here: &Provenance,
        elsewhere: bool,
    ) -> Result<(), CommandError> {
        if self.from_nowhere > 0 {
            let some = self.from_nowhere;
            let all = self.wanted;
            let file = &self.file;
            session.ui.warning(&format!(
                "the origin of {some} of {all} Redis keys is unknown, because the first line of \
                {file} is missing"
            ));
        }
        self.places
            .iter()
            .try_for_each(|from| destination::may_go_to(session, &self.file, from, here, elsewhere))
    }

    /// Begins once more with the first line.
    pub fn again(self) -> Result<Self, CommandError> {
        Ok(Self { reader: self.reader.again().map_err(not_a_backup)?, ..self })
    }

    /// The next record of the backup, wanted or not.
    pub fn next(&mut self) -> Result<Option<Held>, CommandError> {
        self.reader.next_held().map_err(not_a_backup)
    }
}

/// How many Redis keys a backup does not hold that its operation removed, according to the audit log
/// of this machine; `None` if the log does not know. A backup that its closing line proves whole
/// holds all of them, and is not read again.
///
/// # Errors
/// Usage: the log, or the backup, cannot be read.
fn missing_by_log(
    session: &Session,
    of: &KeysToRestore<'_>,
    reader: &BackupReader,
    file: &Path,
    op: Option<&str>,
) -> Result<Option<u64>, CommandError> {
    if session.settings.audit_dir().is_err() {
        return Ok(None);
    }
    let (folder, operations, _) = session.operations()?;
    let named = |op: &str| operations.all().find(|operation| operation.op == op);
    let name = file.display().to_string();
    // The first line of the backup may be gone, and the file may have another name by now.
    let operation = match op {
        Some(op) => named(op),
        None => operations
            .all()
            .rfind(|operation| operation.begun_backup.as_deref() == Some(&name))
            .or_else(|| named(&reader.by()?.op)),
    };
    let Some(operation) = operation else { return Ok(None) };
    let is_its_own = reader.by().is_some_and(|by| by.op == operation.op);
    if is_its_own && reader.closing() == Closing::Whole {
        return Ok(Some(0));
    }
    let mut held_keys = HashSet::new();
    let note = |held: &Held| {
        held_keys.extend(held.keys.iter().map(|key| key.saved.redis_key.clone()));
    };
    BackupReader::open(file, note).map_err(not_a_backup)?;
    let mut missing = 0;
    let has_all = log::each_change(&folder, operation, |entry| {
        let is_removed =
            entry.after.as_ref().is_some_and(KeyIdentity::is_absent) && entry.backup.is_some();
        let is_held = held_keys.contains(&entry.redis_key_bytes());
        missing += u64::from(is_removed && of.means(&entry) && !is_held);
    });
    let has_all = has_all.map_err(|error| unreadable(&folder, &error))?;
    Ok((has_all || missing > 0).then_some(missing))
}

/// Says which lines are left out. Gives how many, where one of them may hold a Redis key that was
/// changed, else 0.
fn left_out(
    session: &mut Session,
    args: &ReturnArgs,
    file: &str,
    damage: &Damage,
) -> Result<u64, CommandError> {
    if let Some(gap) = damage.middle.as_ref().filter(|_| !args.skip_damaged) {
        return Err(CommandError::usage(format!("{file}:{}: {}", gap.first, gap.why)).hint(
            "nothing was restored; --skip-damaged skips damaged lines and restores the rest",
        ));
    }
    for gap in damage.middle.iter().chain(&damage.tail) {
        session.ui.warning(&format!("skipped {} of {file}: {}", gap.words(), gap.why));
    }
    Ok(if damage.may_have_held() { damage.lines() } else { 0 })
}

/// Passes unless the first line of a backup names another operation than this one: a file that has
/// the name of another by now holds other records. Without a first line nothing tells.
///
/// # Errors
/// Usage: it is the backup of another operation.
pub fn is_of_operation(file: &Path, reader: &BackupReader, op: &str) -> Result<(), CommandError> {
    let Some(by) = reader.by().filter(|by| by.op != op) else { return Ok(()) };
    let file = file.display();
    let other = escape::text(by.op.as_bytes());
    let command = escape::text(by.command.as_bytes());
    let message =
        format!("{file} is the backup of operation {other} ({command}), not of operation {op}");
    Err(CommandError::usage(message).hint(format!(
        "nothing was changed; find the file whose first line names {op}, and restore it with `idemctl restore FILE`"
    )))
}

fn not_a_backup(error: BackupError) -> CommandError {
    CommandError::usage(error.to_string()).hint(NAMED_BY_LOG)
}
