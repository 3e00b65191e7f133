//! Diagnoses a connection that broke before its first reply: the peer is not a Redis server, or
//! only one side uses TLS.

use std::io;

use bstr::ByteSlice as _;
use redis::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use super::target::{Address, Target};
use super::tls;
use crate::store::connection::transport::{self, Socket};
use crate::store::error::{StoreError, from_tls};

/// The first bytes of a reply from a server without TLS: `+PONG`, `-NOAUTH`, `-DENIED`.
const REPLIES: &[u8] = b"+-";

/// Longer than the line in which a server explains how to admit clients of other hosts.
const LONGEST: usize = 4096;

/// The errors that a server sends to a new client without a request: it is full, or accepts no
/// clients of other hosts.
const TURNED_AWAY: [&[u8]; 2] = [b"-ERR max number of clients", b"-DENIED"];

/// Explains an error on a connection that never got a reply.
pub(in crate::store) async fn explain_error(target: &Target, error: StoreError) -> StoreError {
    let broke = matches!(
        error,
        StoreError::Unreachable { .. } | StoreError::NotRedis { .. } | StoreError::TimedOut { .. }
    );
    // A second diagnosis of an unresponsive server would find nothing new.
    let is_silent = matches!(error, StoreError::TimedOut { .. });
    if !broke || (is_silent && !target.client_options.claim_first_lookup()) {
        return error;
    }
    let limit = target.connect_timeout.min(target.timeout);
    if target.is_tls() {
        return match tokio::time::timeout(limit, last_words(target)).await {
            Ok(Some(explained)) => explained,
            _ => error,
        };
    }
    let mut words = Vec::new();
    // Skip this for a server that timed out, because a slow server would time out again.
    if !is_silent && let Ok(Ok(received)) = tokio::time::timeout(limit, first_words(target)).await {
        words = received;
    }
    if !words.is_empty() && !from_tls::is_record(&words) {
        return said(target, &words, error);
    }
    let Address::Tcp(host, port) = &target.address else { return error };
    match tokio::time::timeout(limit, speaks_tls(target, host, *port)).await {
        Ok(true) => StoreError::OnlyTls { target: target.to_string() },
        _ => error,
    }
}

/// Explains an error by the first bytes that a server sent without TLS.
fn said(target: &Target, words: &[u8], error: StoreError) -> StoreError {
    let is_turned_away = TURNED_AWAY.iter().any(|said| words.starts_with(said));
    match redis::parse_redis_value(words) {
        Ok(Value::ServerError(said)) if is_turned_away => StoreError::at(target, &said.into()),
        _ if REPLIES.contains(&words[0]) => error,
        _ => not_redis(target, words),
    }
}

/// Explains a TLS handshake that failed.
pub(in crate::store) async fn without_tls(target: &Target, error: StoreError) -> StoreError {
    match tokio::time::timeout(target.connect_timeout, first_words(target)).await {
        Ok(Ok(words)) if words.is_empty() || from_tls::is_record(&words) => error,
        Ok(Ok(words)) if REPLIES.contains(&words[0]) => {
            StoreError::NoTls { target: target.to_string() }
        }
        Ok(Ok(words)) => not_redis(target, &words),
        _ => error,
    }
}

fn not_redis(target: &Target, words: &[u8]) -> StoreError {
    let line = words.lines().next().unwrap_or_default();
    StoreError::NotRedis {
        target: target.to_string(),
        why: format!("it says {:?}", bstr::BStr::new(line)),
    }
}

/// The reason why a server closed the connection after the handshake. TLS 1.3 reports errors about
/// the client's certificate only then, and the client crate has dropped its connection by that
/// time.
async fn last_words(target: &Target) -> Option<StoreError> {
    let mut stream = transport::open(target).await.ok()?;
    // An error is ignored, because the bytes that the server has already sent can still be read.
    let _ = stream.write_all(b"PING\r\n").await;
    let _ = stream.flush().await;
    let error = stream.read(&mut [0; 256]).await.err()?;
    from_tls::trouble(&target.to_string(), &error)
}

/// The first bytes of the reply to a plain PING.
async fn first_words(target: &Target) -> io::Result<Vec<u8>> {
    let mut stream: Box<dyn Socket> = match &target.address {
        Address::Tcp(host, port) => Box::new(transport::dial(target, host, *port).await?),
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Service(_) => return Err(io::ErrorKind::Unsupported.into()),
    };
    // Read even if sending fails: a server that rejects a client sends its reason before it closes.
    let _ = stream.write_all(b"PING\r\n\r\n").await;
    let mut words = Vec::with_capacity(LONGEST);
    while words.len() < LONGEST && !words.contains(&b'\n') && stream.read_buf(&mut words).await? > 0
    {
    }
    Ok(words)
}

/// True if the peer answers a TLS handshake with TLS: any certificate, or an alert.
async fn speaks_tls(target: &Target, host: &str, port: u16) -> bool {
    let anybody = tls::Tls::new(tls::TlsOptions { insecure: true, ..tls::TlsOptions::default() });
    let (Ok(config), Ok(name)) = (anybody.config(), anybody.server_name(host)) else {
        return false;
    };
    let Ok(stream) = transport::dial(target, host, port).await else { return false };
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(_) => true,
        Err(error) => from_tls::trouble("", &error).is_some(),
    }
}
