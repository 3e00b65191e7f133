//! TLS: what the operator says of it, and what that comes to. Nothing of it is looked at before the first connection
//! that needs it, and then once for all of them.
//!
//! The client crate would read the system's certificates even where an own issuer is named, so that a bad `SSL_CERT_FILE` broke
//! what did not need it, and told of a server without TLS that it "timed out". rustls itself is asked here, which tells both.

mod files;
mod no_verify;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;

use self::no_verify::Anybody;
use crate::store::error::StoreError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of the issuers that are trusted, PEM; with `cacertdir` in place of the system's.
    pub cacert: Option<PathBuf>,
    /// A folder of such files.
    pub cacertdir: Option<PathBuf>,
    /// The client's certificate, PEM, with those of its issuers behind it.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The server's certificate is not checked.
    pub insecure: bool,
    /// The name to ask for, and that the certificate has to have, where it is not the host's.
    pub sni: Option<String>,
}

/// The same, ready to connect: what was read of files is shared by all connections.
#[derive(Clone)]
pub struct Tls {
    options: TlsOptions,
    config: Arc<OnceLock<Result<Arc<ClientConfig>, StoreError>>>,
}

impl Tls {
    pub fn new(options: TlsOptions) -> Self {
        Self { options, config: Arc::default() }
    }

    pub fn options(&self) -> &TlsOptions {
        &self.options
    }

    /// What it comes to; the first time, files are read.
    pub(in crate::store) fn config(&self) -> Result<Arc<ClientConfig>, StoreError> {
        self.config.get_or_init(|| config(&self.options).map(Arc::new)).clone()
    }

    /// The name that the server's certificate has to have.
    pub(in crate::store) fn server_name(
        &self,
        host: &str,
    ) -> Result<ServerName<'static>, StoreError> {
        let name = self.options.sni.as_deref().unwrap_or(host);
        ServerName::try_from(name.to_owned()).map_err(|_| StoreError::TlsFile {
            what: format!("{name:?}"),
            why: "no certificate has such a name: it is neither a host name nor an IP address"
                .to_owned(),
        })
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl Eq for Tls {}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

fn config(options: &TlsOptions) -> Result<ClientConfig, StoreError> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let wrong = |what: &str, error: &rustls::Error| StoreError::TlsFile {
        what: what.to_owned(),
        why: error.to_string(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| wrong("TLS", &error))?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody::new(&provider)))
    } else {
        builder.with_root_certificates(files::roots(options)?)
    };
    match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => {
            let shown = format!("{} with {}", cert.display(), key.display());
            builder
                .with_client_auth_cert(files::certificates(cert)?, files::private_key(key)?)
                .map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => StoreError::TlsFile {
                        what: shown,
                        why: "the key is not the certificate's".to_owned(),
                    },
                    error => wrong(&shown, &error),
                })
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}
