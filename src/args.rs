//! Option groups that several commands share.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::domain::age;
use crate::domain::diagnosis::Thresholds;
use crate::domain::schema::State;
use crate::settings::Secret;
use crate::ui::Color;

/// How to reach the server, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]
    #[arg(short = 'u', long, global = true, value_name = "URL")]
    pub url: Option<String>,

    /// Server host [default: 127.0.0.1]
    #[arg(short = 'h', long, global = true, value_name = "HOST", conflicts_with_all = ["url", "socket"])]
    pub host: Option<String>,

    /// Server port [default: 6379]
    #[arg(short = 'p', long, global = true, value_name = "PORT", conflicts_with_all = ["url", "socket"])]
    pub port: Option<u16>,

    /// Unix socket of the server
    #[arg(short = 's', long, global = true, value_name = "PATH", conflicts_with = "url")]
    pub socket: Option<PathBuf>,

    /// Sentinels that know the service's master
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT,…",
        requires = "master_name",
        conflicts_with_all = ["url", "host", "port", "socket"]
    )]
    pub sentinel: Option<String>,

    /// Name of the service at the Sentinels
    #[arg(long, global = true, value_name = "NAME", requires = "sentinel")]
    pub master_name: Option<String>,

    /// Database number [default: 0]
    #[arg(short = 'n', long, global = true, value_name = "DB", value_parser = clap::value_parser!(i64).range(0..))]
    pub db: Option<i64>,

    /// Refuse to work on a server that is no cluster's node; clusters are recognised without it
    #[arg(short = 'c', long, global = true)]
    pub cluster: bool,

    /// ACL user; needs a password
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,

    /// Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]
    #[arg(short = 'a', long = "pass", global = true, value_name = "PASSWORD")]
    pub password: Option<Secret>,

    /// Ask for the password
    #[arg(long, global = true, conflicts_with = "password")]
    pub askpass: bool,

    /// File with the password in its one line (`-`: the first line of stdin)
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["password", "askpass"])]
    pub pass_file: Option<PathBuf>,

    /// Do not warn of a password on the command line
    #[arg(long, global = true)]
    pub no_auth_warning: bool,

    /// Context of the config file [env: IDEMCTL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How long each reply may take [default: 5s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,

    /// How long connecting may take, and the TLS handshake again [default: 2s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub connect_timeout: Option<Duration>,

    /// Start a private throw-away server and work on it
    #[arg(long, global = true, conflicts_with_all = ["url", "host", "port", "socket", "sentinel", "context", "tls"])]
    pub sandbox: bool,

    /// Whether and how TLS is spoken; last, for its heading stays for whatever comes behind it.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// How TLS is spoken, on every command; named as in redis-cli.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Speak TLS (1.2 or 1.3), as a rediss:// URL does
    #[arg(long, global = true)]
    pub tls: bool,

    /// Certificates of the issuers to trust, PEM, in place of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub cacert: Option<PathBuf>,

    /// Folder with such files
    #[arg(long, global = true, value_name = "DIR")]
    pub cacertdir: Option<PathBuf>,

    /// The client's certificate, PEM, for a server that wants one; with --key
    #[arg(long, global = true, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// The client's private key, PEM
    #[arg(id = "tls_key", long = "key", global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Name to ask for and to find in the server's certificate [default: the host]
    #[arg(long, global = true, value_name = "HOST")]
    pub sni: Option<String>,

    /// Do not check the server's certificate: whoever is on the way can read and change everything
    #[arg(long, global = true)]
    pub insecure: bool,
}

impl TlsArgs {
    /// An option that says how, which is of no use without TLS.
    pub fn named(&self) -> Option<&'static str> {
        let named = [
            ("--cacert", self.cacert.is_some()),
            ("--cacertdir", self.cacertdir.is_some()),
            ("--cert", self.cert.is_some()),
            ("--key", self.key.is_some()),
            ("--sni", self.sni.is_some()),
            ("--insecure", self.insecure),
        ];
        named.into_iter().find(|(_, named)| *named).map(|(name, _)| name)
    }
}

impl ConnectionArgs {
    /// What of it is meant for a throw-away server, too.
    pub fn for_sandbox(&self) -> Self {
        let Self { db, timeout, connect_timeout, .. } = *self;
        Self { db, timeout, connect_timeout, ..Self::default() }
    }
}

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

    /// Prefix this deployment puts before the keys of schemas that take one (go-chi)
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,

    /// Lock TTL of this deployment, where it differs from the schema's
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub lock_ttl: Option<Duration>,

    /// Result TTL of this deployment, where it differs from the schema's
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub result_ttl: Option<Duration>,
}

/// Where an operator's own schemas are.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaFolderArgs {
    /// Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]
    #[arg(long, value_name = "DIR")]
    pub schema_dir: Option<PathBuf>,
}

/// Which servers are walked where nothing is to be changed.
#[derive(Debug, Clone, Default, Args)]
pub struct SourceArgs {
    /// Walk replicas in place of masters, where there are any: they may be behind
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub read_from: ReadFrom,
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
