//! Sends requests over HTTP/1.1, each on a connection of its own. Redirects are not followed.
//!
//! It uses hyper directly, so that a gate (`gate.rs`) can be between hyper and the socket.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue, USER_AGENT};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

use super::gate::{GatePlace, HeaderEnd, places};
use super::io::{ByteStream, GatedStream, SentTime};
use crate::domain::probe::{ProbeAnswer, ProbeBody, ProbeExchange, ProbeOutcome, ProbeRequest};
use crate::store::Tls;

/// The most bytes of a body that are read. As many bodies are read at a time as requests are sent
/// together.
const MAX_BODY: usize = 2 << 20;

/// The most bytes of a header section. The answers of a run are kept until all checks are judged.
const MAX_HEAD: usize = 16 << 10;

/// How long a late answer is waited for, so that its effect is not counted for the next check.
const LATE_ANSWER: Duration = Duration::from_secs(2);

/// Sends requests.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    tls: Tls,
    connect_timeout: Duration,
    /// The time limit from the complete header section to the end of the answer.
    request_timeout: Duration,
    /// When the probe began. All times count from here.
    started: Instant,
}

/// A request that was answered, or why it was not.
type TimedAnswer = Result<(ProbeAnswer, Instant, Instant), String>;

impl HttpClient {
    pub(crate) fn new(tls: Tls, connect_timeout: Duration, request_timeout: Duration) -> Self {
        Self { tls, connect_timeout, request_timeout, started: Instant::now() }
    }

    /// The time limit of one request.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// The time since the probe began, in microseconds, as in an exchange.
    pub(crate) fn now_us(&self) -> u64 {
        self.micros(Instant::now())
    }

    /// Sends one request and reads its answer.
    pub(crate) async fn send(&self, request: &ProbeRequest) -> ProbeExchange {
        self.send_through(request, places(1).remove(0)).await
    }

    /// Sends all requests at the same time.
    pub(crate) async fn send_together(&self, requests: &[ProbeRequest]) -> Vec<ProbeExchange> {
        let sending = requests.iter().zip(places(requests.len()));
        join_all(sending.map(|(request, place)| self.send_through(request, place))).await
    }

    /// Sends a request, and closes the connection after this time without reading.
    pub(crate) async fn abandon(&self, request: &ProbeRequest, after: Duration) -> ProbeExchange {
        let sent = Arc::new(SentTime::new(None));
        let answered = Cell::new(None);
        let ended = tokio::select! {
            ended = self.exchange(request, places(1).remove(0), &sent, Some(&answered)) => ended.err(),
            () = async { wait_until_sent(&sent).await; sleep(after).await } => None,
        };
        let outcome = match ended {
            Some(why) => ProbeOutcome::Unanswered(why),
            None => ProbeOutcome::Abandoned,
        };
        ProbeExchange {
            request: request.clone(),
            sent_us: sent.borrow().map(|at| self.micros(at)),
            answered_us: answered.get().map(|at| self.micros(at)),
            ended_us: Some(self.micros(Instant::now())),
            outcome,
        }
    }

