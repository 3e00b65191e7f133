//! Option groups that several commands share.

mod connection;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::age;
use crate::domain::schema::{State, TtlOf};
use crate::domain::select::rate::Rate;
use crate::render::style::Color;
use crate::store::Gait;

pub use connection::{ConnectionArgs, TlsArgs};

/// How things are shown, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct DisplayArgs {
    /// When to colour: auto heeds NO_COLOR and whether stdout is a terminal
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub color: ColorArg,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum ColorArg {
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
    Table,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StateArg {
    /// A lock is held.
    InProgress,
    /// A result is stored.
    Completed,
    /// The schema cannot read it.
    Unreadable,
}

impl From<StateArg> for State {
    fn from(arg: StateArg) -> Self {
        match arg {
            StateArg::InProgress => Self::InProgress,
            StateArg::Completed => Self::Completed,
            StateArg::Unreadable => Self::Unreadable,
        }
    }
}

/// Which schemas, and how the deployment differs from their defaults.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Schemas")]
pub struct SchemaArgs {
    /// Schemas to work on; `idemctl schema list` names them [default: all, or the context's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub schema: Vec<String>,

    /// Where the operator's own schemas are.
    #[command(flatten)]
    pub folder: SchemaFolderArgs,

    /// Prefix of this deployment's keys, of the one schema that is named; `idemctl schema show NAME` says where it stands
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,

    /// Lock TTL of this deployment for the one schema that is named: what is stated may select for a change
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub lock_ttl: Option<Duration>,

    /// Result TTL of this deployment for the one schema that is named
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub result_ttl: Option<Duration>,
}

impl SchemaArgs {
    /// An option that says something of a single schema's deployment, where one is given.
    pub fn of_one_schema(&self) -> Option<&'static str> {
        let prefix = self.prefix.as_ref().map(|_| "--prefix");
        let ttl = |ttl: Option<Duration>, of: TtlOf| ttl.map(|_| of.option());
        prefix.or_else(|| ttl(self.lock_ttl, TtlOf::Lock)).or_else(|| ttl(self.result_ttl, TtlOf::Result))
    }
}

/// Where an operator's own schemas are.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaFolderArgs {
    /// Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]
    #[arg(long, value_name = "DIR")]
    pub schema_dir: Option<PathBuf>,
}

/// How the keyspace is walked where nothing is to be changed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Walk")]
pub struct WalkArgs {
    /// Walk replicas in place of masters, where there are any: they may be behind
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub read_from: ReadFrom,

    /// Look at no more than so many Redis keys a second, e.g. 5000/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    pub rate: Option<Rate>,

    /// How much at a time.
    #[command(flatten)]
    pub page: PageArgs,
}

/// How much of the keyspace is looked at at a time.
#[derive(Debug, Clone, Default, Args)]
pub struct PageArgs {
    /// Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and
    /// up to 2000 where the server is far away]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub scan_count: Option<u32>,
}

impl WalkArgs {
    /// The same as the store takes it.
    pub fn gait(&self) -> Gait {
        Gait { from_replicas: self.read_from == ReadFrom::Replica, rate: self.rate, ..self.page.gait() }
    }
}

impl PageArgs {
    /// The same as the store takes it.
    pub fn gait(&self) -> Gait {
        Gait { page: self.scan_count, ..Gait::default() }
    }
}

/// `--read-from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReadFrom {
    /// The masters.
    #[default]
    Master,
    /// A replica of each master.
    Replica,
}

/// Limits that findings compare with.
#[derive(Debug, Clone, Default, Args)]
pub struct ThresholdArgs {
    /// Report locks held longer than this as `overdue`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub overdue: Option<Duration>,
}

/// How a change is confirmed and explained.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ConfirmArgs {
    /// Go ahead without asking
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// Name of the protected context, or of a purge's server: for scripts, what a person would have to type
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,

    /// Show what would be done and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// After each batch of changes wait until this many replicas have it; exit status 3 when they have not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub wait_replicas: Option<u32>,

    /// How long to wait for them [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, requires = "wait_replicas")]
    pub wait_timeout: Option<Duration>,
}

/// How a change that removes something is confirmed, explained and backed up.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct ChangeArgs {
    /// How it is confirmed and explained.
    #[command(flatten)]
    pub confirmed: ConfirmArgs,

    /// Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]
    #[arg(long, value_name = "FILE", conflicts_with = "no_backup")]
    pub backup: Option<PathBuf>,

    /// Remove without a backup
    #[arg(long)]
    pub no_backup: bool,
}

/// What a step of a service is done to by hand, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct StepArgs {
    /// Idempotency key or full Redis key
    #[arg(value_name = "KEY")]
    pub key: OsString,

    /// How to show the record and what was done
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,

    /// How it is confirmed, explained and backed up.
    #[command(flatten)]
    pub change: ChangeArgs,

    /// Whose step it is.
    #[command(flatten)]
    pub schemas: SchemaArgs,
}

/// A change with a backup is a change: what is said of the one holds for the other.
impl std::ops::Deref for ChangeArgs {
    type Target = ConfirmArgs;

    fn deref(&self) -> &ConfirmArgs {
        &self.confirmed
    }
}

impl ThresholdArgs {
    /// The limits.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds { overdue_ms: self.overdue.map(age::millis), ..Thresholds::default() }
    }
}

/// Parses `90s`, `10m`, `24h`.
///
/// # Errors
/// What is wrong, with an example.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write 90s, 10m or 24h (1m is a minute, 1M a month)"))
}

/// A duration longer than zero.
fn parse_ttl(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a TTL is longer than zero".to_owned()),
        ttl => Ok(ttl),
    }
}

/// An owner token or a hash of a payload: one line of text.
///
/// # Errors
/// What is wrong.
pub fn parse_token(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) { Err("it has control characters".to_owned()) } else { Ok(text.to_owned()) }
}

/// An owner token, which is never empty.
///
/// # Errors
/// What is wrong.
pub fn parse_owner(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("an owner is not empty".to_owned()) } else { parse_token(text) }
}
