//! A socket that ends when its peer sends a line without end: the client crate would keep all of it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bstr::ByteSlice as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::resp::LONGEST_LINE;

/// What is kept of a line: its kind and a length.
const HEADER: usize = 24;

/// A socket that reads replies, RESP2 or RESP3.
pub(in crate::store) struct ShortLines<S> {
    socket: S,
    lines: Lines,
}

impl<S> ShortLines<S> {
    /// Begins where a reply begins.
    pub(in crate::store) fn new(socket: S) -> Self {
        Self { socket, lines: Lines::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ShortLines<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buf))?;
        Poll::Ready(self.lines.pass(&buf.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ShortLines<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// Where in a line, or in a string, what has come ends.
#[derive(Default)]
struct Lines {
    header: Vec<u8>,
    length: usize,
    /// How much of a string is still to come, its end included.
    string: usize,
}

impl Lines {
    /// Takes what came.
    ///
    /// # Errors
    /// `InvalidData`, when a line is longer than any that servers send.
    fn pass(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let skipped = self.string.min(bytes.len());
            self.string -= skipped;
            bytes = &bytes[skipped..];
            let end = bytes.find_byte(b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.header.extend(part.iter().take(HEADER - self.header.len()));
            self.length += part.len();
            if self.length > LONGEST_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without end"));
            }
            bytes = &bytes[end.map_or(bytes.len(), |end| end + 1)..];
            if end.is_some() {
                self.string = string_of(&self.header);
                self.header.clear();
                self.length = 0;
            }
        }
        Ok(())
    }
}

/// How many bytes of a string follow a line, with those that end it.
fn string_of(line: &[u8]) -> usize {
    let length = match line {
        [b'$' | b'=' | b'!', length @ .., b'\r'] => {
            length.to_str().ok().and_then(|length| length.parse::<usize>().ok())
        }
        _ => None,
    };
    length.map_or(0, |length| length.saturating_add(2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_without_end_is_an_error_and_a_long_string_is_none() {
        let long = vec![b'x'; 3 * LONGEST_LINE];
        for kind in ["$", "=", "!"] {
            let string = [format!("{kind}{}\r\n", long.len()).as_bytes(), &long, b"\r\n+OK\r\n"].concat();
            assert!(Lines::default().pass(&string).is_ok());
        }
        for begin in ["+", "$3\r\nabc\r\n-", ":1\r\n", "$-1\r\n*2\r\n"] {
            let endless = [begin.as_bytes(), &long].concat();
            let error = Lines::default().pass(&endless).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{begin:?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_replies_are_cut(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            most in 1_usize..50,
        ) {
            let mut lines = Lines::default();
            for string in &strings {
                let reply = [format!("*2\r\n:7\r\n${}\r\n", string.len()).as_bytes(), string, b"\r\n"].concat();
                for part in reply.chunks(most) {
                    prop_assert!(lines.pass(part).is_ok());
                }
                prop_assert_eq!((lines.string, lines.length), (0, 0));
            }
        }
    }
}
