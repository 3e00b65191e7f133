//! Explains TLS errors in words.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

use super::error::StoreError;

const ISSUER: &str = "pass the issuer's certificate with --cacert FILE; without it idemctl uses \
    the system's certificates";
const NAME: &str = "connect with one of these names, or choose one of them with --sni";
const SERVER: &str =
    "check the clock of this machine; if it is right, replace the server's certificate";
const NO_COMMON_VERSION: &str = "it supports no TLS version that idemctl supports";
const VERSION: &str = "idemctl supports TLS 1.2 and 1.3";

/// The TLS error inside an I/O error; `None` if there is none, or if the peer did not speak TLS.
pub(in crate::store) fn trouble(target: &str, error: &io::Error) -> Option<StoreError> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let target = target.to_owned();
    let (why, hint) = match error {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => {
            return None;
        }
        Error::InvalidCertificate(error) => certificate(error),
        Error::AlertReceived(alert) => {
            if let Some(why) = refuses_client(*alert) {
                return Some(StoreError::ClientCertificate { target, why });
            }
            match alert {
                AlertDescription::ProtocolVersion => (NO_COMMON_VERSION.to_owned(), VERSION),
                alert => (format!("it replied with the alert {alert:?}"), VERSION),
            }
        }
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            (NO_COMMON_VERSION.to_owned(), VERSION)
        }
        other => (other.to_string(), VERSION),
    };
    Some(StoreError::Tls { target, why, hint })
}

/// True if the bytes begin like a TLS record: an alert or a handshake message.
pub(in crate::store) fn is_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}

/// The meaning of an alert about the client's certificate; `None` for other alerts.
fn refuses_client(alert: AlertDescription) -> Option<String> {
    match alert {
        // OpenSSL sends the second alert in TLS 1.2 to a client without a certificate.
        AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
            Some("it requires a client certificate, or a different one".to_owned())
        }
        AlertDescription::UnknownCA
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => {
            Some(format!("it does not accept the client certificate ({alert:?})"))
        }
        _ => None,
    }
}

fn certificate(error: &CertificateError) -> (String, &'static str) {
    match error {
        CertificateError::UnknownIssuer => {
            ("the issuer of its certificate is not trusted".to_owned(), ISSUER)
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            (format!("its certificate is not for {expected} but for {names}"), NAME)
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            (format!("its certificate expired on {}", day(not_after.as_secs())), SERVER)
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            (format!("its certificate is not valid before {}", day(not_before.as_secs())), SERVER)
        }
        other => (format!("its certificate cannot be trusted: {other}"), ISSUER),
    }
}

/// The plain form of names such as `DnsName("a")` and `IpAddress(127.0.0.1)`.
fn bare(presented: &str) -> String {
    let mut name = presented;
    if let Some((_, rest)) = presented.split_once('(')
        && let Some(inside) = rest.strip_suffix(')')
    {
        name = inside;
    }
    name.trim_matches('"').to_owned()
}

fn day(seconds: u64) -> String {
    // The time comes from the peer's certificate and may be out of range. The formatter panics
    // after the year 9999.
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799));
    let time = humantime::format_rfc3339_seconds(time).to_string();
    time.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn said(error: Error) -> (String, Option<&'static str>) {
        let error =
            trouble("host:1/0", &io::Error::new(io::ErrorKind::InvalidData, error)).unwrap();
        (error.to_string(), error.hint())
    }

    #[test]
    fn certificates_are_spoken_of_in_words() {
        let (why, hint) = said(CertificateError::UnknownIssuer.into());
        assert!(
            why.contains("issuer") && hint.is_some_and(|hint| hint.contains("--cacert")),
            "{why}"
        );
        let (why, hint) = said(
            CertificateError::NotValidForNameContext {
                expected: ServerName::try_from("cache.example").unwrap(),
                presented: vec![
                    r#"DnsName("a.example")"#.to_owned(),
                    "IpAddress(127.0.0.1)".to_owned(),
                ],
            }
            .into(),
        );
        assert!(why.contains("not for cache.example but for a.example, 127.0.0.1"), "{why}");
        assert!(hint.is_some_and(|hint| hint.contains("--sni")));
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (why, _) = said(
            CertificateError::ExpiredContext { time: at(90_000), not_after: at(86_400) }.into(),
        );
        assert!(why.contains("expired on 1970-01-02"), "{why}");
    }

    #[test]
    fn a_client_that_is_refused_is_told_from_a_server_that_is() {
        let (why, hint) = said(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(
            why.contains("client certificate") && hint.is_some_and(|hint| hint.contains("--cert")),
            "{why}"
        );
        let (why, _) = said(Error::AlertReceived(AlertDescription::ProtocolVersion));
        assert!(why.contains("no TLS version"), "{why}");
    }

    #[test]
    fn what_is_no_tls_is_no_trouble_with_tls() {
        let error = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert!(trouble("", &io::Error::new(io::ErrorKind::InvalidData, error)).is_none());
        assert!(trouble("", &io::ErrorKind::ConnectionReset.into()).is_none());
        assert!(is_record(&[0x15, 3, 3, 0]) && !is_record(b"+PONG"));
    }
}
