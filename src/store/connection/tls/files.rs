//! Certificates and keys, from files and from the system.

use std::fs;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsOptions;
use crate::files;
use crate::store::error::StoreError;

/// Larger than any file of certificates: a system's own take some 250 KiB.
const LARGEST: u64 = 8 * 1024 * 1024;

/// The issuers that are trusted: the operator's where there are any, else the system's.
pub(super) fn roots(options: &TlsOptions) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &options.cacert {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| wrong(file, error.to_string()))?;
        }
    }
    if let Some(folder) = &options.cacertdir {
        let entries = fs::read_dir(folder).map_err(|error| wrong(folder, error.to_string()))?;
        for file in
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file())
        {
            // Such folders hold other things, too.
            roots.add_parsable_certificates(certificates(&file).unwrap_or_default());
        }
    }
    if options.cacert.is_none() && options.cacertdir.is_none() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if let (true, Some(error)) = (roots.is_empty(), found.errors.first()) {
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
    let encrypted = || String::from_utf8_lossy(&pem).contains("ENCRYPTED");
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| match error {
        PemError::NoItemsFound if encrypted() => wrong(
            file,
            "the key is encrypted: `openssl pkey -in FILE -out FILE` writes it without a passphrase".to_owned(),
        ),
        error => wrong(file, in_words(&error, "private key")),
    })
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
