//! Certificates of the test's own: an issuer, and whoever it signs for.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// An issuer, and a folder in which its certificate is `ca.crt`.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
pub struct Pair {
    pub cert: String,
    pub key: String,
}

impl Authority {
    /// A new one, which nobody knows yet.
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "idemctl test issuer");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        fs::write(folder.join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    /// The file with its certificate.
    pub fn ca(&self) -> String {
        self.folder.join("ca.crt").display().to_string()
    }

    /// A certificate for these names.
    pub fn sign(&self, file: &str, names: &[&str]) -> Pair {
        self.signed(file, params(names))
    }

    /// One that was good for a year, long ago.
    pub fn sign_expired(&self, file: &str, names: &[&str]) -> Pair {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 2, 3);
        self.signed(file, params)
    }

    fn signed(&self, file: &str, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let write = |extension: &str, pem: String| {
            let path = self.folder.join(file).with_extension(extension);
            fs::write(&path, pem).unwrap();
            // A key that others can read draws a warning.
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            path.display().to_string()
        };
        Pair { cert: write("crt", cert.pem()), key: write("key", key.serialize_pem()) }
    }
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}
