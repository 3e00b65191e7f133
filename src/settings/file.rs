//! The config file: its path, its content, and the lines of its fields.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::config::{Config, ContextConfig};
use super::environment::Environment;
use super::origin::{Origin, Sourced};
use crate::args::ConnectionArgs;
use crate::domain::removed::{self, RemovedKind};
use crate::exit::CommandError;
use crate::files;

/// Larger than any config file. The limit keeps a wrong path, such as that of a device without an
/// end, from filling the memory.
pub(super) const LARGEST: u64 = 1024 * 1024;

/// The config file as it was read. A missing file counts as empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigFile {
    path: Option<PathBuf>,
    text: String,
    config: Config,
}

impl ConfigFile {
    /// Reads the file that the flag or the variable names, or else the default file if it exists.
    ///
    /// # Errors
    /// Usage: the named file does not exist, or the file is invalid; the error has the line.
    pub(super) fn read(
        args: &ConnectionArgs,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        let named = args.config.clone().or_else(|| environment.config());
        let usual = environment.config_dir().map(|folder| folder.join("config.toml"));
        match (named, usual) {
            (Some(path), _) => Self::parse(path, environment),
            (None, Some(path)) if path.exists() => Self::parse(path, environment),
            // Most users have no config file. The path is kept, because `context set` creates the
            // file there.
            (None, path) => Ok(Self { path, ..Self::default() }),
        }
    }

    /// The same for a command that creates the file if it does not exist.
    ///
    /// # Errors
    /// Usage: the file is invalid.
    pub(super) fn read_or_new(
        args: &ConnectionArgs,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        match args.config.clone().or_else(|| environment.config()) {
            Some(path) if !path.exists() => Ok(Self { path: Some(path), ..Self::default() }),
            _ => Self::read(args, environment),
        }
    }

    fn parse(path: PathBuf, environment: &Environment) -> Result<Self, CommandError> {
        let text = files::read_text(&path, LARGEST).map_err(|error| cannot_read(&path, &error))?;
        let mut config: Config =
            toml::from_str(&text).map_err(|error| invalid(&path, &text, &error))?;
        if config.contexts.values().any(ContextConfig::names_a_program) && others_can_write(&path) {
            let message =
                format!("{} names a command to run, and can be written by others", path.display());
            return Err(CommandError::usage(message)
                .hint("make it writable only to you: its owner is you or root, and chmod go-w"));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for written in config.contexts.values_mut().flat_map(ContextConfig::paths) {
            // A relative path refers to the folder of the file, wherever the command runs.
            *written = match (written.strip_prefix("~"), environment.home()) {
                (Ok(below), Some(home)) => home.join(below),
                _ => folder.join(&*written),
            };
        }
        Ok(Self { path: Some(path), text, config })
    }

    /// Reads the file again for editing, with the paths of its contexts as written.
    ///
    /// # Errors
    /// Usage: the file cannot be read, or is invalid.
    pub(super) fn again(&self) -> Result<Self, CommandError> {
        let Some(path) = self.path.clone().filter(|path| path.exists()) else {
            return Ok(Self { path: self.path.clone(), ..Self::default() });
        };
        let text = files::read_text(&path, LARGEST).map_err(|error| cannot_read(&path, &error))?;
        let config = toml::from_str(&text)
            .map_err(|error: toml::de::Error| cannot_read(&path, &error.message()))?;
        Ok(Self { path: Some(path), text, config })
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The path for messages.
    pub(crate) fn shown_path(&self) -> String {
        self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn contexts(&self) -> &BTreeMap<String, ContextConfig> {
        &self.config.contexts
    }

    /// The default context of the file.
    pub(crate) fn default_context(&self) -> Option<&str> {
        self.config.default_context.as_deref()
    }

    /// The name of the chosen context, from the flag, the variable or the file.
    pub(super) fn chosen(
        &self,
        args: &ConnectionArgs,
        environment: &Environment,
    ) -> Option<Sourced<String>> {
        if let Some(name) = &args.context {
            return Some(Sourced::new(name.clone(), Origin::Flag("--context")));
        }
        let variable = "IDEMCTL_CONTEXT";
        if let Some(name) = environment.get(variable) {
            return Some(Sourced::new(name.to_owned(), Origin::Variable(variable)));
        }
        let name = self.config.default_context.clone()?;
        Some(Sourced::new(name, Origin::File("default_context")))
    }

    /// # Errors
    /// Usage: there is no context of that name.
    pub(crate) fn context(&self, name: &str) -> Result<&ContextConfig, CommandError> {
        if let Some(context) = self.config.contexts.get(name) {
            return Ok(context);
        }
        let known: Vec<_> = self.config.contexts.keys().map(String::as_str).collect();
        let known =
            if known.is_empty() { "the config file has none".to_owned() } else { known.join(", ") };
        Err(CommandError::usage(format!("there is no context `{name}`"))
            .hint(format!("contexts: {known}")))
    }

    /// The line of a field such as `["contexts", "prod", "tls", "cacert"]`; a number is an index
    /// into a list.
    pub(super) fn line_of(&self, keys: &[&str]) -> Option<usize> {
        let document = toml_edit::Document::parse(self.text.as_str()).ok()?;
        let mut item = document.as_item();
        for key in keys {
            item = match item.as_array() {
                Some(_) => item.get(key.parse::<usize>().ok()?)?,
                None => item.get(key)?,
            };
        }
        Some(line_at(&self.text, start_of(item)?))
    }

    pub(super) fn warning(&self) -> Option<String> {
        let path = self.path.as_deref()?;
        let holds_a_password = self.config.contexts.values().any(ContextConfig::holds_a_password);
        if holds_a_password && others_can_read(path) {
            return Some(format!("{} {READABLE} {}", path.display(), chmod(path)));
        }
        None
    }
}

fn cannot_read(path: &Path, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::usage(format!("cannot read the config file {}: {why}", path.display()))
}

/// The error for a file that is not a valid config file, with its line.
fn invalid(path: &Path, text: &str, error: &toml::de::Error) -> CommandError {
    let path = path.display();
    let line = match error.span() {
        Some(span) => line_at(text, span.start),
        None => 1,
    };
    // The line's content may be a password, so the message has only its number.
    let stop = CommandError::usage(format!("{path}:{line}: {}", error.message()));
    match removed::field_in(RemovedKind::Setting, error.message()) {
        Some(removed) => stop.hint(removed.hint()),
        None => stop,
    }
}

/// The warning about a secret that other users can read.
pub(super) const READABLE: &str = "holds a password and can be read by others:";

pub(super) fn chmod(path: &Path) -> String {
    format!("chmod 600 {}", path.display())
}

/// True if the file's mode lets users other than its owner read it.
pub(super) fn others_can_read(path: &Path) -> bool {
    let Ok(data) = std::fs::metadata(path) else { return false };
    // A pipe or a device, such as `/dev/stdin`, does not keep the secret.
    data.is_file() && data.permissions().mode() & 0o044 != 0
}

/// True if a user other than this one and root can write the file.
fn others_can_write(path: &Path) -> bool {
    let Ok(data) = std::fs::metadata(path) else { return true };
    let is_own = data.uid() == 0 || data.uid() == rustix::process::geteuid().as_raw();
    !is_own || data.mode() & 0o022 != 0
}

/// The beginning of an item. A table without a line of its own begins with its first field.
fn start_of(item: &toml_edit::Item) -> Option<usize> {
    if let Some(span) = item.span() {
        return Some(span.start);
    }
    let fields = item.as_table_like()?.iter();
    fields.filter_map(|(_, field)| start_of(field)).min()
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}
