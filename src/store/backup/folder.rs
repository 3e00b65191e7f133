//! The backups in a folder: which files are backups, the content of each, and which are no longer
//! needed.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::entry::Maker;
use super::integrity::Closing;
use super::reader::BackupReader;
use crate::domain::change::provenance::Provenance;
use crate::files;

/// A backup in a folder.
#[derive(Debug, Clone)]
pub(crate) struct BackupFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The time of the last write.
    pub(crate) modified: SystemTime,
    /// The operation that wrote it; `None` if the first line is damaged.
    pub(crate) by: Option<Maker>,
    /// Where the first of its Redis keys was backed up.
    pub(crate) from: Option<Provenance>,
    pub(crate) redis_keys: u64,
    pub(crate) state: BackupState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BackupState {
    Complete,
    /// Why some of its lines cannot be used.
    Damaged(String),
    /// Its operation is still running.
    BeingWritten,
    /// It has no closing line, and the possible reasons. Its lines are complete.
    Unended(String),
}

/// The content of a folder.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// The backups, the oldest first.
    pub(crate) backups: Vec<BackupFile>,
    /// Files that are not backups, or cannot be read, with the reasons.
    pub(crate) others: Vec<(PathBuf, String)>,
}

impl Folder {
    /// Reads every file of a folder. A missing folder counts as empty.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut found = Self::default();
        for entry in entries {
            let path = entry?.path();
            match look(&path) {
                Ok(backup) => found.backups.push(backup),
                Err(why) => found.others.push((path, why)),
            }
        }
        // The path orders files that were written at the same time.
        found
            .backups
            .sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
        found.others.sort();
        Ok(found)
    }
}

impl BackupFile {
    /// Removes the file, if it did not change since it was listed and no run is writing to it.
    ///
    /// # Errors
    /// Why the file was not removed.
    pub(crate) fn remove(&self) -> Result<(), String> {
        // The user decided about the file as it was listed.
        let metadata = self.path.symlink_metadata().map_err(|error| error.to_string())?;
        let is_same = metadata.is_file()
            && metadata.len() == self.bytes
            && modified(&metadata) == self.modified;
        if !is_same {
            return Err("it changed since it was shown".to_owned());
        }
        let file = File::open(&self.path).map_err(|error| error.to_string())?;
        if is_locked(&file) {
            return Err("its operation has not ended yet".to_owned());
        }
        fs::remove_file(&self.path).map_err(|error| error.to_string())
    }
}

/// Reads a file as a backup.
///
/// # Errors
/// Why the file is not a backup.
fn look(path: &Path) -> Result<BackupFile, String> {
    let metadata = path.symlink_metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    // Asked before the read. A run may close its backup during the read. Afterwards its lock is
    // gone, although the closing line was not read.
    let is_being_written = is_being_written(path);
    let mut redis_keys = 0;
    let mut from = None;
    let reader = BackupReader::open(path, |held| {
        redis_keys += held.keys.len() as u64;
        if from.is_none() {
            from = held.from.as_deref().cloned();
        }
    });
    let reader = reader.map_err(|error| error.to_string())?;
    // A run that was killed before its first change leaves an empty file.
    if reader.is_blank() && metadata.len() > 0 {
        return Err("it contains no lines of a backup".to_owned());
    }
    let damage = reader.damage();
    let gap = damage.middle.as_ref().or(damage.tail.as_ref());
    // Decided first, because a file that is still being written has no closing line yet.
    let state = if is_being_written {
        BackupState::BeingWritten
    } else if let Some(gap) = gap {
        BackupState::Damaged(format!("{}: {}", gap.words(), gap.why))
    } else {
        match reader.closing() {
            Closing::Whole => BackupState::Complete,
            Closing::Missing => BackupState::Unended(
                "its run was killed, its disk was full, or the file is truncated".to_owned(),
            ),
            Closing::Differs => BackupState::Damaged(
                "its number of lines differs from the one in its closing line".to_owned(),
            ),
        }
    };
    Ok(BackupFile {
        path: path.to_owned(),
        bytes: metadata.len(),
        modified: modified(&metadata),
        by: reader.by().cloned(),
        from,
        redis_keys,
        state,
    })
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// True while a run writes to the backup at this path.
pub(crate) fn is_being_written(path: &Path) -> bool {
    files::open_regular(path).is_ok_and(|file| is_locked(&file))
}

/// True while a run writes to the backup. The lock is shared, so that another reader does not look
/// like a writer. Without file locks, no writer is found.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
