//! The limits: a raw socket, SCAN with the reads of the page before it, next to no parsing.

use std::io;
use std::path::Path;

use crate::resp::{Connection, Item, pack};

/// Which Redis keys are read, and how.
pub struct Reads {
    pub pattern: &'static str,
    /// The command that reads a value, and the words behind the Redis key. Without it only expiries are read.
    pub value: Option<(&'static str, &'static [&'static str])>,
    pub expiry: &'static str,
    /// True where the reply for a value is an array.
    pub is_array: bool,
}

/// The first 65 bytes of strings.
pub const STRINGS: Reads = Reads {
    pattern: "idempotency:*",
    value: Some(("GETRANGE", &["0", "64"])),
    expiry: "PTTL",
    is_array: false,
};

/// What a list requests that shows the length of each value: as many bytes as most values have, which costs less than STRLEN.
pub const WITH_LENGTHS: Reads =
    Reads { value: Some(("GETRANGE", &["0", "512"])), expiry: "PEXPIRETIME", ..STRINGS };

/// What a sweep requests of keys that expire.
pub const EXPIRIES: Reads = Reads { value: None, expiry: "PEXPIRETIME", ..STRINGS };

/// Whole strings.
pub const WHOLE: Reads = Reads { value: Some(("GET", &[])), ..STRINGS };

/// All fields of hashes.
pub const HASHES: Reads =
    Reads { pattern: "bull:*", value: Some(("HGETALL", &[])), expiry: "PTTL", is_array: true };

/// Reads the value and the expiry of every such Redis key, two pages under way; how many there were.
pub fn scan(socket: &Path, reads: &Reads) -> io::Result<usize> {
    let mut connection = Connection::open(socket)?;
    let mut out = Vec::new();
    let (mut reading, mut records) = (0, 0);
    ask_page(&mut out, reads, b"0");
    connection.send(&out)?;
    loop {
        connection.item()?;
        let Item::Text(start, end) = connection.item()? else {
            return Err(io::Error::other("no cursor"));
        };
        let cursor = connection.bytes((start, end)).to_vec();
        let Item::Number(count) = connection.item()? else {
            return Err(io::Error::other("no keys"));
        };
        out.clear();
        if cursor != b"0" {
            ask_page(&mut out, reads, &cursor);
        }
        for _ in 0..count {
            if let Item::Text(start, end) = connection.item()? {
                let key = connection.bytes((start, end));
                if let Some((command, after)) = reads.value {
                    let words = [command.as_bytes(), key]
                        .into_iter()
                        .chain(after.iter().map(|word| word.as_bytes()));
                    pack(&mut out, &words.collect::<Vec<_>>());
                }
                pack(&mut out, &[reads.expiry.as_bytes(), key]);
            }
        }
        connection.send(&out)?;
        records += read(&mut connection, reads, reading)?;
        reading = usize::try_from(count).unwrap_or(0);
        if cursor == b"0" {
            return Ok(records + read(&mut connection, reads, reading)?);
        }
    }
}

fn ask_page(out: &mut Vec<u8>, reads: &Reads, cursor: &[u8]) {
    pack(out, &[b"SCAN", cursor, b"MATCH", reads.pattern.as_bytes(), b"COUNT", b"500"]);
}

fn read(connection: &mut Connection, reads: &Reads, records: usize) -> io::Result<usize> {
    for _ in 0..records {
        if reads.value.is_some() {
            let value = connection.item()?;
            if let (Item::Number(elements), true) = (value, reads.is_array) {
                for _ in 0..elements {
                    connection.item()?;
                }
            }
        }
        connection.item()?;
    }
    Ok(records)
}
