//! The config file: its path, its content, and the lines of its fields.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::config::{Config, ContextConfig};
use super::environment::Environment;
use super::origin::{Origin, Sourced};
use crate::args::ConnectionArgs;
use crate::exit::CommandError;
use crate::files;

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
        let text = files::read_text(&path, LARGEST).map_err(|error| {
            CommandError::usage(format!("cannot read the config file {}: {error}", path.display()))
        })?;
        let mut config: Config = toml::from_str(&text).map_err(|error: toml::de::Error| {
            if let Some(line) = line_of_renamed_table(&text) {
                let message = format!(
                    "{}:{line}: the table `context` is called `contexts` since 0.3",
                    path.display()
                );
                return CommandError::usage(message)
                    .hint("rename each [context.NAME] to [contexts.NAME]");
            }
            let line = error.span().map_or(1, |span| line_at(&text, span.start));
            // The line's content may be a password, so the message has only its number.
            CommandError::usage(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for written in config.contexts.values_mut().flat_map(ContextConfig::paths) {
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
        let wrong = |why: &dyn std::fmt::Display| {
            CommandError::usage(format!("cannot read the config file {}: {why}", path.display()))
        };
        let text = files::read_text(&path, LARGEST).map_err(|error| wrong(&error))?;
        let config =
            toml::from_str(&text).map_err(|error: toml::de::Error| wrong(&error.message()))?;
        Ok(Self { path: Some(path), text, config })
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
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
        let flag = args.context.clone().map(|name| Sourced::new(name, Origin::Flag("--context")));
        let variable =
            || environment.get("IDEMCTL_CONTEXT").map(|name| (name.to_owned(), "IDEMCTL_CONTEXT"));
        let variable =
            || variable().map(|(name, variable)| Sourced::new(name, Origin::Variable(variable)));
        let own = || self.config.default_context.clone();
        flag.or_else(variable)
            .or_else(|| own().map(|name| Sourced::new(name, Origin::File("default_context"))))
    }

    /// # Errors
    /// Usage: there is no context of that name.
    pub(crate) fn context(&self, name: &str) -> Result<&ContextConfig, CommandError> {
        self.config.contexts.get(name).ok_or_else(|| {
            let known: Vec<_> = self.config.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "the config file has none".to_owned()
            } else {
                known.join(", ")
            };
            CommandError::usage(format!("there is no context `{name}`"))
                .hint(format!("contexts: {known}"))
        })
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
        let holds = self.config.contexts.values().any(ContextConfig::holds_a_password);
        (holds && others_can_read(path))
            .then(|| format!("{} {READABLE} {}", path.display(), chmod(path)))
    }
}

/// The warning about a secret that other users can read.
pub(super) const READABLE: &str = "holds a password and can be read by others:";

pub(super) fn chmod(path: &Path) -> String {
    format!("chmod 600 {}", path.display())
}

/// True if the file's mode lets users other than its owner read it.
pub(super) fn others_can_read(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o044 != 0)
}

/// The line of the table of contexts under the name that earlier versions used.
fn line_of_renamed_table(text: &str) -> Option<usize> {
    let document = toml_edit::Document::parse(text).ok()?;
    let table = document.as_item().get("context")?;
    Some(line_at(text, start_of(table)?))
}

/// The beginning of an item. A table without a line of its own begins with its first field.
fn start_of(item: &toml_edit::Item) -> Option<usize> {
    let fields = || item.as_table_like()?.iter().filter_map(|(_, field)| start_of(field)).min();
    item.span().map(|span| span.start).or_else(fields)
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}
