//! How things are shown, on every command.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, ValueEnum};
use serde::de::DeserializeOwned;

use crate::domain::accepted_report::parse_accepted;
use crate::domain::select::top_n::Order;
use crate::exit::{CommandError, Exit};
use crate::files;
use crate::render::columns::{COLUMNS, RecordColumn};
use crate::render::junit::{TestSuite, document};
use crate::render::style::Color;
use crate::terminal::ui::Talk;

/// How things are shown, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Display")]
pub(crate) struct DisplayArgs {
    /// When to use colours; `auto` checks NO_COLOR and whether stdout is a terminal
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,

    /// Print only data, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print more: server, context, schemas, elapsed time, and the histograms of a race
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Print each Redis command and its duration on stderr, without passwords and values
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

impl DisplayArgs {
    /// How much idemctl prints besides the data.
    pub(crate) fn talk(&self) -> Talk {
        if self.quiet {
            Talk::Quiet
        } else if self.verbose {
            Talk::Verbose
        } else {
            Talk::Usual
        }
    }
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<ColorArg> for Color {
    fn from(arg: ColorArg) -> Self {
        match arg {
            ColorArg::Auto => Self::Auto,
            ColorArg::Always => Self::Always,
            ColorArg::Never => Self::Never,
        }
    }
}

/// `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    #[value(name = "table")]
    Text,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
}

/// How records are shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShowArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,

    /// Columns of a table, csv or tsv, in this order, by their names in csv
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = columns())]
    pub(crate) columns: Vec<&'static RecordColumn>,

    /// Do not put a ' before csv and tsv cells that begin with = + - @
    #[arg(long)]
    pub(crate) raw_csv: bool,

    /// Sort the output, after a full scan: oldest, soonest to expire, largest or longest untouched
    /// first, or by key
    #[arg(long, value_name = "BY", value_enum)]
    pub(crate) sort: Option<Sort>,

    /// Reverse the order of --sort
    #[arg(long, requires = "sort")]
    pub(crate) reverse: bool,
}

/// `--output` of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people: as many columns as fit; one line per record if stdout is not a terminal.
    #[default]
    #[value(name = "table")]
    Text,
    /// For people: every column that has a value; on a terminal, as many as fit.
    Wide,
    /// Comma-separated values for a spreadsheet, with times in milliseconds and sizes in bytes.
    Csv,
    /// Tab-separated values, otherwise as csv.
    Tsv,
    /// The names of the records, `SCHEMA/KEY`, one per line, for `purge -`.
    Name,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
}

/// `--output` of results with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TabularOutput {
    /// For people.
    #[default]
    #[value(name = "table")]
    Text,
    /// Comma-separated values for a spreadsheet, with durations in milliseconds and sizes in bytes.
    Csv,
    /// Tab-separated values, otherwise as csv.
    Tsv,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Sort {
    /// Oldest first.
    Age,
    /// Soonest to expire first.
    Ttl,
    /// Largest first.
    Size,
    /// Longest untouched first; unknown idle times last.
    Idle,
    /// By idempotency key.
    Key,
}

impl From<Sort> for Order {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Age => Self::Age,
            Sort::Ttl => Self::Ttl,
            Sort::Size => Self::Size,
            Sort::Idle => Self::Idle,
            Sort::Key => Self::Key,
        }
    }
}

/// Columns by the headings of csv, or by the shorter names that tables show.
fn columns() -> impl TypedValueParser<Value = &'static RecordColumn> {
    let names = COLUMNS.iter().map(|column| PossibleValue::new(column.name).alias(column.alias));
    PossibleValuesParser::new(names).try_map(|given| {
        let mut columns = COLUMNS.iter();
        let named = columns.find(|column| [column.name, column.alias].contains(&given.as_str()));
        named.ok_or("there is no such column")
    })
}

/// The command with the options under these headings hidden.
pub(crate) fn without(command: Command, headings: &[&str]) -> Command {
    command.mut_args(|option| {
        let hide = option.get_help_heading().is_some_and(|heading| headings.contains(&heading));
        if hide { option.hide(true) } else { option }
    })
}

/// In bytes; larger than any accepted report.
const LARGEST_ACCEPTED: u64 = 64 << 20;

/// The accepted results in the operator's file; `None` without a file.
///
/// # Errors
/// Usage: the file cannot be read, or is not a report of this version.
pub(crate) fn accepted<T: DeserializeOwned>(
    file: Option<&Path>,
) -> Result<Option<T>, CommandError> {
    let Some(file) = file else { return Ok(None) };
    let shown = file.display();
    let json = files::read_or_receive(file, LARGEST_ACCEPTED)
        .map_err(|error| CommandError::usage(format!("--expect: {shown}: {error}")))?;
    let accepted = parse_accepted(&json).map_err(|why| {
        CommandError::usage(format!("--expect: {shown}: {why}"))
            .hint("write it with `-o json` of this version")
    })?;
    Ok(Some(accepted))
}

/// The exit code of a report. With accepted results, known failures are accepted, and only the
/// differences count.
pub(crate) fn exit_of<D>(differences: Option<&[D]>, has_failure: bool, is_complete: bool) -> Exit {
    if differences.map_or(has_failure, |differences| !differences.is_empty()) {
        Exit::No
    } else if is_complete {
        Exit::Done
    } else {
        Exit::Partial
    }
}

/// A file with the results as JUnit XML.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JunitArgs {
    /// Write the results to FILE as JUnit XML, for CI systems
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl JunitArgs {
    /// Writes the file, if the operator wants one. `command` is the name of the command.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, command: &str, suites: &[TestSuite]) -> Result<()> {
        let Some(file) = &self.junit else { return Ok(()) };
        files::publish(file, document(command, suites).as_bytes())
            .map_err(|error| cannot_write(file, &error))?;
        Ok(())
    }

    /// Checks that the file can be written, for commands whose work cannot be repeated for free.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let Some(file) = &self.junit else { return Ok(()) };
        files::check_publish(file).map_err(|error| cannot_write(file, &error))
    }
}

fn cannot_write(file: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("--junit: cannot write {}: {error}", file.display()))
}
