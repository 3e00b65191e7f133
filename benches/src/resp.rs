//! Just enough of the Redis protocol: commands out, replies in, as little work as can be.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A blocking connection.
pub struct Connection {
    socket: UnixStream,
    inbox: Vec<u8>,
    at: usize,
}

/// An element of a reply.
pub enum Item {
    /// A number, or the length of an array.
    Number(i64),
    /// A string, by its place.
    Text(usize, usize),
}

impl Connection {
    pub fn open(socket: &Path) -> io::Result<Self> {
        Ok(Self { socket: UnixStream::connect(socket)?, inbox: Vec::new(), at: 0 })
    }

    pub fn send(&mut self, commands: &[u8]) -> io::Result<()> {
        self.socket.write_all(commands)
    }

    /// The next element; what it points to is there until the next one.
    pub fn item(&mut self) -> io::Result<Item> {
        let end = self.line()?;
        let (kind, start) = (self.inbox[self.at], self.at + 1);
        let text = std::str::from_utf8(&self.inbox[start..end]).unwrap_or_default();
        if kind == b'-' {
            let refusal = io::Error::other(text.to_owned());
            self.at = end + 2;
            return Err(refusal);
        }
        if kind == b'+' {
            self.at = end + 2;
            return Ok(Item::Text(start, end));
        }
        let number: i64 = text.parse().map_err(io::Error::other)?;
        if kind != b'$' || number < 0 {
            self.at = end + 2;
            return Ok(Item::Number(number));
        }
        let length = usize::try_from(number).unwrap_or(0);
        let header = end + 2 - self.at;
        while self.inbox.len() < self.at + header + length + 2 {
            self.receive()?;
        }
        let start = self.at + header;
        self.at = start + length + 2;
        Ok(Item::Text(start, start + length))
    }

    /// The next element as text.
    pub fn text(&mut self) -> io::Result<String> {
        Ok(match self.item()? {
            Item::Text(start, end) => String::from_utf8_lossy(&self.inbox[start..end]).into_owned(),
            Item::Number(number) => number.to_string(),
        })
    }

    pub fn bytes(&self, (start, end): (usize, usize)) -> &[u8] {
        &self.inbox[start..end]
    }

    fn line(&mut self) -> io::Result<usize> {
        let mut from = 0;
        loop {
            match self.inbox[self.at + from..].iter().position(|byte| *byte == b'\r') {
                Some(found) if self.inbox.len() > self.at + from + found + 1 => {
                    return Ok(self.at + from + found);
                }
                Some(found) => from += found,
                None => from = self.inbox.len() - self.at,
            }
            self.receive()?;
        }
    }

    /// Reads more; what was taken goes first, so `at` becomes 0.
    fn receive(&mut self) -> io::Result<()> {
        self.inbox.drain(..self.at);
        self.at = 0;
        let start = self.inbox.len();
        self.inbox.resize(start + 64 * 1024, 0);
        let received = self.socket.read(&mut self.inbox[start..])?;
        self.inbox.truncate(start + received);
        if received == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Appends a command.
pub fn pack(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
