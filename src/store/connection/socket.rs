//! The one place that opens sockets: TCP, TLS over TCP, unix.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::target::{Address, Target};
use super::tls::Tls;
use crate::store::error::{StoreError, from_tls};

/// A connection, whatever it goes through.
pub(in crate::store) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl Socket for TcpStream {}
impl Socket for UnixStream {}
impl Socket for TlsStream<TcpStream> {}

/// Why there is no connection.
pub(in crate::store) enum NotOpen {
    /// The TLS handshake came to nothing, and neither a certificate nor an alert says why: perhaps nobody there speaks TLS.
    Handshake(StoreError),
    Other(StoreError),
}

impl From<StoreError> for NotOpen {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

/// Connects, through TLS where that is wanted. Nobody logs in here.
///
/// # Errors
/// Unreachable, timed out, or no TLS: the certificate is not to be trusted, or what is there does not speak it.
pub(in crate::store) async fn open(target: &Target) -> Result<Box<dyn Socket>, NotOpen> {
    let limit = target.connect_timeout;
    let lost = |error: io::Error| StoreError::from_redis(&error.into(), &target.to_string(), limit);
    match &target.address {
        Address::Unix(path) => match in_time(limit, UnixStream::connect(path)).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "there is no such socket".to_owned();
                Err(StoreError::Unreachable { target: target.to_string(), why }.into())
            }
            Err(error) => Err(lost(error).into()),
        },
        // A client asks them first, and comes here with what they say.
        Address::Service(_) => {
            Err(lost(io::Error::other("Sentinels name a server, and are none")).into())
        }
        Address::Tcp(host, port) => {
            let stream =
                in_time(limit, TcpStream::connect((host.as_str(), *port))).await.map_err(lost)?;
            stream.set_nodelay(true).map_err(lost)?;
            match &target.tls {
                None => Ok(Box::new(stream)),
                Some(tls) => Ok(Box::new(shake_hands(target, tls, host, stream).await?)),
            }
        }
    }
}

async fn shake_hands(
    target: &Target,
    tls: &Tls,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, NotOpen> {
    let name = tls.server_name(host)?;
    let connector = TlsConnector::from(tls.config()?);
    match in_time(target.connect_timeout, connector.connect(name, stream)).await {
        Ok(stream) => Ok(stream),
        Err(error) => Err(match from_tls::trouble(&target.to_string(), &error) {
            Some(trouble) => NotOpen::Other(trouble),
            None => NotOpen::Handshake(StoreError::from_handshake(&error, target)),
        }),
    }
}

/// Gives work up when it takes longer.
pub(in crate::store) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
