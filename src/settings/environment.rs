//! The environment variables that idemctl uses.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// The variables that idemctl uses. It never reads any other.
const VARIABLES: &[&str] = &[
    "IDEMCTL_URL",
    "IDEMCTL_CONTEXT",
    "IDEMCTL_CONFIG",
    "IDEMCTL_SCHEMA_DIR",
    "IDEMCTL_SENTINEL_AUTH",
    "REDIS_URL",
    "REDISCLI_AUTH",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "HOME",
    "USER",
    "SUDO_USER",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "SHELL",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// The environment variables that idemctl read.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<&'static str, String>);

impl Environment {
    /// Reads the environment. An empty variable counts as unset.
    pub(crate) fn capture() -> Self {
        let mut variables = BTreeMap::new();
        for name in VARIABLES {
            if let Ok(value) = env::var(name)
                && !value.is_empty()
            {
                variables.insert(*name, value);
            }
        }
        Self(variables)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The environment for a command that ignores the variables which name a server.
    pub(crate) fn without_server(&self) -> Self {
        let mut rest = self.clone();
        for name in ["IDEMCTL_URL", "IDEMCTL_CONTEXT", "REDIS_URL"] {
            rest.0.remove(name);
        }
        rest
    }

    /// The config file that `IDEMCTL_CONFIG` names.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        self.get("IDEMCTL_CONFIG").map(PathBuf::from)
    }

    /// The folder of schemas that `IDEMCTL_SCHEMA_DIR` names.
    pub(crate) fn schema_dir(&self) -> Option<PathBuf> {
        self.get("IDEMCTL_SCHEMA_DIR").map(PathBuf::from)
    }

    /// The folders in which programs are searched.
    pub(crate) fn path(&self) -> Vec<PathBuf> {
        let Some(path) = self.get("PATH") else { return Vec::new() };
        env::split_paths(path).collect()
    }

    pub(crate) fn temp_dir(&self) -> PathBuf {
        PathBuf::from(self.get("TMPDIR").unwrap_or("/tmp"))
    }

    /// The operator's shell.
    pub(crate) fn shell(&self) -> Option<&str> {
        self.get("SHELL")
    }

    /// The operator's name, or number if there is no name.
    pub(crate) fn user(&self) -> String {
        // Cron jobs and containers often set only one of them, or neither.
        match self.get("USER").or(self.get("LOGNAME")) {
            Some(name) => name.to_owned(),
            None => format!("uid {}", self.user_id()),
        }
    }

    /// The operator's number in the kernel, which no variable can change.
    pub(crate) fn user_id(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }

    /// True unless the locale excludes UTF-8. Without a locale, this is true, because nearly every
    /// terminal supports UTF-8.
    pub(crate) fn speaks_utf8(&self) -> bool {
        // As in POSIX, the first of these variables that is set decides.
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            if let Some(locale) = self.get(name) {
                let locale = locale.to_ascii_lowercase();
                return locale.contains("utf-8") || locale.contains("utf8");
            }
        }
        true
    }

    /// The operator who called sudo; `None` without sudo.
    pub(crate) fn sudo_user(&self) -> Option<String> {
        self.get("SUDO_USER").map(str::to_owned)
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.get("HOME").map(Path::new)
    }

    pub(super) fn config_dir(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    /// The folder for backups and the audit log.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.folder("XDG_STATE_HOME", ".local/state")
    }

    fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG specification requires programs to ignore a relative path.
        if let Some(base) = self.get(variable)
            && Path::new(base).is_absolute()
        {
            return Some(Path::new(base).join("idemctl"));
        }
        Some(self.home()?.join(below_home).join("idemctl"))
    }
}
