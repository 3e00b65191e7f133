//! A home with a config file in its usual place, and no server of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::run::{Run, Runs, idemctl};

/// The home of the binary under test.
pub struct Home(tempfile::TempDir);

impl Home {
    /// One whose config file says this, and is its owner's alone.
    pub fn with(config: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.config().parent().unwrap()).unwrap();
        home.write(".config/idemctl/config.toml", config);
        home
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The config file.
    pub fn config(&self) -> PathBuf {
        self.path().join(".config/idemctl/config.toml")
    }

    /// Writes a file that is its owner's alone; gives its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        self.chmod(&path, 0o600);
        path.display().to_string()
    }

    /// Gives a file other rights.
    pub fn chmod(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The binary.
    pub fn run(&self, words: &[&str]) -> Run {
        self.run_with(&[], words)
    }

    /// The binary with these variables.
    pub fn run_with(&self, variables: &[(&str, &str)], words: &[&str]) -> Run {
        idemctl(self.path()).envs(variables.iter().copied()).args(words).run()
    }

    /// A setting's value, and where the value comes from; nothing of a setting that is not shown.
    pub fn setting(
        &self,
        variables: &[(&str, &str)],
        words: &[&str],
        name: &str,
    ) -> (Option<String>, String) {
        let document = self
            .run_with(variables, &[words, &["config", "show", "-o", "json"]].concat())
            .exits(0)
            .json();
        let found =
            document["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name);
        let text = |field: &str| found.and_then(|found| found[field].as_str()).map(str::to_owned);
        (text("value"), text("origin").unwrap_or_default())
    }
}
