//! Backups: what a change is about to remove, as JSON lines, on the disk before it goes.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::beside::Beside;
use super::line::{self, FromLine, HeldLine, VoidLine};
use super::maker::Maker;
use super::saved::{About, Saved};
use crate::domain::change::provenance::Provenance;
use crate::domain::record::Observation;
use crate::store::error::StoreError;

/// A backup file being written: one JSON object a line, each ended by a checksum over the line (`checksum.rs`).
///
/// A line `{"format":1,"void":[],"from":{…},"by":{…}}` says where the lines behind were taken from, and which operation
/// wrote them: it stands first, and again where that changes, as by a failover. A Redis key has a line, synced before it is changed; up to 500 are written at a
/// time. Where its record has another Redis key, `beside` names that one, its role, and whether something stood `there`.
///
/// What was left alone after all is taken back by a line `{"format":1,"void":[…]}` behind: for each of these Redis keys
/// (in base64) the last line before does not count. A process killed between the two leaves a line too many: the key is
/// still there then, and `restore` never writes over one.
#[derive(Debug)]
pub struct Backup {
    file: File,
    path: PathBuf,
    by: Option<Maker>,
    /// What the last line on the disk that says so says of where what follows was taken from.
    from: Option<Provenance>,
    /// The bytes that are written, up to the end of the last whole line.
    length: u64,
    changed: u64,
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
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(wrong)?;
        // Whoever tidies up leaves a backup alone that is being written. Where files have no locks, its age does that.
        let _ = file.try_lock();
        Ok(Self { file, path: path.to_owned(), by: None, from: None, length: 0, changed: 0 })
    }

    /// The same, which says whose it is.
    #[must_use]
    pub(crate) fn by(self, maker: Maker) -> Self {
        Self { by: Some(maker), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends some Redis keys that are taken `from` there, each with whose record it is and what was seen of that, and
    /// waits until they are on the disk.
    ///
    /// # Errors
    /// Disk full, or whatever else the disk says; the file is then as it was.
    pub async fn append<'a>(
        &mut self,
        from: &Provenance,
        batch: impl Iterator<Item = (&'a Saved, &'a About, &'a Observation)>,
    ) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        let mut count = 0;
        if self.from.as_ref() != Some(from) {
            line::write(&mut lines, &FromLine::new(from, self.by.as_ref()));
        }
        for (saved, about, seen) in batch {
            HeldLine::new(saved, about, Beside::of(seen, &saved.redis_key).as_ref()).write(&mut lines);
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let length = lines.len() as u64;
        if let Err(error) = self.write_synced(lines).await {
            self.cut();
            return Err(file_error(&self.path, &error));
        }
        self.from = Some(from.clone());
        self.length += length;
        self.changed += count;
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

    /// Takes back these of the last Redis keys, for they were not changed. Where that cannot be written they stay,
    /// as after a crash.
    pub fn take_back(&mut self, left_alone: &[&[u8]]) {
        if left_alone.is_empty() {
            return;
        }
        self.changed = self.changed.saturating_sub(left_alone.len() as u64);
        let mut line = Vec::new();
        line::write(&mut line, &VoidLine::new(left_alone));
        match write(&mut self.file, self.length, &line) {
            Ok(()) => self.length += line.len() as u64,
            Err(_) => self.cut(),
        }
    }

    /// How many of the Redis keys it holds were changed, as far as is known.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Closes the file, and removes it when nothing of what it holds was changed. Gives its path when it stays.
    pub fn close(self) -> Option<PathBuf> {
        if self.changed > 0 {
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