    async fn send_through(&self, request: &ProbeRequest, place: GatePlace) -> ProbeExchange {
        let sent = Arc::new(SentTime::new(None));
        let exchanged = self.exchange(request, place, &sent, None).await;
        let mut exchange = ProbeExchange {
            request: request.clone(),
            sent_us: sent.borrow().map(|at| self.micros(at)),
            answered_us: None,
            ended_us: None,
            outcome: ProbeOutcome::Abandoned,
        };
        exchange.outcome = match exchanged {
            Ok((answer, answered, ended)) => {
                exchange.answered_us = Some(self.micros(answered));
                exchange.ended_us = Some(self.micros(ended));
                ProbeOutcome::Answered(answer)
            }
            Err(why) => ProbeOutcome::Unanswered(why),
        };
        exchange
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    /// Connects, sends and reads. With `unread`, only the time of the answer's head is noted there,
    /// and the answer stays in the connection.
    async fn exchange(
        &self,
        request: &ProbeRequest,
        place: GatePlace,
        sent: &Arc<SentTime>,
        unread: Option<&Cell<Option<Instant>>>,
    ) -> TimedAnswer {
        let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
        let message = message(request, &url)?;
        let connecting = timeout(self.connect_timeout, self.connect(&url));
        let stream = connecting.await.map_err(|_| {
            format!("no connection within {}", humantime::format_duration(self.connect_timeout))
        })??;
        let stream = GatedStream {
            stream,
            place: Some(place),
            header_end: HeaderEnd::default(),
            sent: Arc::clone(sent),
        };
        let (mut sender, connection) = http1::Builder::new()
            .title_case_headers(true)
            .max_buf_size(MAX_HEAD)
            .handshake(stream)
            .await
            .map_err(|error| in_words(&error))?;
        // It may end before the answer is read, and must not be polled again then.
        let mut connection = Box::pin(connection.fuse());
        let exchanged = async {
            let mut sending = Box::pin(sender.send_request(message));
            let response = tokio::select! {
                response = &mut sending => response,
                ended = &mut connection => match ended {
                    // The answer may be complete when the connection ends.
                    Ok(()) => sending.await,
                    Err(error) => Err(error),
                },
            };
            let response = response.map_err(|error| in_words(&error))?;
            let answered = Instant::now();
            if let Some(unread) = unread {
                unread.set(Some(answered));
                std::future::pending::<()>().await;
            }
            let (head, body) = response.into_parts();
            let (body, is_whole) = {
                let mut reading = Box::pin(read(body));
                tokio::select! {
                    read = &mut reading => read,
                    _ = &mut connection => reading.await,
                }
            }?;
            let mut headers = Vec::with_capacity(head.headers.len());
            for (name, value) in &head.headers {
                headers.push((name.as_str().to_owned(), value.as_bytes().to_vec()));
            }
            let status = head.status.as_u16();
            let body = ProbeBody::new(&body);
            let answer = ProbeAnswer { status, headers, body, is_whole };
            Ok((answer, answered, Instant::now()))
        };
        self.in_time(exchanged, sent, unread.is_some()).await
    }

    /// The answer, if it came within the time limit. A late one is waited for, so that its effect is
    /// not counted for the next check, but it counts as no answer. A request whose answer stays unread
    /// has a time limit of its own.
    async fn in_time(
        &self,
        exchanged: impl Future<Output = TimedAnswer>,
        sent: &SentTime,
        is_unread: bool,
    ) -> TimedAnswer {
        let limit = self.request_timeout;
        let shown_limit = humantime::format_duration(limit);
        let expired = async {
            // The other connections may need their whole time to connect.
            let sending = timeout(limit + self.connect_timeout, wait_until_sent(sent)).await;
            if sending.is_err() {
                return format!("the request could not be sent within {shown_limit}");
            }
            if is_unread {
                std::future::pending::<()>().await;
            }
            sleep(limit + LATE_ANSWER).await;
            format!("no whole answer within {shown_limit}")
        };
        let (answer, answered, ended) = tokio::select! {
            why = expired => return Err(why),
            exchanged = exchanged => exchanged?,
        };
        let sent_at = sent.borrow().unwrap_or(answered);
        let took = ended.saturating_duration_since(sent_at);
        if took > limit {
            let took = took.as_secs_f64();
            return Err(format!("no whole answer within {shown_limit}; it came after {took:.3}s"));
        }
        Ok((answer, answered, ended))
    }

    async fn connect(&self, url: &Url) -> Result<Box<dyn ByteStream>, String> {
        let host = url.host_str().ok_or_else(|| "the URL has no host".to_owned())?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or(80);
        let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        // The last byte of a header section must not wait for more.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let config = self.tls.config().map_err(|error| error.to_string())?;
        let name = self.tls.server_name(host).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| format!("TLS: {error}"))?;
        Ok(Box::new(stream))
    }
}

/// Waits until the last byte of a header section was written.
async fn wait_until_sent(sent: &SentTime) {
    // The sender is this one, so it does not end.
    let _ = sent.subscribe().wait_for(Option::is_some).await;
}

/// Refuses a request that is not one of HTTP.
///
/// # Errors
/// Why it cannot be sent.
pub(crate) fn check(request: &ProbeRequest) -> Result<(), String> {
    let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
    message(request, &url).map(drop)
}

fn message(request: &ProbeRequest, url: &Url) -> Result<Request<WholeBody>, String> {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let body = WholeBody(Some(Bytes::from(request.body.clone())));
    let mut message = Request::builder()
        .method(request.method.as_str())
        .uri(target)
        .body(body)
        .map_err(|error| error.to_string())?;
    let headers = message.headers_mut();
    for (name, value) in &request.headers {
        let shown = name;
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{shown}` is not the name of a header"))?;
        let value = HeaderValue::from_bytes(value)
            .map_err(|_| format!("the value of {shown} contains a character that HTTP forbids"))?;
        headers.append(name, value);
    }
    if !headers.contains_key(HOST) {
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let value = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
        headers.insert(HOST, value);
    }
    // Some services refuse requests without these.
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("idemctl"));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    Ok(message)
}

/// Reads a body up to the limit; false if there is more.
async fn read(mut body: Incoming) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| in_words(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_BODY - bytes.len();
        if data.len() > room {
            bytes.extend_from_slice(&data[..room]);
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(data);
    }
    Ok((bytes, true))
}

/// An error with its causes.
fn in_words(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "the service closed the connection before its answer was complete".to_owned();
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// A body that is sent at once.
struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(
            self.0.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
