//! How to reach the server: options of every command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{StatedTtl, parse_ttl};
use crate::domain::duration::parse_duration;
use crate::domain::secret::Secret;

/// How to reach the server, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL,
    /// REDIS_URL]
    #[arg(short = 'u', long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Server host [default: 127.0.0.1]
    #[arg(
        short = 'h',
        long,
        global = true,
        value_name = "HOST",
        conflicts_with_all = ["url", "socket"]
    )]
    pub(crate) host: Option<String>,

    /// Server port [default: 6379]
    #[arg(
        short = 'p',
        long,
        global = true,
        value_name = "PORT",
        conflicts_with_all = ["url", "socket"]
    )]
    pub(crate) port: Option<u16>,

    /// Unix socket of the server
    #[arg(short = 's', long, global = true, value_name = "PATH", conflicts_with = "url")]
    pub(crate) socket: Option<PathBuf>,

    /// Sentinels that monitor the service's master
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT,…",
        requires = "master_name",
        conflicts_with_all = ["url", "host", "port", "socket"]
    )]
    pub(crate) sentinel: Option<String>,

    /// Name of the service in the Sentinels
    #[arg(long, global = true, value_name = "NAME", requires = "sentinel")]
    pub(crate) master_name: Option<String>,

    /// ACL user for the Sentinels, which have their own login; needs a password
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) sentinel_user: Option<String>,

    /// File with the Sentinels' password on its only line [env: IDEMCTL_SENTINEL_AUTH]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) sentinel_pass_file: Option<PathBuf>,

    /// Database number [default: 0]
    #[arg(
        short = 'n',
        long,
        global = true,
        value_name = "DB",
        value_parser = clap::value_parser!(i64).range(0..)
    )]
    pub(crate) db: Option<i64>,

    /// Refuse a server that is not a cluster node; clusters are also detected without it
    #[arg(short = 'c', long, global = true)]
    pub(crate) cluster: bool,

    /// ACL user; needs a password
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Password; visible in the process list, unlike --askpass, --pass-file and the variable [env:
    /// REDISCLI_AUTH]
    #[arg(short = 'a', long = "pass", global = true, value_name = "PASSWORD")]
    pub(crate) password: Option<Secret>,

    /// Ask for the password
    #[arg(long, global = true, conflicts_with = "password")]
    pub(crate) askpass: bool,

    /// File with the password on its only line (`-`: the first line of stdin)
    #[arg(
        long,
        visible_alias = "password-file",
        global = true,
        value_name = "FILE",
        conflicts_with_all = ["password", "askpass"]
    )]
    pub(crate) pass_file: Option<PathBuf>,

    /// Command that prints the password, or JSON with `password`, and maybe `username` and
    /// `expires_in` (seconds)
    #[arg(
        long,
        global = true,
        value_name = "CMD",
        conflicts_with_all = ["password", "askpass", "pass_file"]
    )]
    pub(crate) password_command: Option<String>,

    /// Do not warn about a password on the command line
    #[arg(long, global = true)]
    pub(crate) no_auth_warning: bool,

    /// Context in the config file [env: IDEMCTL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Timeout of each reply [default: 5s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Timeout of the connection, and again of the TLS handshake [default: 2s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Start a temporary local Redis and use it
    #[arg(
        long,
        global = true,
        conflicts_with_all = ["url", "host", "port", "socket", "sentinel", "context", "tls"]
    )]
    pub(crate) sandbox: bool,

    /// The TLS options. They are last, because their heading applies to all options after them.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

impl ConnectionArgs {
    /// The options that also apply to a temporary local Redis.
    pub(crate) fn for_sandbox(&self) -> Self {
        // A temporary local Redis has an address of its own, without TLS.
        let Self { db, timeout, connect_timeout, .. } = *self;
        Self { db, timeout, connect_timeout, ..Self::default() }
    }
}

/// The TLS options of every command, named as in redis-cli.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Use TLS 1.2 or 1.3, as with a rediss:// URL
    #[arg(long, global = true)]
    pub(crate) tls: bool,

    /// CA certificates to trust instead of the system's, in PEM format
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// Folder with CA certificates, in PEM format
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cacertdir: Option<PathBuf>,

    /// Client certificate in PEM format, for a server that requires one; use with --key
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the client certificate, in PEM format
    #[arg(id = "tls_key", long = "key", global = true, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    /// Server name to request and to verify in the certificate [default: the host]
    #[arg(long, global = true, value_name = "HOST")]
    pub(crate) sni: Option<String>,

    /// Do not verify the server's certificate; an attacker on the network can then read and change
    /// everything
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
}

impl TlsArgs {
    /// A TLS option that has no effect without TLS.
    pub(crate) fn named(&self) -> Option<&'static str> {
        let options = [
            ("--cacert", self.cacert.is_some()),
            ("--cacertdir", self.cacertdir.is_some()),
            ("--cert", self.cert.is_some()),
            ("--key", self.key.is_some()),
            ("--sni", self.sni.is_some()),
            ("--insecure", self.insecure),
        ];
        for (name, is_given) in options {
            if is_given {
                return Some(name);
            }
        }
        None
    }
}

/// The new settings of a context. An option that is not given leaves the context unchanged.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// Ask for the context's name before every change
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) protected: Option<bool>,

    /// Refuse every change (`--read-only=false`: no longer)
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) read_only: Option<bool>,

    /// Schemas that its commands use, replacing the list; see `idemctl schema list`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// Lock TTL of this deployment, e.g. express=90s (`none`: locks have no TTL); may be repeated
    #[arg(long, value_name = "SCHEMA=DURATION")]
    lock_ttl: Vec<StatedTtl>,

    /// Result TTL of this deployment, e.g. express=24h; may be repeated
    #[arg(long, value_name = "SCHEMA=DURATION")]
    result_ttl: Vec<StatedTtl>,

    /// How long clients or queues may send a request again, e.g. 3d; `doctor` compares results with
    /// it
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub(crate) retry_window: Option<Duration>,

    /// Folder with your own schemas
    #[arg(long, value_name = "DIR")]
    pub(crate) schema_dir: Option<PathBuf>,
}

impl ContextArgs {
    /// The TTLs, each with its field in the config file.
    pub(crate) fn ttls(&self) -> impl Iterator<Item = (&'static str, &StatedTtl)> {
        let locks = self.lock_ttl.iter().map(|ttl| ("lock_ttl", ttl));
        locks.chain(self.result_ttl.iter().map(|ttl| ("result_ttl", ttl)))
    }
}
