//! How to reach the server: options of every command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::tls::TlsArgs;
use crate::domain::duration::parse_duration;
use crate::domain::secret::Secret;

/// How to reach the server, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]
    #[arg(short = 'u', long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Server host [default: 127.0.0.1]
    #[arg(short = 'h', long, global = true, value_name = "HOST", conflicts_with_all = ["url", "socket"])]
    pub(crate) host: Option<String>,

    /// Server port [default: 6379]
    #[arg(short = 'p', long, global = true, value_name = "PORT", conflicts_with_all = ["url", "socket"])]
    pub(crate) port: Option<u16>,

    /// Unix socket of the server
    #[arg(short = 's', long, global = true, value_name = "PATH", conflicts_with = "url")]
    pub(crate) socket: Option<PathBuf>,

    /// Sentinels that know the service's master
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT,…",
        requires = "master_name",
        conflicts_with_all = ["url", "host", "port", "socket"]
    )]
    pub(crate) sentinel: Option<String>,

    /// Name of the service at the Sentinels
    #[arg(long, global = true, value_name = "NAME", requires = "sentinel")]
    pub(crate) master_name: Option<String>,

    /// ACL user at the Sentinels, which have a log-in of their own; needs a password
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) sentinel_user: Option<String>,

    /// File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) sentinel_pass_file: Option<PathBuf>,

    /// Database number [default: 0]
    #[arg(short = 'n', long, global = true, value_name = "DB", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) db: Option<i64>,

    /// Refuse to work on a server that is no cluster's node; clusters are recognised without it
    #[arg(short = 'c', long, global = true)]
    pub(crate) cluster: bool,

    /// ACL user; needs a password
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]
    #[arg(short = 'a', long = "pass", global = true, value_name = "PASSWORD")]
    pub(crate) password: Option<Secret>,

    /// Ask for the password
    #[arg(long, global = true, conflicts_with = "password")]
    pub(crate) askpass: bool,

    /// File with the password in its one line (`-`: the first line of stdin)
    #[arg(
        long,
        visible_alias = "password-file",
        global = true,
        value_name = "FILE",
        conflicts_with_all = ["password", "askpass"]
    )]
    pub(crate) pass_file: Option<PathBuf>,

    /// Do not warn of a password on the command line
    #[arg(long, global = true)]
    pub(crate) no_auth_warning: bool,

    /// Context of the config file [env: IDEMCTL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How long each reply may take [default: 5s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// How long connecting may take, and the TLS handshake again [default: 2s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Start a private throw-away server and work on it
    #[arg(long, global = true, conflicts_with_all = ["url", "host", "port", "socket", "sentinel", "context", "tls"])]
    pub(crate) sandbox: bool,

    /// Whether and how TLS is spoken; last, for its heading stays for whatever comes behind it.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

impl ConnectionArgs {
    /// The options that are meant for a throw-away server, too.
    pub(crate) fn for_sandbox(&self) -> Self {
        let Self { db, timeout, connect_timeout, .. } = *self;
        Self { db, timeout, connect_timeout, ..Self::default() }
    }
}
