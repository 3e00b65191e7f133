//! `--output`: the form of what a command shows.

use clap::ValueEnum;

/// `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}
