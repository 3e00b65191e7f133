//! Keys that are named one by one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Keys given as arguments, in a file, or on stdin.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeysArgs {
    /// Idempotency keys, Redis keys, or names (`SCHEMA/KEY`) from `list -o name`; `-` reads stdin,
    /// one per line
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,

    /// File with keys or names, one per line (`-`: stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "keys")]
    pub(crate) key_file: Option<PathBuf>,

    /// Keys in the file or on stdin end with NUL instead of a newline
    ///
    /// A last key without NUL is refused, because it may be cut off.
    #[arg(short = '0', long)]
    pub(crate) null: bool,
}

impl KeysArgs {
    pub(crate) fn are_given(&self) -> bool {
        !self.keys.is_empty() || self.key_file.is_some()
    }

    pub(crate) fn are_on_stdin(&self) -> bool {
        let is_file_stdin = match &self.key_file {
            Some(file) => file.as_os_str() == "-",
            None => false,
        };
        is_file_stdin || self.keys.iter().any(|key| key == "-")
    }
}
