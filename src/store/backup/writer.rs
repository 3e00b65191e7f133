//! Writes backups: the values that a change is about to remove, as JSON lines that are on the disk
//! before the change.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::entry::{BackupEntry, FORMAT, Maker};
use super::integrity::Count;
use super::line;
use crate::domain::change::provenance::Provenance;
use crate::files::folder_of;
use crate::store::error::StoreError;

/// A backup file that is being written: one JSON object per line, each ending in a checksum of the
/// line (`integrity.rs`).
///
/// A line `{"format":2,"from":{…},"by":{…}}` states where the following entries were backed up, and
/// by which operation. It comes first, and again if the place changes, for example through a
/// failover. Each record has one entry, which is synced before the record changes. It contains the
/// Redis keys that change (`keys`) and the record's other keys (`beside`), as they were together.
/// Up to 500 Redis keys are written at a time.
///
/// A line `{"format":2,"void":[…]}` withdraws entries whose records were left alone after all. For
/// each of these Redis keys (in base64), the last entry before this line is void. If the process is
/// killed between the two lines, one entry too many remains. Its record then still exists, and
/// `restore` never overwrites a record.
///
/// The last line, `{"format":2,"end":{…}}`, counts the lines above. If it is missing, the run was
/// killed, or the file lost its end.
#[derive(Debug)]
pub struct Backup {
    file: File,
    path: PathBuf,
    by: Option<Maker>,
    /// The place in the last such line on the disk, which applies to the next entries.
    from: Option<Provenance>,
    /// The length of the file in bytes, up to the end of the last complete line.
    length: u64,
    /// How many records in the file were changed, as far as is known.
    changed: u64,
    count: Count,
}

impl Backup {
    /// Creates a new file that only its owner can read, and the folders above it.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let file = create_private(path).map_err(|error| file_error(path, &error))?;
        // The lock protects the backup from a cleanup while it is being written. On a file system
        // without locks, only its age protects it.
        let _ = file.try_lock();
        Ok(Self {
            file,
            path: path.to_owned(),
            by: None,
            from: None,
            length: 0,
            changed: 0,
            count: Count::default(),
        })
    }

    /// The same backup, with the operation that writes it.
    #[must_use]
    pub(crate) fn by(self, maker: Maker) -> Self {
        Self { by: Some(maker), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the entries of records that were read at `from`, and waits until they are on the
    /// disk.
    ///
    /// # Errors
    /// The disk is full, or has another error. The file is then unchanged.
    pub async fn append<'a>(
        &mut self,
        from: &Provenance,
        batch: impl Iterator<Item = BackupEntry<'a>>,
    ) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        let mut written = self.count;
        let mut records = 0;
        if self.from.as_ref() != Some(from) {
            let from_line = json!({ "format": FORMAT, "from": from, "by": self.by });
            line::write(&mut lines, &from_line);
            written.add(lines.trim_ascii_end(), 0);
        }
        for entry in batch {
            let start = lines.len();
            entry.write_line(&mut lines);
            written.add(lines[start..].trim_ascii_end(), entry.keys.len() as u64);
            records += 1;
        }
        if records == 0 {
            return Ok(());
        }
        let length = lines.len() as u64;
        if let Err(error) = self.write_synced(lines).await {
            self.cut();
            return Err(file_error(&self.path, &error));
        }
        self.from = Some(from.clone());
        self.length += length;
        self.changed += records;
        self.count = written;
        Ok(())
    }

    /// Writes on a thread of its own, because a disk may be slow.
    async fn write_synced(&self, lines: Vec<u8>) -> std::io::Result<()> {
        let mut file = self.file.try_clone()?;
        let at = self.length;
        let written = tokio::task::spawn_blocking(move || {
            write(&mut file, at, &lines)?;
            file.sync_data()
        });
        written.await?
    }

    /// Withdraws the last entries of these Redis keys, because their records were not changed. If
    /// this cannot be written, the entries remain, as after a crash.
    pub fn withdraw(&mut self, left_alone: &[&[u8]]) {
        if left_alone.is_empty() {
            return;
        }
        self.changed = self.changed.saturating_sub(left_alone.len() as u64);
        let mut line = Vec::new();
        line::write(&mut line, &line::void(left_alone));
        match write(&mut self.file, self.length, &line) {
            Ok(()) => {
                self.length += line.len() as u64;
                self.count.add(line.trim_ascii_end(), 0);
            }
            Err(_) => self.cut(),
        }
    }

    /// How many of its records were changed, as far as is known.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Closes the file with its last line, or removes it if none of its records was changed.
    /// Returns its path if it remains. If the last line cannot be written, the file ends as after a
    /// crash.
    pub fn close(mut self) -> Option<PathBuf> {
        if self.changed > 0 {
            let mut line = Vec::new();
            line::write(&mut line, &json!({ "format": FORMAT, "end": self.count }));
            let mut written = write(&mut self.file, self.length, &line);
            if written.is_ok() {
                written = self.file.sync_data();
            }
            if written.is_err() {
                self.cut();
            }
            return Some(self.path);
        }
        drop(self.file);
        // A backup that is not needed does no harm.
        let _ = fs::remove_file(&self.path);
        None
    }

    /// Cuts off everything after the last complete line.
    fn cut(&mut self) {
        // If even this fails, part of a line remains. The reader accepts that at the end of a file.
        let _ = self.file.set_len(self.length);
    }
}

/// Writes after the last complete line, even if an incomplete one could not be removed before.
fn write(file: &mut File, at: u64, lines: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(lines)
}

/// Creates a new file that only its owner can read, and the folders above it.
pub(in crate::store) fn create_private(path: &Path) -> std::io::Result<File> {
    create_folder(path)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    sync_folder(path)?;
    Ok(file)
}

/// Syncs the folder of a file, because the file's name must also survive a crash.
pub(in crate::store) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Creates the folders above a file, for this user alone.
pub(in crate::store) fn create_folder(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder_of(path))
}

pub(in crate::store) fn file_error(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::File { path: path.display().to_string(), why: error.to_string() }
}
