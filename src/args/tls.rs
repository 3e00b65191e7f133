//! How TLS is spoken: options of every command.

use std::path::PathBuf;

use clap::Args;

/// How TLS is spoken, on every command; named as in redis-cli.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Speak TLS (1.2 or 1.3), as a rediss:// URL does
    #[arg(long, global = true)]
    pub(crate) tls: bool,

    /// Certificates of the issuers to trust, PEM, in place of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// Folder with such files
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cacertdir: Option<PathBuf>,

    /// The client's certificate, PEM, for a server that wants one; with --key
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,

    /// The client's private key, PEM
    #[arg(id = "tls_key", long = "key", global = true, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    /// Name to ask for and to find in the server's certificate [default: the host]
    #[arg(long, global = true, value_name = "HOST")]
    pub(crate) sni: Option<String>,

    /// Do not check the server's certificate: whoever is on the way can read and change everything
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
}

impl TlsArgs {
    /// An option that says how, which is of no use without TLS.
    pub(crate) fn named(&self) -> Option<&'static str> {
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
