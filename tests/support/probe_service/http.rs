//! The HTTP/1.1 of the payment service: reads a request, writes an answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::TcpStream;

/// The longest request line or header line, in bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// The most header lines of a request.
const MAX_HEADERS: usize = 100;

/// The largest body, in bytes.
const LARGEST_BODY: usize = 4 * 1024 * 1024;

/// A request.
pub struct Request {
    pub method: String,
    /// The path and the query, as sent.
    pub target: String,
    /// Names in lower case, values as sent.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The values of all lines of this header, whose name is in lower case.
    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        let mut values = Vec::new();
        for (header, value) in &self.headers {
            if header == name {
                values.push(&value[..]);
            }
        }
        values
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// False if the client closes the connection after the answer.
    pub fn keeps_alive(&self) -> bool {
        !self.values("connection").iter().any(|value| value.eq_ignore_ascii_case(b"close"))
    }
}

/// An answer. `Content-Length` is added when it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: i64,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer of this type.
    pub fn new(status: i64, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// An error in the form of RFC 9457.
    pub fn problem(status: i64, title: &str) -> Self {
        let body = serde_json::json!({ "title": title, "status": status });
        Self::new(status, "application/problem+json", body.to_string())
    }

    /// The same with one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the answer in one piece.
    pub fn write(&self, mut to: &TcpStream) -> io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            bytes += &format!("{name}: {value}\r\n");
        }
        // A 204 has no body, and no length of one.
        if self.status != 204 {
            bytes += &format!("Content-Length: {}\r\n", self.body.len());
        }
        bytes += "\r\n";
        let mut bytes = bytes.into_bytes();
        bytes.extend(&self.body);
        to.write_all(&bytes)
    }
}

fn reason(status: i64) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

/// Reads the next request. `None` after the last one.
///
/// # Errors
/// The answer to a request that cannot be read. The connection is of no use afterwards.
pub fn read(from: &mut BufReader<TcpStream>) -> Result<Option<Request>, Answer> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let line = String::from_utf8_lossy(&line).into_owned();
    let words: Vec<&str> = line.split(' ').collect();
    let &[method, target, "HTTP/1.1"] = &words[..] else {
        return Err(Answer::problem(400, "Not a request line of HTTP/1.1"));
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    let headers = read_headers(from)?;
    let mut request = Request { method, target, headers, body: Vec::new() };
    if !request.values("transfer-encoding").is_empty() {
        return Err(Answer::problem(411, "Send Content-Length, not Transfer-Encoding"));
    }
    let Some(length) = request.values("content-length").first().copied() else {
        return Ok(Some(request));
    };
    let Ok(length) = String::from_utf8_lossy(length).parse::<usize>() else {
        return Err(Answer::problem(400, "Content-Length is not a number"));
    };
    if length > LARGEST_BODY {
        return Err(Answer::problem(413, "The body is larger than 4 MiB"));
    }
    if request.values("expect").iter().any(|value| value.eq_ignore_ascii_case(b"100-continue")) {
        // The error shows when the body is read.
        let _ = from.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    request.body = vec![0; length];
    match from.read_exact(&mut request.body) {
        Ok(()) => Ok(Some(request)),
        // The client hung up.
        Err(_) => Ok(None),
    }
}

fn read_headers(from: &mut BufReader<TcpStream>) -> Result<Vec<(String, Vec<u8>)>, Answer> {
    let mut headers = Vec::new();
    loop {
        let Some(line) = read_line(from)? else {
            return Err(Answer::problem(400, "The headers are cut off"));
        };
        if line.is_empty() {
            return Ok(headers);
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Err(Answer::problem(400, "A header line has no colon"));
        };
        if headers.len() == MAX_HEADERS {
            return Err(Answer::problem(400, "More than 100 header lines"));
        }
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        headers.push((name, line[colon + 1..].trim_ascii().to_vec()));
    }
}

/// A line without its end. `None` if the client has hung up.
fn read_line(from: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>, Answer> {
    let mut line = Vec::new();
    if from.take(LONGEST_LINE).read_until(b'\n', &mut line).is_err() {
        return Ok(None);
    }
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(Some(line.to_vec())),
        None if line.len() as u64 == LONGEST_LINE => {
            Err(Answer::problem(400, "A line is longer than 64 KiB"))
        }
        None if line.ends_with(b"\n") => Err(Answer::problem(400, "A line ends without CR")),
        None => Ok(None),
    }
}
