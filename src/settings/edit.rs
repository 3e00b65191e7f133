//! Edits the config file: changes only what is requested and keeps the rest of the file.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value, value};

use super::config::Config;
use super::file::{ConfigFile, LARGEST};
use crate::exit::CommandError;
use crate::files;

/// The suffix of the previous file's name.
const FORMER: &str = ".bak";

/// The config file while it is being edited.
pub(super) struct Edit<'a> {
    path: &'a Path,
    before: &'a str,
    pub(super) document: DocumentMut,
}

impl<'a> Edit<'a> {
    /// # Errors
    /// Usage: there is no place for a config file.
    pub(super) fn open(file: &'a ConfigFile) -> Result<Self, CommandError> {
        let path = place(file)?;
        let parsed = file.text().parse();
        let document = parsed.map_err(|error: toml_edit::TomlError| cannot_write(path, &error))?;
        Ok(Self { path, before: file.text(), document })
    }

    /// The table of all contexts.
    pub(super) fn contexts(&mut self) -> Option<&mut dyn TableLike> {
        table(self.document.as_table_mut(), "contexts", true)
    }

    pub(super) fn cannot(&self, why: impl std::fmt::Display) -> CommandError {
        cannot_write(self.path, &why)
    }

    /// Writes the file if anything changed. Returns the path of the previous file, if there was
    /// one.
    ///
    /// # Errors
    /// Usage: the result is not a valid config file, another run has written the file since it was
    /// read, or it cannot be written. The file then remains unchanged.
    pub(super) fn save(&self, _lock: &ConfigLock) -> Result<Option<PathBuf>, CommandError> {
        let text = self.document.to_string();
        let now = match files::read_text(self.path, LARGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| self.cannot(error))?,
        };
        // The operator agreed to a change of the earlier content. Compared in spite of the lock,
        // because `schema adopt` takes it only after the question, and editors do not take it.
        if now != self.before {
            return Err(self
                .cannot("it changed meanwhile")
                .hint("nothing was written; run the command again"));
        }
        if text == self.before {
            return Ok(None);
        }
        // A mistake in the edit must not produce a file that every later command rejects.
        toml::from_str::<Config>(&text).map_err(|error| self.cannot(error.message()))?;
        write(self.path, &text).map_err(|error| self.cannot(error))
    }
}

/// How long a run waits for another run to write the config file. No run asks a question while it
/// holds the lock, so the wait is short unless another run was stopped.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Exclusive access to the config file for reading, changing and writing. Without it, one run could
/// overwrite the changes of another. The lock is on the folder, because the file itself is
/// replaced.
pub(super) struct ConfigLock {
    _folder: File,
}

impl ConfigLock {
    /// Waits for other runs, and reads the file as they left it.
    ///
    /// # Errors
    /// Usage: there is no place for a config file, the folder cannot be locked in time, or the file
    /// cannot be read.
    pub(super) fn take(file: &ConfigFile) -> Result<(Self, ConfigFile), CommandError> {
        let path = place(file)?;
        let folder = lock_folder(path).map_err(|error| cannot_write(path, &error))?;
        Ok((Self { _folder: folder }, file.again()?))
    }
}

fn lock_folder(path: &Path) -> io::Result<File> {
    // If the file is a link, lock the folder of its target.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    // The folder must exist before it can be locked, even if there is no config file yet.
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let folder = File::open(parent)?;
    let since = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if since.elapsed() > MAX_WAIT => {
                return Err(io::Error::other("another run of idemctl has been writing it for 10s"));
            }
            // A file lock has no timeout of its own, so the wait is a loop.
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The path of the config file, existing or not.
fn place(file: &ConfigFile) -> Result<&Path, CommandError> {
    file.path().ok_or_else(|| {
        CommandError::usage(
            "no folder for a config file, because neither XDG_CONFIG_HOME nor HOME is set",
        )
        .hint("--config FILE")
    })
}

fn cannot_write(path: &Path, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::usage(format!("cannot write the config file {}: {why}", path.display()))
}

/// Makes a context the default one: `default_context` in the file.
///
/// # Errors
/// Usage: there is no such context, or the file cannot be written.
pub(crate) fn use_context(file: &ConfigFile, name: &str) -> Result<(), CommandError> {
    let (lock, file) = ConfigLock::take(file)?;
    file.context(name)?;
    let mut edit = Edit::open(&file)?;
    set(edit.document.as_table_mut(), "default_context", name.into());
    edit.save(&lock)?;
    Ok(())
}

/// Sets a field and keeps the comment after the previous value.
pub(super) fn set(within: &mut dyn TableLike, name: &str, new: Value) {
    match within.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            let around = old.decor().clone();
            *old = new;
            *old.decor_mut() = around;
        }
        None => {
            within.insert(name, value(new));
        }
    }
}

/// The table of this name, created if necessary; `None` if something else has the name.
pub(super) fn table<'a>(
    within: &'a mut dyn TableLike,
    name: &str,
    is_implicit: bool,
) -> Option<&'a mut dyn TableLike> {
    if !within.contains_key(name) {
        let mut new = Table::new();
        // The outer tables need no header of their own, as in `[contexts.NAME]`.
        new.set_implicit(is_implicit);
        within.insert(name, Item::Table(new));
    }
    within.get_mut(name)?.as_table_like_mut()
}

/// Writes the file completely or not at all, with its previous permissions. If it is a link, its
/// target is written. The previous file is kept next to it. Only its owner can read a new file.
pub(super) fn write(path: &Path, text: &str) -> io::Result<Option<PathBuf>> {
    // Not `exists`, because that is false for a link whose target is missing. Writing here would
    // replace the link.
    if path.symlink_metadata().is_err() {
        let folder = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The file may contain passwords.
        replace(path, text.as_bytes(), Permissions::from_mode(0o600))?;
        return Ok(None);
    }
    let path = fs::canonicalize(path)?;
    let rights = fs::metadata(&path)?.permissions();
    let mut former = OsString::from(&path);
    former.push(FORMER);
    let former = PathBuf::from(former);
    // The copy comes first. If it cannot be written, the config file stays as it is.
    replace(&former, &fs::read(&path)?, rights.clone())?;
    replace(&path, text.as_bytes(), rights)?;
    Ok(Some(former))
}

fn replace(path: &Path, bytes: &[u8], rights: Permissions) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().prefix(".config-").tempfile_in(folder)?;
    new.write_all(bytes)?;
    // Content and permissions must be complete before the rename makes the file visible.
    new.as_file().set_permissions(rights)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}
