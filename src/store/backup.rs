//! Backups: what a change is about to remove, as JSON lines, on the disk before it goes.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::error::StoreError;

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
#[derive(Debug)]
pub struct Backup {
    file: File,
    path: PathBuf,
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
        Ok(Self { file, path: path.to_owned() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a Redis key and waits until it is on the disk.
    ///
    /// # Errors
    /// Disk full, or whatever else the disk says.
    pub fn append(&mut self, saved: &Saved, about: &About) -> Result<(), StoreError> {
        let line = json!({
            "format": 1,
            "redis_key_base64": STANDARD.encode(&saved.redis_key),
            "dump_base64": STANDARD.encode(&saved.dump),
            "ttl_ms": saved.ttl_ms,
            "expires_at_ms": saved.expires_at_ms,
            "schema": about.schema,
            "key": String::from_utf8_lossy(&about.key),
            "state": about.state,
        });
        let write = writeln!(self.file, "{line}").and_then(|()| self.file.sync_data());
        write.map_err(|error| file_error(&self.path, &error))
    }

    /// Removes the file, for nothing of what it holds was removed from the server.
    pub fn discard(self) {
        drop(self.file);
        // A backup too many does no harm.
        let _ = fs::remove_file(&self.path);
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
