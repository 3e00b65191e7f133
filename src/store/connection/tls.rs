//! The TLS settings of the user, and the rustls configuration made from them. Files are read only
//! for the first connection that needs TLS; all connections share the result.
//!
//! The client crate would read the system's certificates even if the operator names an issuer, so a
//! bad `SSL_CERT_FILE` broke connections that did not need it. It also reported a server without
//! TLS as "timed out". idemctl therefore calls rustls directly.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fmt, fs};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::files;
use crate::store::error::StoreError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file with the certificates of trusted issuers. It and `cacertdir` replace those of the
    /// system.
    pub cacert: Option<PathBuf>,
    /// A folder of such files.
    pub cacertdir: Option<PathBuf>,
    /// A PEM file with the client's certificate, followed by those of its issuers.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// True if the server's certificate is not checked.
    pub insecure: bool,
    /// The name to request, which the certificate must contain, if it differs from the host.
    pub sni: Option<String>,
}

/// The TLS settings with the configuration made from them, which all connections share.
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

    /// The rustls configuration. The first call reads the files.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, StoreError> {
        self.config.get_or_init(|| config(&self.options).map(Arc::new)).clone()
    }

    /// The name that the server's certificate must contain.
    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>, StoreError> {
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
    // Passed explicitly, because rustls panics without an installed provider. ring starts TLS in
    // 3 ms, aws-lc-rs in 49 ms.
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| StoreError::TlsFile { what: "TLS".to_owned(), why: error.to_string() })?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody::new(&provider)))
    } else {
        builder.with_root_certificates(roots(options)?)
    };
    match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => {
            let what = format!("{} with {}", cert.display(), key.display());
            let built = builder.with_client_auth_cert(certificates(cert)?, private_key(key)?);
            built.map_err(|error| {
                let why = match error {
                    Error::InconsistentKeys(_) => "the key is not the certificate's".to_owned(),
                    error => error.to_string(),
                };
                StoreError::TlsFile { what, why }
            })
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

/// A verifier that accepts every certificate, if the peer has its private key.
#[derive(Debug)]
pub(super) struct Anybody(WebPkiSupportedAlgorithms);

impl Anybody {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Larger than any certificate file in use: the system's own has about 250 KiB.
const LARGEST: u64 = 8 * 1024 * 1024;

/// The trusted issuers: those of the user, or else those of the system.
pub(super) fn roots(options: &TlsOptions) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &options.cacert {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| wrong(file, error.to_string()))?;
        }
    }
    if let Some(folder) = &options.cacertdir {
        let entries = fs::read_dir(folder).map_err(|error| wrong(folder, error.to_string()))?;
        for entry in entries {
            let Ok(entry) = entry else { continue };
            let file = entry.path();
            // Skip files without certificates, because such folders contain other files as well.
            if file.is_file()
                && let Ok(certificates) = certificates(&file)
            {
                roots.add_parsable_certificates(certificates);
            }
        }
    }
    if options.cacert.is_none() && options.cacertdir.is_none() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        // Errors are ignored as long as some of the system's certificates could be read.
        if roots.is_empty()
            && let Some(error) = found.errors.first()
        {
            return Err(system(&error.to_string()));
        }
    }
    if roots.is_empty() {
        return Err(match &options.cacertdir {
            Some(folder) => wrong(folder, "it holds no certificate".to_owned()),
            None => system("there are none"),
        });
    }
    Ok(roots)
}

/// The certificates of a PEM file.
pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let pem = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(certificates) if certificates.is_empty() => {
            Err(wrong(file, "it holds no certificate (PEM)".to_owned()))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(file, in_words(&error, "certificate"))),
    }
}

/// The private key of a PEM file.
pub(super) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, StoreError> {
    let pem = read(file)?;
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(key) => Ok(key),
        Err(PemError::NoItemsFound) if String::from_utf8_lossy(&pem).contains("ENCRYPTED") => {
            let why = "the key is encrypted: `openssl pkey -in FILE -out FILE` writes it without \
                a passphrase";
            Err(wrong(file, why.to_owned()))
        }
        Err(error) => Err(wrong(file, in_words(&error, "private key"))),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, StoreError> {
    files::read_or_receive(file, LARGEST).map_err(|error| wrong(file, error.to_string()))
}

fn in_words(error: &PemError, what: &str) -> String {
    match error {
        PemError::NoItemsFound => format!("it holds no {what} (PEM)"),
        error => format!("it is no {what} (PEM): {error}"),
    }
}

fn wrong(file: &Path, why: String) -> StoreError {
    StoreError::TlsFile { what: file.display().to_string(), why }
}

fn system(why: &str) -> StoreError {
    StoreError::TlsFile { what: "the system's certificates".to_owned(), why: why.to_owned() }
}
