//! Backups: what a change is about to remove, as JSON lines, on the disk before it goes.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::entry::{BackupEntry, Maker};
use super::integrity::Count;
use super::line::{self, ClosingLine, EntryLine, FromLine, VoidLine};
use crate::domain::change::provenance::Provenance;
use crate::store::error::StoreError;

/// A backup file being written: one JSON object per line, each ended by a checksum over the line (`checksum.rs`).
///
/// A line `{"format":2,"from":{…},"by":{…}}` says where the entries below were taken from, and which operation
/// wrote them: it comes first, and again when that changes, as by a failover. Each record has one entry, synced before the
/// record is changed: its Redis keys that change (`keys`), and its others (`beside`), as they were together. Up to 500 Redis keys are
/// written at a time.
///
/// A line `{"format":2,"void":[…]}` takes entries back whose records were left alone after all: for each of these Redis
/// keys (in base64) the last entry before does not count. A process killed between the two leaves an entry too many: the
/// record is still there then, and `restore` never writes over one.
///
/// The last line, `{"format":2,"end":{…}}`, counts what is above. Without it the run was killed, or the file lost its end.
#[derive(Debug)]
pub struct Backup {
    file: File,
    path: PathBuf,
    by: Option<Maker>,
    /// What the last line on the disk that says so says of where what follows was taken from.
    from: Option<Provenance>,
    /// The bytes that are written, up to the end of the last whole line.
    length: u64,
    /// Records of the file that were changed, as far as is known.
    changed: u64,
    count: Count,
}

impl Backup {
    /// Creates a new file, readable by its owner alone, and the folders above it.
    ///
    /// # Errors
    /// When it exists already or cannot be created.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let wrong = |error: std::io::Error| file_error(path, &error);
        create_folder(path).map_err(wrong)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private(&mut options);
        let file = options.open(path).map_err(wrong)?;
        // The file's name has to outlive a crash too.
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(wrong)?;
        // Whoever tidies up leaves a backup alone that is being written. Where files have no locks, its age does that.
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

    /// The same, which says whose it is.
    #[must_use]
    pub(crate) fn by(self, maker: Maker) -> Self {
        Self { by: Some(maker), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the entries of some records that are taken `from` there, and waits until they are on the disk.
    ///
    /// # Errors
    /// Disk full, or whatever else the disk says; the file is then as it was.
    pub async fn append<'a>(
        &mut self,
        from: &Provenance,
        batch: impl Iterator<Item = BackupEntry<'a>>,
    ) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        let mut written = self.count;
        let mut records = 0;
        if self.from.as_ref() != Some(from) {
            line::write(&mut lines, &FromLine::new(from, self.by.as_ref()));
            written.add(lines.trim_ascii_end(), 0);
        }
        for entry in batch {
            let start = lines.len();
            EntryLine::new(&entry).write(&mut lines);
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

    /// On a thread of its own, for a disk may take its time.
    async fn write_synced(&self, lines: Vec<u8>) -> std::io::Result<()> {
        let (mut file, at) = (self.file.try_clone()?, self.length);
        let written = tokio::task::spawn_blocking(move || {
            write(&mut file, at, &lines)?;
            file.sync_data()
        });
        written.await?
    }

    /// Takes back the last entries of these Redis keys, because their records were not changed. If that cannot be written
    /// they stay, as after a crash.
    pub fn take_back(&mut self, left_alone: &[&[u8]]) {
        if left_alone.is_empty() {
            return;
        }
        self.changed = self.changed.saturating_sub(left_alone.len() as u64);
        let mut line = Vec::new();
        line::write(&mut line, &VoidLine::new(left_alone));
        match write(&mut self.file, self.length, &line) {
            Ok(()) => {
                self.length += line.len() as u64;
                self.count.add(line.trim_ascii_end(), 0);
            }
            Err(_) => self.cut(),
        }
    }

    /// How many of the records it holds were changed, as far as is known.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Closes the file with its last line, and removes it when nothing of what it holds was changed. Gives its path when
    /// it stays. If the last line cannot be written the file ends as after a crash.
    pub fn close(mut self) -> Option<PathBuf> {
        if self.changed > 0 {
            let mut line = Vec::new();
            line::write(&mut line, &ClosingLine::new(self.count));
            let written =
                write(&mut self.file, self.length, &line).and_then(|()| self.file.sync_data());
            if written.is_err() {
                self.cut();
            }
            return Some(self.path);
        }
        self.discard();
        None
    }

    /// Removes the file, for nothing of what it holds was changed.
    pub fn discard(self) {
        drop(self.file);
        // A backup too many does no harm.
        let _ = fs::remove_file(&self.path);
    }

    /// Cuts off what is behind the last whole line that counts.
    fn cut(&mut self) {
        // Where even this fails a part of a line is left: no more than the reader puts up with at the end.
        let _ = self.file.set_len(self.length);
    }
}

/// Writes behind the last whole line, also when one was torn before and could not be taken back.
fn write(file: &mut File, at: u64, lines: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(lines)
}

pub(in crate::store) fn create_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

pub(in crate::store) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

pub(in crate::store) fn file_error(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::File { path: path.display().to_string(), why: error.to_string() }
}
