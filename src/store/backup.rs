//! Backups: what a change is about to remove, as JSON lines, on the disk before it goes.

mod checksum;
mod reader;

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::json;

use super::error::StoreError;

pub use reader::{BackupError, BackupReader, Held};

/// The version of the file's format.
const FORMAT: u64 = 1;

/// What `RESTORE` needs of one Redis key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The Redis key.
    pub redis_key: Vec<u8>,
    /// The bytes of DUMP.
    pub dump: Vec<u8>,
    /// The milliseconds it had left; `None` without expiry.
    pub ttl_ms: Option<u64>,
    /// When it expires, in milliseconds since the epoch by the server's clock.
    pub expires_at_ms: Option<u64>,
}

/// Whose record a saved Redis key was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The schema's name.
    pub schema: String,
    /// The idempotency key.
    pub key: Vec<u8>,
    /// The record's state.
    pub state: &'static str,
}

/// A backup file being written: one JSON object a line.
///
/// A Redis key has a line, synced before it is changed; up to 500 are written at a time. What was left alone after all is
/// taken back by a line `{"format":1,"void":[…]}` behind them: for each of these Redis keys (in base64) the last line
/// before it does not count. A process killed between the two leaves a line too many: the key is still there then, and
/// `restore` never writes over one.
#[derive(Debug)]
pub struct Backup {
    file: File,
    path: PathBuf,
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
        Ok(Self { file, path: path.to_owned(), length: 0, changed: 0 })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends some Redis keys and waits until they are on the disk.
    ///
    /// # Errors
    /// Disk full, or whatever else the disk says; the file is then as it was.
    pub async fn append<'a>(&mut self, batch: impl Iterator<Item = (&'a Saved, &'a About)>) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        let mut count = 0;
        for (saved, about) in batch {
            // Text written to memory cannot fail.
            let _ = serde_json::to_writer(&mut lines, &Line::new(saved, about));
            lines.push(b'\n');
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
        let void: Vec<_> = left_alone.iter().map(|redis_key| STANDARD.encode(redis_key)).collect();
        let line = format!("{}\n", json!({ "format": FORMAT, "void": void }));
        match write(&mut self.file, self.length, line.as_bytes()) {
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

/// A line of the file, field by field.
#[derive(Serialize)]
struct Line<'a> {
    format: u64,
    redis_key_base64: String,
    dump_base64: String,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    schema: &'a str,
    key: Cow<'a, str>,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
}

impl<'a> Line<'a> {
    fn new(saved: &Saved, about: &'a About) -> Self {
        let key = String::from_utf8_lossy(&about.key);
        Self {
            format: FORMAT,
            redis_key_base64: STANDARD.encode(&saved.redis_key),
            dump_base64: STANDARD.encode(&saved.dump),
            ttl_ms: saved.ttl_ms,
            expires_at_ms: saved.expires_at_ms,
            schema: &about.schema,
            // Text that is not borrowed is not what the bytes say.
            key_base64: matches!(key, Cow::Owned(_)).then(|| STANDARD.encode(&about.key)),
            key,
            state: about.state,
        }
    }
}

pub(super) fn create_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

pub(super) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

pub(super) fn file_error(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::File { path: path.display().to_string(), why: error.to_string() }
}
