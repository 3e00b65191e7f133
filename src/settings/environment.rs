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
    "PAGER",
    "LESS",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// The pager if `PAGER` names none.
const LESS: &str = "less";

/// The options for `less` if `LESS` is not set: keep colours, and leave the text on the terminal at
/// the end.
const LESS_OPTIONS: &str = "FRX";

/// The environment variables that idemctl read.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<&'static str, String>);

impl Environment {
    /// Reads the environment. An empty variable counts as unset.
    pub(crate) fn capture() -> Self {
        let set = |name: &&'static str| {
            Some((*name, env::var(name).ok().filter(|value| !value.is_empty())?))
        };
        Self(VARIABLES.iter().filter_map(set).collect())
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
        self.get("PATH").map(|path| env::split_paths(path).collect()).unwrap_or_default()
    }

    pub(crate) fn temp_dir(&self) -> PathBuf {
        self.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    /// The user's shell.
    pub(crate) fn shell(&self) -> Option<&str> {
        self.get("SHELL")
    }

    /// The user's pager, and the options for `less` if no variable sets them.
    pub(crate) fn pager(&self) -> (&str, Option<&'static str>) {
        let less_options = if self.get("LESS").is_none() { Some(LESS_OPTIONS) } else { None };
        (self.get("PAGER").unwrap_or(LESS), less_options)
    }

    /// The user's name, or number if there is no name.
    pub(crate) fn user(&self) -> String {
        let name = self.get("USER").or_else(|| self.get("LOGNAME"));
        name.map_or_else(|| format!("uid {}", self.user_id()), str::to_owned)
    }

    /// The user's number in the kernel, which no variable can change.
    pub(crate) fn user_id(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }

    /// True unless the locale excludes UTF-8. Without a locale, this is true, because nearly every
    /// terminal supports UTF-8.
    pub(crate) fn speaks_utf8(&self) -> bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| self.get(name));
        locale.is_none_or(|locale| {
            ["utf-8", "utf8"].iter().any(|utf8| locale.to_ascii_lowercase().contains(utf8))
        })
    }

    /// The user who called sudo; `None` without sudo.
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
    pub(super) fn state_dir(&self) -> Option<PathBuf> {
        self.folder("XDG_STATE_HOME", ".local/state")
    }

    fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = match self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(base) => base,
            None => self.home()?.join(below_home),
        };
        Some(base.join("idemctl"))
    }
}
